//! The connection that all operations of a kind share: it is made again after it was lost, and follows failovers and clusters.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind, cmd};
use tokio::sync::Mutex;

use super::error::RedisStoreError;
use super::primary::connect;
use super::settings::{RedisSettings, ServerAddress};

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
