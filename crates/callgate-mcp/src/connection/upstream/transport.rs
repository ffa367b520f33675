//! The transport connection to a server, and its restarts.

use std::time::{Duration, Instant};

use tokio::sync::{RwLockReadGuard, mpsc, oneshot, watch};

use super::{EventStream, ServerResponseReceiver, Upstream, UpstreamContext};
use crate::client_sender::QUEUE_CAPACITY;
use crate::connection::request_table::lock;
use crate::gateway_server::{GatewayServer, ServerConnection};
use crate::jsonrpc::JsonRpcMessage;
use crate::method;
use crate::upstream_event::UpstreamError;
use callgate::host::BoxFuture;
use callgate::json::json;

/// The maximum number of restarts of a server within a minute.
const MAX_RESTARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(60);
/// Timeout of the handshake with a restarted server.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long requests to a removed server may take.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// The current transport connection to a server.
pub(super) struct TransportState {
    pub(super) connection: Option<ServerConnection>,
    /// The number of the connection, from 0.
    pub(super) generation: u64,
    /// The times of recent restarts.
    restarts: Vec<Instant>,
    /// No restart is allowed.
    is_closed: bool,
}

impl TransportState {
    /// `connection`: `None` if the first message connects.
    pub(super) fn new(connection: Option<ServerConnection>) -> Self {
        Self { connection, generation: 0, restarts: Vec::new(), is_closed: false }
    }
}

/// Connects to a server. `index`: its number among those of the client's connection.
pub(super) fn connect(
    index: usize,
    server: &GatewayServer,
    generation: u64,
    shared: &UpstreamContext,
) -> Result<ServerConnection, UpstreamError> {
    let (sender, events) = mpsc::channel(QUEUE_CAPACITY);
    let connection = server
        .connect(sender, shared.gateway.max_message_size)
        .inspect_err(|_| server.health.record_failure())?;
    let _ = shared.connections.send(EventStream { server: index, generation, events });
    Ok(connection)
}

impl Upstream {
    /// The current connection for a message. One that was lost, or does not exist yet, is opened.
    pub(super) async fn live_transport(
        &self,
        message: &JsonRpcMessage,
    ) -> Result<RwLockReadGuard<'_, TransportState>, UpstreamError> {
        let transport = self.transport.read().await;
        if transport.connection.is_some() {
            return Ok(transport);
        }
        drop(transport);
        // The handshake itself is not sent twice.
        let repeated = self.shared.client.initialize().filter(|_| message.method() != method::INITIALIZE);
        self.reconnect(repeated).await?;
        Ok(self.transport.read().await)
    }

    /// Connects, and repeats the client's handshake.
    ///
    /// The future is boxed, because every message to a server would contain it.
    fn reconnect(&self, initialize: Option<JsonRpcMessage>) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(self.restart(initialize))
    }

    async fn restart(&self, initialize: Option<JsonRpcMessage>) -> Result<(), UpstreamError> {
        let unavailable =
            |why: &str| UpstreamError(format!("the server `{}` is unavailable: {why}", self.name()));
        let mut transport = self.transport.write().await;
        if transport.connection.is_some() {
            return Ok(());
        }
        if transport.is_closed {
            return Err(unavailable("the connection is closed"));
        }
        transport.restarts.retain(|at| at.elapsed() < RESTART_WINDOW);
        if transport.restarts.len() >= MAX_RESTARTS {
            return Err(unavailable("it was restarted too often in the last minute"));
        }
        transport.restarts.push(Instant::now());
        transport.generation += 1;
        let generation = transport.generation;
        let connection = connect(self.index, &self.server, generation, &self.shared);
        // Agents must not see the command of a server.
        let connection = connection.map_err(|UpstreamError(why)| {
            self.log(&why);
            unavailable("it can't be started")
        })?;
        if let Some(initialize) = initialize {
            let id = self.shared.requests.new_id();
            let (sender, response) = oneshot::channel();
            let receiver = ServerResponseReceiver::Gateway(sender);
            lock(&self.pending_requests).insert(id.clone(), (generation, receiver));
            connection.send(initialize.with_id(&id)).await?;
            let response = tokio::time::timeout(HANDSHAKE_TIMEOUT, response).await;
            if !matches!(&response, Ok(Ok(response)) if response.result_value().is_some()) {
                return Err(unavailable("it rejects the handshake after a restart"));
            }
            connection.send(JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await?;
        }
        if generation > 1 || !self.is_added {
            self.log("it was restarted");
        }
        transport.connection = Some(connection);
        Ok(())
    }

    /// Handles the end of a connection: pending requests fail, and the next message to the server restarts it.
    pub(in crate::connection) async fn handle_lost_connection(&self, generation: u64, why: &str) {
        let why = format!("the connection to the server `{}` was lost: {why}", self.name());
        // First the pending requests: a restart in progress waits for a response while it holds the connection's lock.
        self.fail_pending_requests(generation, &why).await;
        self.tools.invalidate();
        let mut transport = self.transport.write().await;
        if transport.generation == generation && transport.connection.take().is_some() {
            self.shared.gateway.log(&why);
            self.server.health.record_failure();
        }
        drop(transport);
        // Then the requests that were sent while the connection was still present.
        self.fail_pending_requests(generation, &why).await;
    }

    /// Waits until no request is pending, but not for longer than a call at a removed server may take.
    pub(in crate::connection) async fn drain(&self) {
        let drained = async {
            while !lock(&self.pending_requests).is_empty() {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, drained).await;
    }

    /// Sends a message, unless the connection was lost.
    pub(in crate::connection) async fn send_if_connected(&self, message: JsonRpcMessage) {
        if let Some(connection) = &self.transport.read().await.connection {
            let _ = connection.send(message).await;
        }
    }

    /// Closes the connection; it is not restarted. Returns a receiver that becomes true when the server has ended.
    pub(in crate::connection) async fn close(&self) -> Option<watch::Receiver<bool>> {
        let mut transport = self.transport.write().await;
        transport.is_closed = true;
        transport.connection.take().map(ServerConnection::close)
    }

    /// Fails the requests that are pending after the connection was closed.
    pub(in crate::connection) async fn fail_after_close(&self, why: &str) {
        let generation = self.transport.read().await.generation;
        self.fail_pending_requests(generation, why).await;
    }
}
