//! Sends requests and notifications to servers, and restarts servers whose connection was lost.

use std::sync::Weak;
use std::time::{Duration, Instant};

use tokio::sync::{RwLockReadGuard, mpsc, oneshot};

use super::server_messages::handle_events;
use super::{
    ClientConnection, ClientResponseReceiver, ConnectedServer, ServerResponseReceiver, TransportState, locked,
};
use crate::host::BoxFuture;
use crate::json::{Value, json};
use crate::mcp::client_sender::QUEUE_CAPACITY;
use crate::mcp::jsonrpc::{JsonRpcMessage, RequestId, code};
use crate::mcp::method;
use crate::mcp::upstream_server::{ConnectionClosed, UpstreamConnection};

/// The maximum number of restarts of a server within a minute.
const MAX_RESTARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(60);
/// Timeout of the handshake with a restarted server.
const GREETING: Duration = Duration::from_secs(20);

impl ClientConnection {
    /// Sends a request of the client to a server, under the client's id unless it is in use there.
    pub(super) async fn send_request(
        &self,
        index: usize,
        frame: JsonRpcMessage,
        id: &RequestId,
        waits: ServerResponseReceiver,
    ) -> Result<(), ConnectionClosed> {
        let server = self.servers.get(index).ok_or_else(|| ConnectionClosed("unknown server".to_owned()))?;
        let connected = self.connected(index, server).await?;
        // While the lock is held the connection can't be lost, so a request registered now will be notified of its end.
        let Some(connection) = &connected.connection else { return Err(gone(server)) };
        let sent_as = {
            let mut awaiting = locked(&server.awaiting);
            let free = if awaiting.contains_key(id) { self.new_id() } else { id.clone() };
            awaiting.insert(free.clone(), (connected.generation, waits));
            free
        };
        let is_wanted = locked(&self.asked).get_mut(id).is_none_or(|asked| {
            asked.sent.push((index, sent_as.clone()));
            !*asked.cancel.borrow()
        });
        let sent = match is_wanted {
            true => connection.send(frame.with_id(&sent_as)).await,
            // It was cancelled during the restart of the server.
            false => Err(ConnectionClosed("the client cancelled the request".to_owned())),
        };
        if sent.is_err() {
            locked(&server.awaiting).remove(&sent_as);
        }
        sent
    }

    /// Sends a message to a server, and restarts the server if its connection was lost.
    pub(super) async fn send(&self, index: usize, frame: JsonRpcMessage) -> Result<(), ConnectionClosed> {
        let server = self.servers.get(index).ok_or_else(|| ConnectionClosed("unknown server".to_owned()))?;
        match &self.connected(index, server).await?.connection {
            Some(connection) => connection.send(frame).await,
            None => Err(gone(server)),
        }
    }

    /// The current connection to a server, which is restarted if the connection was lost.
    async fn connected<'s>(
        &self,
        index: usize,
        server: &'s ConnectedServer,
    ) -> Result<RwLockReadGuard<'s, TransportState>, ConnectionClosed> {
        let connected = server.connected.read().await;
        if connected.connection.is_some() {
            return Ok(connected);
        }
        drop(connected);
        self.reconnect(index).await?;
        Ok(server.connected.read().await)
    }

    /// Sends a request of the client after policies allowed it, and waits for the server's response.
    pub(in crate::mcp) async fn request_for_client(
        &self,
        index: usize,
        frame: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<JsonRpcMessage, ConnectionClosed> {
        let told = self.start_request_for_client(index, frame, id).await?;
        told.await.map_err(|_| ConnectionClosed("the connection to the server was lost".to_owned()))
    }

    /// Sends a request of the client, and returns a receiver for the server's response.
    pub(in crate::mcp) async fn start_request_for_client(
        &self,
        index: usize,
        frame: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<oneshot::Receiver<JsonRpcMessage>, ConnectionClosed> {
        let (tell, told) = oneshot::channel();
        self.send_request(index, frame, id, ServerResponseReceiver::Gateway(tell)).await?;
        Ok(told)
    }

    /// Sends a request of the gateway to a server, and waits for the response.
    pub(in crate::mcp) async fn request_server(
        &self,
        index: usize,
        method: &str,
        params: Value,
    ) -> Result<JsonRpcMessage, ConnectionClosed> {
        let id = self.new_id();
        let (tell, told) = oneshot::channel();
        self.send_request(
            index,
            JsonRpcMessage::request(&id, method, params),
            &id,
            ServerResponseReceiver::Gateway(tell),
        )
        .await?;
        told.await.map_err(|_| ConnectionClosed("the connection to the server was lost".to_owned()))
    }

    /// Sends a notification of the gateway to a server.
    pub(in crate::mcp) async fn notify_server(&self, index: usize, frame: JsonRpcMessage) {
        let _ = self.send(index, frame).await;
    }

    /// Handles the end of a server's connection: pending requests fail, and the next message to the server restarts it.
    pub(super) async fn handle_lost_connection(&self, index: usize, generation: u64, why: &str) {
        let Some(server) = self.servers.get(index) else { return };
        let why = format!("the connection to the server `{}` was lost: {why}", server.spec.name);
        // First the pending requests: a restart in progress waits for a response while it holds the connection's lock.
        self.fail_pending_requests(server, generation, &why).await;
        server.tools.invalidate();
        let mut connected = server.connected.write().await;
        if connected.generation == generation && connected.connection.take().is_some() {
            self.gateway.log(&why);
        }
        drop(connected);
        // Then the requests that were sent while the connection was still present.
        self.fail_pending_requests(server, generation, &why).await;
    }

    /// Fails all pending requests of a lost connection.
    async fn fail_pending_requests(&self, server: &ConnectedServer, generation: u64, why: &str) {
        let waiting: Vec<ServerResponseReceiver> = {
            let mut awaiting = locked(&server.awaiting);
            let lost = awaiting.extract_if(|_, (sent_to, _)| *sent_to == generation);
            lost.map(|(_, (_, waits))| waits).collect()
        };
        for waits in waiting {
            if let ServerResponseReceiver::Client { id, outlet, .. } = waits {
                self.respond_with_error(&id, &outlet, why).await;
            }
        }
    }

    /// Reconnects to a server, and repeats the client's handshake.
    pub(super) fn reconnect(&self, index: usize) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        Box::pin(self.restart_server(index))
    }

    pub(super) async fn restart_server(&self, index: usize) -> Result<(), ConnectionClosed> {
        let server = self.servers.get(index).ok_or_else(|| ConnectionClosed("unknown server".to_owned()))?;
        let gone =
            |why: &str| ConnectionClosed(format!("the server `{}` is unavailable: {why}", server.spec.name));
        let mut connected = server.connected.write().await;
        if connected.connection.is_some() {
            return Ok(());
        }
        if connected.is_closed {
            return Err(gone("the connection is closed"));
        }
        connected.starts.retain(|at| at.elapsed() < RESTART_WINDOW);
        if connected.starts.len() >= MAX_RESTARTS {
            return Err(gone("it was restarted too often in the last minute"));
        }
        connected.starts.push(Instant::now());
        connected.generation += 1;
        let generation = connected.generation;
        let (events, heard) = mpsc::channel(QUEUE_CAPACITY);
        let connection = UpstreamConnection::open(&server.spec, events, self.gateway.max_message_size);
        // Agents must not see the command of a server.
        let connection = connection.map_err(|ConnectionClosed(why)| {
            self.log_server(index, &why);
            gone("it can't be started")
        })?;
        tokio::spawn(handle_events(Weak::clone(&self.me), index, generation, heard));
        if let Some(greeting) = self.client.initialize() {
            let id = self.new_id();
            let (tell, told) = oneshot::channel();
            locked(&server.awaiting).insert(id.clone(), (generation, ServerResponseReceiver::Gateway(tell)));
            connection.send(greeting.with_id(&id)).await?;
            let answer = tokio::time::timeout(GREETING, told).await;
            if !matches!(&answer, Ok(Ok(answer)) if answer.result_value().is_some()) {
                return Err(gone("it rejects the handshake after a restart"));
            }
            connection.send(JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await?;
        }
        self.log_server(index, "it was restarted");
        connected.connection = Some(connection);
        Ok(())
    }

    /// Fails all pending requests to the client, whose input has ended.
    pub(in crate::mcp) async fn fail_server_requests(&self) {
        let asking: Vec<ClientResponseReceiver> =
            locked(&self.asking).drain().map(|(_, waits)| waits).collect();
        for waits in asking {
            // For the gateway's own requests, dropping the sender is enough.
            let ClientResponseReceiver::Server(index, id) = waits else { continue };
            let Some(server) = self.servers.get(index) else { continue };
            let message = "the client has closed the connection";
            let answer = JsonRpcMessage::error_response(Some(&id), code::INTERNAL_ERROR, message, None);
            // A lost server is not restarted for this.
            if let Some(connection) = &server.connected.read().await.connection {
                let _ = connection.send(answer).await;
            }
        }
    }

    /// Closes the connection after the client is gone; returns when its servers have ended.
    pub(in crate::mcp) async fn close(&self) {
        locked(&self.asking).clear();
        let mut ends = Vec::new();
        for server in &self.servers {
            let mut connected = server.connected.write().await;
            connected.is_closed = true;
            ends.extend(connected.connection.take().map(UpstreamConnection::close));
        }
        for mut ended in ends {
            let _ = ended.wait_for(|ended| *ended).await;
        }
        // Requests that are still pending get no response any more.
        for server in &self.servers {
            let generation = server.connected.read().await.generation;
            self.fail_pending_requests(server, generation, "the gateway is shutting down").await;
        }
        // Requests that arrived in the meantime.
        locked(&self.asking).clear();
    }
}

fn gone(server: &ConnectedServer) -> ConnectionClosed {
    ConnectionClosed(format!("the server `{}` is unavailable: the connection was lost", server.spec.name))
}
