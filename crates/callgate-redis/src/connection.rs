//! Connections: settings → a connection to the server that accepts writes, made again after it was lost.

use std::time::{Duration, Instant};

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisError, Script, ServerErrorKind, TlsCertificates, cmd,
};
use tokio::sync::Mutex;

use super::error::RedisStoreError;
use super::settings::{RedisSettings, ServerAddress};

/// Shorter than the timeout of a store operation, so that its caller receives the reason.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long those who need a connection share the error of the last attempt, instead of waiting for one after the other.
const FAILURE_SHARED_FOR: Duration = Duration::from_millis(250);
/// How often an operation is sent, if the server has not run it: a script has to be loaded, or another node of the cluster has the key.
const MAX_ATTEMPTS: usize = 4;
/// How long a write waits for the replicas.
const REPLICATION_TIMEOUT_MS: u32 = 2_000;

/// One connection, which all operations of a kind share.
pub(crate) struct Link {
    settings: RedisSettings,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    connection: Option<MultiplexedConnection>,
    /// Counts the connections, so that a lost one is dropped once.
    number: u64,
    /// Where the connection leads, or led.
    address: Option<ServerAddress>,
    /// The node of a cluster that has the keys.
    node: Option<ServerAddress>,
    failure: Option<(Instant, RedisStoreError)>,
}

/// Whether a script changes what replicas must have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Durability {
    /// It does, so the configured number of replicas must confirm it.
    Replicated,
    /// It does not, or it may be lost.
    Local,
}

impl Link {
    pub(crate) fn new(settings: RedisSettings) -> Self {
        Self { settings, state: Mutex::default() }
    }

    /// Runs a script for the keys that begin with this one.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        key: &str,
        arguments: &[Vec<u8>],
        durability: Durability,
    ) -> Result<T, RedisStoreError> {
        let mut command = cmd("EVALSHA");
        command.arg(script.get_hash()).arg(1).arg(key).arg(arguments);
        let mut attempts = 1;
        let (reply, number) = loop {
            let (mut connection, number) = self.connection().await?;
            let error =
                match connection.send_packed_command(&command).await.and_then(redis::Value::extract_error) {
                    Ok(reply) => break (reply, number),
                    Err(error) => error,
                };
            if attempts == MAX_ATTEMPTS || !self.was_not_run(&error, &mut connection, script, number).await? {
                return Err(self.failed(error.into(), number).await);
            }
            attempts += 1;
        };
        if durability == Durability::Replicated && self.settings.replicas > 0 {
            self.wait_for_replicas(number).await?;
        }
        redis::from_redis_value(reply).map_err(|error| RedisError::from(error).into())
    }

    /// Sends commands that change nothing, once more if the connection was lost.
    pub(crate) async fn read<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisStoreError> {
        let mut attempts = 1;
        loop {
            let (mut connection, number) = self.connection().await?;
            let error = match command.query_async(&mut connection).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let is_redirected = self.redirect(&error, number).await;
            let is_lost = error.is_connection_dropped();
            let error = self.failed(error.into(), number).await;
            if attempts == MAX_ATTEMPTS || !(is_redirected || is_lost && attempts == 1) {
                return Err(error);
            }
            attempts += 1;
        }
    }

    /// Whether the server has not run a script for a reason that is removed now.
    async fn was_not_run(
        &self,
        error: &RedisError,
        connection: &mut MultiplexedConnection,
        script: &Script,
        number: u64,
    ) -> Result<bool, RedisStoreError> {
        if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) {
            return match script.load_async(connection).await {
                Ok(_) => Ok(true),
                Err(error) => Err(self.failed(error.into(), number).await),
            };
        }
        Ok(self.redirect(error, number).await)
    }

    /// Follows a node of a cluster that names the one that has the keys. Returns whether it does.
    async fn redirect(&self, error: &RedisError, number: u64) -> bool {
        let is_moved = error.kind() == ErrorKind::Server(ServerErrorKind::Moved);
        let address =
            error.redirect_node().filter(|_| is_moved).and_then(|(address, _)| address.rsplit_once(':'));
        let Some((host, Ok(port))) = address.map(|(host, port)| (host, port.parse())) else { return false };
        let mut state = self.state.lock().await;
        if state.number == number {
            state.connection = None;
            // A node that does not know its own name means the one by which it was reached.
            let known = state.address.as_ref().filter(|_| host.is_empty() || host == "?");
            let host = known.map_or(host, |known| known.host.as_str()).to_owned();
            state.node = Some(ServerAddress { host, port });
        }
        true
    }

    async fn wait_for_replicas(&self, number: u64) -> Result<(), RedisStoreError> {
        let (mut connection, current) = self.connection().await?;
        if current != number {
            return Err(RedisStoreError::Replicas);
        }
        let mut command = cmd("WAIT");
        command.arg(self.settings.replicas).arg(REPLICATION_TIMEOUT_MS);
        match command.query_async::<u32>(&mut connection).await {
            Ok(confirmed) if confirmed >= self.settings.replicas => Ok(()),
            Ok(_) => Err(RedisStoreError::Replicas),
            Err(error) => Err(self.failed(error.into(), number).await),
        }
    }

    /// The connection, and its number.
    async fn connection(&self) -> Result<(MultiplexedConnection, u64), RedisStoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.number));
        }
        if let Some((since, error)) = &state.failure
            && since.elapsed() < FAILURE_SHARED_FOR
        {
            return Err(error.clone());
        }
        match connect(&self.settings, state.node.as_ref()).await {
            Ok((connection, address)) => {
                state.number += 1;
                (state.connection, state.failure) = (Some(connection.clone()), None);
                state.address = Some(address);
                Ok((connection, state.number))
            }
            Err(error) => {
                (state.node, state.failure) = (None, Some((Instant::now(), error.clone())));
                Err(error)
            }
        }
    }

    /// Drops the connection after an error that another one may not have.
    async fn failed(&self, error: RedisStoreError, number: u64) -> RedisStoreError {
        if error.needs_reconnect() {
            let mut state = self.state.lock().await;
            if state.number == number {
                (state.connection, state.node) = (None, None);
            }
        }
        error
    }
}

/// Connects to the node, or else to the first server that accepts writes.
async fn connect(
    settings: &RedisSettings,
    node: Option<&ServerAddress>,
) -> Result<(MultiplexedConnection, ServerAddress), RedisStoreError> {
    if let Some(node) = node {
        return Ok((open(settings, node).await?, node.clone()));
    }
    let mut failure = None;
    for address in &primaries(settings).await? {
        match open_primary(settings, address).await {
            Ok(connection) => return Ok((connection, address.clone())),
            // That a replica answers says more than that another server does not.
            Err(RedisStoreError::NoPrimary) => failure = Some(RedisStoreError::NoPrimary),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or(RedisStoreError::NoPrimary))
}

async fn open(
    settings: &RedisSettings,
    address: &ServerAddress,
) -> Result<MultiplexedConnection, RedisStoreError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT));
    let client = client(settings, address, Login::Server)?;
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}

async fn open_primary(
    settings: &RedisSettings,
    address: &ServerAddress,
) -> Result<MultiplexedConnection, RedisStoreError> {
    let mut connection = open(settings, address).await?;
    match is_primary(&mut connection).await? {
        true => Ok(connection),
        false => Err(RedisStoreError::NoPrimary),
    }
}

/// A server that does not tell, because the user may not ask, counts as a primary: it rejects writes otherwise.
async fn is_primary(connection: &mut MultiplexedConnection) -> Result<bool, RedisStoreError> {
    match cmd("ROLE").query_async::<Vec<redis::Value>>(connection).await {
        Ok(role) => Ok(!matches!(role.first(), Some(redis::Value::BulkString(name)) if name == b"slave")),
        // The next server is tried, and not this one again and again.
        Err(error) if error.is_io_error() => Err(error.into()),
        Err(_) => Ok(true),
    }
}

/// The servers that may be the primary: those of the URL, or the one that a Sentinel names.
async fn primaries(settings: &RedisSettings) -> Result<Vec<ServerAddress>, RedisStoreError> {
    let Some(name) = &settings.sentinel else { return Ok(settings.addresses.clone()) };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(CONNECT_TIMEOUT));
    let mut failure = RedisStoreError::NoPrimary;
    for address in &settings.addresses {
        let asked = async {
            let client = client(settings, address, Login::Sentinel)?;
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            let mut command = cmd("SENTINEL");
            command.arg("get-master-addr-by-name").arg(name);
            Ok::<_, RedisStoreError>(command.query_async::<Option<(String, u16)>>(&mut connection).await?)
        };
        match asked.await {
            Ok(Some((host, port))) => return Ok(vec![ServerAddress { host, port }]),
            Ok(None) => failure = RedisStoreError::NoPrimary,
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Subscribes to channels, with a connection of its own.
pub(crate) async fn subscribe(
    settings: &RedisSettings,
    channels: &[&str],
) -> Result<PubSub, RedisStoreError> {
    let mut failure = RedisStoreError::NoPrimary;
    for address in &primaries(settings).await? {
        let subscribed = async {
            let mut messages = client(settings, address, Login::Server)?.get_async_pubsub().await?;
            messages.subscribe(channels).await?;
            Ok(messages)
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, subscribed).await {
            Ok(Ok(messages)) => return Ok(messages),
            Ok(Err(error)) => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// Which user and database a connection uses.
#[derive(Clone, Copy, PartialEq)]
enum Login {
    /// Those of the URL.
    Server,
    /// None: a Sentinel has no databases.
    Sentinel,
}

fn client(
    settings: &RedisSettings,
    address: &ServerAddress,
    login: Login,
) -> Result<Client, RedisStoreError> {
    let (host, port) = (address.host.clone(), address.port);
    let target = match settings.uses_tls {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    };
    let mut user = RedisConnectionInfo::default();
    if login == Login::Server {
        user = user.set_db(settings.database);
        if let Some(name) = &settings.username {
            user = user.set_username(name);
        }
        if let Some(password) = &settings.password {
            user = user.set_password(password);
        }
    }
    // A request would otherwise wait for the server to acknowledge the one before it, although they share the connection.
    let tcp = TcpSettings::default().set_nodelay(true);
    let info = target.into_connection_info()?.set_redis_settings(user).set_tcp_settings(tcp);
    if !settings.uses_tls {
        return Ok(Client::open(info)?);
    }
    // The driver takes the default of the process. An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root_cert = match &settings.root_certificates {
        None => None,
        Some(path) => Some(std::fs::read(path).map_err(|error| {
            RedisStoreError::Tls(format!("the certificates in `{}` can't be read: {error}", path.display()))
        })?),
    };
    Ok(Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })?)
}
