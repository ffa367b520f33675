//! Finds the server that accepts writes: settings → a connection to it.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo,
    TlsCertificates, cmd,
};

use super::error::RedisStoreError;
use super::settings::{RedisSettings, ServerAddress};

/// Shorter than the timeout of a store operation, so that its caller receives the reason.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a server that accepts writes waits for the answers of those before it in the URL.
const PRECEDENCE: Duration = Duration::from_millis(250);
/// After what silence the other end is asked whether it is there, and how often.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// Connects to the node, or else to the first server that accepts writes.
pub(crate) async fn connect(
    settings: &RedisSettings,
    node: Option<&ServerAddress>,
) -> Result<(MultiplexedConnection, ServerAddress), RedisStoreError> {
    if let Some(node) = node {
        return Ok((open(settings, node).await?, node.clone()));
    }
    let servers = primaries(settings).await?;
    first_of(servers.iter().map(|address| async {
        let mut connection = open(settings, address).await?;
        match is_primary(&mut connection).await? {
            true => Ok((connection, address.clone())),
            false => Err(RedisStoreError::NoPrimary),
        }
    }))
    .await
}

/// Asks all servers at once, because one that is gone may not even refuse. Returns the answer of the first one in their order, so that all
/// hosts use the same server if several accept writes; but one that does not answer soon is passed over.
async fn first_of<T>(
    attempts: impl IntoIterator<Item = impl Future<Output = Result<T, RedisStoreError>>>,
) -> Result<T, RedisStoreError> {
    let attempts = attempts.into_iter().enumerate().map(|(index, attempt)| async move {
        let answer = tokio::time::timeout(CONNECT_TIMEOUT, attempt).await;
        (index, answer.unwrap_or_else(|_| Err(no_answer())))
    });
    let mut running: FuturesUnordered<_> = attempts.collect();
    let mut answers: Vec<Option<Result<T, RedisStoreError>>> = Vec::new();
    answers.resize_with(running.len(), || None);
    let mut passed_over = None;
    loop {
        let decided = answers.iter().position(|answer| !matches!(answer, Some(Err(_))));
        if decided.is_none_or(|index| matches!(answers.get(index), Some(Some(_)))) {
            break;
        }
        let next = match passed_over {
            None => running.next().await,
            Some(at) => tokio::time::timeout_at(at, running.next()).await.unwrap_or(None),
        };
        let Some((index, answer)) = next else { break };
        if answer.is_ok() {
            passed_over.get_or_insert_with(|| tokio::time::Instant::now() + PRECEDENCE);
        }
        if let Some(slot) = answers.get_mut(index) {
            *slot = Some(answer);
        }
    }
    let mut failure = None;
    for answer in answers.into_iter().flatten() {
        match answer {
            Ok(found) => return Ok(found),
            // That a replica answers says more than that another server does not.
            Err(RedisStoreError::NoPrimary) => failure = Some(RedisStoreError::NoPrimary),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.unwrap_or(RedisStoreError::NoPrimary))
}

fn no_answer() -> RedisStoreError {
    redis::RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut)).into()
}

async fn open(
    settings: &RedisSettings,
    address: &ServerAddress,
) -> Result<MultiplexedConnection, RedisStoreError> {
    connect_to(&client(settings, address, Login::Server)?, RESPONSE_TIMEOUT).await
}

async fn connect_to(
    client: &Client,
    response_timeout: Duration,
) -> Result<MultiplexedConnection, RedisStoreError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(response_timeout));
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
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
    let named = first_of(settings.addresses.iter().map(|address| async {
        let client = client(settings, address, Login::Sentinel)?;
        let mut connection = connect_to(&client, CONNECT_TIMEOUT).await?;
        let mut command = cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(name);
        let named: Option<(String, u16)> = command.query_async(&mut connection).await?;
        named.ok_or(RedisStoreError::NoPrimary)
    }));
    let (host, port) = named.await?;
    Ok(vec![ServerAddress { host, port }])
}

/// Subscribes to channels, with a connection of its own.
pub(crate) async fn subscribe(
    settings: &RedisSettings,
    channels: &[&str],
) -> Result<PubSub, RedisStoreError> {
    let servers = primaries(settings).await?;
    first_of(servers.iter().map(|address| async {
        let mut messages = client(settings, address, Login::Server)?.get_async_pubsub().await?;
        messages.subscribe(channels).await?;
        Ok(messages)
    }))
    .await
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
    // A machine that is gone closes no connection, and who only listens sends nothing that would fail.
    let probes = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL);
    // Without delay, because a request would otherwise wait for the server to acknowledge the one before it, although they share the connection.
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
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
