//! One server of a client's connection: the requests that are pending at it, its tools, and its transport connection, which is restarted
//! after it was lost.

mod transport;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{RwLock, mpsc, oneshot};

use self::transport::TransportState;
use super::request_table::{RequestTable, lock};
use crate::client_info::ClientInfo;
use crate::client_sender::ClientSender;
use crate::gateway::Gateway;
use crate::gateway_server::{GatewayServer, ServerConnection};
use crate::jsonrpc::{JsonRpcMessage, RequestId};
use crate::method;
use crate::routes::ListKind;
use crate::tool_cache::ToolCache;
use crate::upstream_event::{UpstreamError, UpstreamEvent};
use callgate::json::{Value, json};
use callgate::tools::ToolDescriptor;

/// Timeout of a server for a request to all servers; then the merged response omits it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a server that did not answer in time before, and has sent nothing since.
const SILENT_SERVER_TIMEOUT: Duration = Duration::from_secs(2);

/// One server of a client's connection.
pub(crate) struct Upstream {
    /// Its number among the servers of the connection, by which the request table names it.
    index: usize,
    server: Arc<GatewayServer>,
    /// It was added after the client had connected.
    is_added: bool,
    transport: RwLock<TransportState>,
    /// Pending requests to it, with the generation of the transport connection that they were sent on.
    pending_requests: Mutex<HashMap<RequestId, (u64, ServerResponseReceiver)>>,
    tools: ToolCache,
    /// It timed out, and has sent nothing since.
    has_timed_out: AtomicBool,
    shared: UpstreamContext,
}

/// The parts of a client's connection that its servers share.
#[derive(Clone)]
pub(super) struct UpstreamContext {
    pub(super) gateway: Arc<Gateway>,
    pub(super) client: Arc<ClientInfo>,
    pub(super) requests: Arc<RequestTable>,
    /// Receives the events of each new transport connection.
    pub(super) connections: mpsc::UnboundedSender<EventStream>,
}

/// The events of one transport connection.
pub(super) struct EventStream {
    /// The number of the server.
    pub(super) server: usize,
    /// The number of the server's transport connection, from 0.
    pub(super) generation: u64,
    pub(super) events: mpsc::Receiver<UpstreamEvent>,
}

/// The receiver of a server's response.
pub(super) enum ServerResponseReceiver {
    /// The client, with its own id.
    Client { id: RequestId, sender: ClientSender, then: ResponseProcessing },
    /// The gateway.
    Gateway(oneshot::Sender<JsonRpcMessage>),
}

/// How a server's response is processed before it is forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResponseProcessing {
    Forward,
    /// It declares the server's capabilities.
    Handshake,
    /// It is a list of this kind.
    FilterList(ListKind),
    /// It belongs to this task.
    RedactTask(String),
}

impl Upstream {
    /// Connects to a server.
    pub(super) fn open(
        index: usize,
        server: &Arc<GatewayServer>,
        shared: &UpstreamContext,
    ) -> Result<Self, UpstreamError> {
        let connection = transport::connect(index, server, 0, shared).map_err(|UpstreamError(why)| {
            UpstreamError(format!("the server `{}`: {why}", server.spec.name))
        })?;
        Ok(Self::with_connection(index, server, shared, Some(connection)))
    }

    /// A server that was added after the client had connected: its first message connects to it.
    pub(super) fn added(index: usize, server: &Arc<GatewayServer>, shared: &UpstreamContext) -> Self {
        Self::with_connection(index, server, shared, None)
    }

    fn with_connection(
        index: usize,
        server: &Arc<GatewayServer>,
        shared: &UpstreamContext,
        connection: Option<ServerConnection>,
    ) -> Self {
        Self {
            index,
            server: Arc::clone(server),
            is_added: connection.is_none(),
            transport: RwLock::new(TransportState::new(connection)),
            pending_requests: Mutex::default(),
            tools: ToolCache::default(),
            has_timed_out: AtomicBool::new(false),
            shared: shared.clone(),
        }
    }

    /// Its server.
    pub(super) fn server(&self) -> &Arc<GatewayServer> {
        &self.server
    }

    /// Its number among the servers of the connection.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.server.spec.name
    }

    /// Its tools.
    pub(crate) fn tools(&self) -> &ToolCache {
        &self.tools
    }

    /// Logs a problem with it.
    pub(crate) fn log(&self, message: &str) {
        self.shared.gateway.log(&format!("the server `{}`: {message}", self.server.spec.name));
    }

    /// The prefix of its tools' names, if it has one.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.server.spec.prefix.as_deref()
    }

    /// A name without the server's prefix. Returns `None` if the name does not have it.
    pub(super) fn unprefixed_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        match &self.server.spec.prefix {
            None => Some(name),
            Some(prefix) => name.strip_prefix(prefix.as_str()),
        }
    }

    /// Adds the server's prefix to the names of its items.
    pub(crate) fn prefix_names(&self, items: &mut [Value]) {
        let Some(prefix) = &self.server.spec.prefix else { return };
        for item in items {
            if let Some(Value::String(name)) = item.get_mut("name") {
                name.insert_str(0, prefix);
            }
        }
    }

    /// Sends a request of the client, under the client's id unless it is in use there.
    pub(super) async fn send_request(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
        receiver: ServerResponseReceiver,
    ) -> Result<(), UpstreamError> {
        let transport = self.live_transport(&message).await?;
        // While the lock is held the connection can't be lost, so a request registered now will be notified of its end.
        let Some(connection) = &transport.connection else { return Err(self.connection_lost()) };
        let requests = &self.shared.requests;
        let sent_as = requests.insert(&self.pending_requests, id, (transport.generation, receiver));
        let sent = match requests.record_sent(id, self.index, &sent_as) {
            true => connection.send(message.with_id(&sent_as)).await,
            // It was cancelled during the restart of the server.
            false => Err(UpstreamError("the client cancelled the request".to_owned())),
        };
        if sent.is_err() {
            self.take_response_receiver(&sent_as);
        }
        sent
    }

    /// Sends a message, and restarts the server if its connection was lost.
    pub(crate) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        match &self.live_transport(&message).await?.connection {
            Some(connection) => connection.send(message).await,
            None => Err(self.connection_lost()),
        }
    }

    /// Sends a request of the client after policies allowed it, and waits for the response.
    pub(crate) async fn request_for_client(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<JsonRpcMessage, UpstreamError> {
        let response = self.start_request_for_client(message, id).await?;
        response.await.map_err(|_| UpstreamError("the connection to the server was lost".to_owned()))
    }

    /// Sends a request of the client, and returns a receiver for the response.
    pub(crate) async fn start_request_for_client(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<oneshot::Receiver<JsonRpcMessage>, UpstreamError> {
        let (sender, response) = oneshot::channel();
        self.send_request(message, id, ServerResponseReceiver::Gateway(sender)).await?;
        Ok(response)
    }

    /// As [`request_for_client`](Self::request_for_client), for a request to all servers: none of them may delay the others for long.
    pub(crate) async fn request_with_timeout(
        &self,
        message: JsonRpcMessage,
        id: &RequestId,
    ) -> Result<JsonRpcMessage, UpstreamError> {
        let timeout = match self.has_timed_out.load(Ordering::Relaxed) {
            true => SILENT_SERVER_TIMEOUT,
            false => RESPONSE_TIMEOUT,
        };
        match tokio::time::timeout(timeout, self.request_for_client(message, id)).await {
            Ok(response) => response,
            Err(_) => {
                self.has_timed_out.store(true, Ordering::Relaxed);
                self.server.health.record_failure();
                Err(UpstreamError("it does not respond".to_owned()))
            }
        }
    }

    /// Sends a request of the gateway, and waits for the response.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<JsonRpcMessage, UpstreamError> {
        let id = self.shared.requests.new_id();
        self.request_for_client(JsonRpcMessage::request(&id, method, params), &id).await
    }

    /// As [`request`](Self::request), for the caller of a message.
    pub(crate) async fn request_for(
        &self,
        cause: &JsonRpcMessage,
        method: &str,
        params: Value,
    ) -> Result<JsonRpcMessage, UpstreamError> {
        let id = self.shared.requests.new_id();
        let request = JsonRpcMessage::request(&id, method, params).with_caller(cause.caller());
        self.request_for_client(request, &id).await
    }

    /// Records that it has sent a message, so that it gets the full timeout again.
    pub(super) fn record_activity(&self) {
        self.has_timed_out.store(false, Ordering::Relaxed);
        self.server.health.record_success();
    }

    /// Records that it can't be reached. It fails at once, so it gets the full timeout again.
    pub(super) fn record_failure(&self) {
        self.has_timed_out.store(false, Ordering::Relaxed);
        self.server.health.record_failure();
    }

    /// Reports its tools to the host.
    pub(crate) fn report_tools(&self, tools: &[ToolDescriptor]) {
        self.shared.gateway.report_tools(&self.server.spec.name, tools);
    }

    /// Whether a request with this id is pending at it.
    pub(super) fn has_pending(&self, id: &RequestId) -> bool {
        lock(&self.pending_requests).contains_key(id)
    }

    /// Cancels a request, unless it has been answered. `sent_as`: its id at the server.
    pub(crate) async fn cancel(&self, sent_as: &RequestId, reason: &str) {
        if self.take_response_receiver(sent_as).is_some() {
            let params = json!({ "requestId": sent_as.to_json(), "reason": reason });
            let _ = self.send(JsonRpcMessage::notification(method::CANCELLED, params)).await;
        }
    }

    /// Takes the receiver of its response to a request.
    pub(super) fn take_response_receiver(&self, id: &RequestId) -> Option<ServerResponseReceiver> {
        lock(&self.pending_requests).remove(id).map(|(_, receiver)| receiver)
    }

    /// Fails all pending requests of a lost transport connection.
    async fn fail_pending_requests(&self, generation: u64, why: &str) {
        let lost: Vec<ServerResponseReceiver> = {
            let mut pending = lock(&self.pending_requests);
            let lost = pending.extract_if(|_, (sent_on, _)| *sent_on == generation);
            lost.map(|(_, (_, receiver))| receiver).collect()
        };
        for receiver in lost {
            if let ServerResponseReceiver::Client { id, sender, .. } = receiver {
                self.shared.requests.respond_with_error(&id, &sender, why).await;
            }
        }
    }

    fn connection_lost(&self) -> UpstreamError {
        UpstreamError(format!(
            "the server `{}` is unavailable: the connection was lost",
            self.server.spec.name
        ))
    }
}
