//! Handles messages from the client: requests, notifications and responses.

use std::sync::{Arc, Weak};
use std::task::Poll;

use tokio::sync::watch;

use super::ClientConnection;
use super::request_table::{ClientResponseReceiver, LATE_RESPONSE_WINDOW};
use super::upstream::{ResponseProcessing, ServerResponseReceiver, Upstream};
use crate::client_sender::ClientSender;
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::method_requests::{ClientRequest, ResponseTimeout};
use crate::routes::{self, Route};
use crate::upstream_event::UpstreamError;
use crate::{approval_channels, method, method_requests, multiplexing, tasks, tool_calls};

impl ClientConnection {
    /// Handles a message from the client. Its response, and all messages that belong to it, go to `sender`.
    pub(crate) async fn handle_client_message(
        self: &Arc<Self>,
        message: JsonRpcMessage,
        sender: &ClientSender,
    ) {
        match message.kind().clone() {
            MessageKind::Request(id) => self.handle_request(message, id, sender).await,
            MessageKind::Notification => self.handle_notification(message).await,
            MessageKind::Response(id) => self.handle_client_response(message, &id).await,
            MessageKind::UnidentifiedError => self.gateway.log("the client could not parse a message"),
        }
    }

    async fn handle_request(
        self: &Arc<Self>,
        mut message: JsonRpcMessage,
        id: RequestId,
        sender: &ClientSender,
    ) {
        let Some(cancelled) = self.requests.add(&id, &message, sender) else {
            // Their responses could not be distinguished.
            let why = "a request with this id is still pending";
            let response = JsonRpcMessage::error_response(Some(&id), code::INVALID_REQUEST, why, None);
            return sender.send(response).await;
        };
        let route = Route::from_method(message.method());
        if route == Route::ToolCall {
            return self.start_tool_call(message, id, sender, cancelled).await;
        }
        if let Some(response) = ambiguity_response(&message, &id) {
            return self.requests.respond(&id, sender, response).await;
        }
        if route == Route::Initialize {
            self.client.set_initialize(&message);
        }
        let task = tasks::task_id(&message);
        let reply = approval_channels::take_reply(&mut message);
        let request = ClientRequest { id: id.clone(), sender: sender.clone(), reply, cancelled };
        match &*self.upstreams.all() {
            [] => self.requests.respond_with_error(&id, sender, "unknown server").await,
            [upstream] if method_requests::is_evaluated(self, upstream.name(), message.method()) => {
                self.start_evaluated_request(upstream, message, request);
            }
            [upstream] => {
                let then = response_processing(route, task);
                let receiver =
                    ServerResponseReceiver::Client { id: id.clone(), sender: sender.clone(), then };
                if let Err(UpstreamError(why)) = upstream.send_request(message, &id, receiver).await {
                    self.requests.respond_with_error(&id, sender, &why).await;
                }
            }
            _ => {
                let connection = Arc::clone(self);
                tokio::spawn(async move {
                    let mut response =
                        multiplexing::handle_request(&connection, route, message, &request).await;
                    if let Some(task) = task {
                        response = connection.redact_task(&task, response);
                    }
                    connection.requests.respond(&request.id, &request.sender, response).await;
                });
            }
        }
    }

    /// Starts a request to the only server that policies concern.
    fn start_evaluated_request(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        message: JsonRpcMessage,
        request: ClientRequest,
    ) {
        let (connection, upstream) = (Arc::clone(self), Arc::clone(upstream));
        tokio::spawn(async move {
            let (id, sender) = (&request.id, &request.sender);
            let sent = (&request, ResponseTimeout::None);
            match method_requests::start_request(&connection, &upstream, &message, sent).await {
                Ok(Some(response)) => {
                    let then = response_processing(Route::from_method(message.method()), None);
                    let response = connection.process_response(&upstream, then, response);
                    connection.requests.respond(id, sender, response).await;
                }
                Ok(None) => drop(connection.requests.remove(id)),
                Err(UpstreamError(why)) => connection.requests.respond_with_error(id, sender, &why).await,
            }
        });
    }

    /// Starts a tool call. The first part of it runs at once, so that calls reach the server in the order in which they arrived.
    async fn start_tool_call(
        self: &Arc<Self>,
        message: JsonRpcMessage,
        id: RequestId,
        sender: &ClientSender,
        cancelled: watch::Receiver<bool>,
    ) {
        let (connection, sender) = (Arc::clone(self), sender.clone());
        let mut call = Box::pin(async move {
            match tool_calls::call_tool(&connection, message, &id, &sender, cancelled).await {
                Some(response) => connection.requests.respond(&id, &sender, response).await,
                None => drop(connection.requests.remove(&id)),
            }
        });
        let is_over = std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready()));
        if !is_over.await {
            tokio::spawn(call);
        }
    }

    async fn handle_notification(self: &Arc<Self>, message: JsonRpcMessage) {
        if message.method() == method::CANCELLED {
            let Some(id) = message.param("requestId").and_then(RequestId::from_value) else { return };
            self.requests.cancel(&id);
            self.upstreams.forward_cancellation(&id, message.param("reason")).await;
            tokio::spawn(remove_cancelled_later(Arc::downgrade(self), id));
            return;
        }
        if method::resembles_tools_call(message.method()) {
            return self.gateway.log("a tool call without an id is not forwarded");
        }
        let may_be = |server: &Arc<Upstream>| {
            method_requests::may_be_notification(self, server.name(), message.method())
        };
        if !self.upstreams.all().iter().all(may_be) {
            return self.gateway.log("a request without an id is not forwarded");
        }
        self.upstreams.notify_all(&message).await;
    }

    async fn handle_client_response(&self, message: JsonRpcMessage, id: &RequestId) {
        match self.requests.take_response_receiver(id) {
            None => self.gateway.log("the client sent a response to an unknown request"),
            Some(ClientResponseReceiver::Gateway(receiver)) => drop(receiver.send(message)),
            Some(ClientResponseReceiver::Server(index, original)) => {
                if let Some(upstream) = self.upstreams.find(index) {
                    let _ = upstream.send(message.with_id(&original)).await;
                }
            }
        }
    }
}

/// The error response to a request that a lenient server could read as another one.
fn ambiguity_response(message: &JsonRpcMessage, id: &RequestId) -> Option<JsonRpcMessage> {
    if method::resembles_tools_call(message.method()) {
        let why = "unknown method; call tools by `tools/call`";
        return Some(JsonRpcMessage::error_response(Some(id), code::METHOD_NOT_FOUND, why, None));
    }
    if let Some(why) = tasks::find_ambiguity(message) {
        return Some(JsonRpcMessage::error_response(Some(id), code::INVALID_REQUEST, &why, None));
    }
    let meant = routes::misread_request(message.method())?;
    let why = format!("unknown method; did you mean `{meant}`?");
    Some(JsonRpcMessage::error_response(Some(id), code::METHOD_NOT_FOUND, &why, None))
}

/// How a single server's response is processed.
fn response_processing(route: Route, task: Option<String>) -> ResponseProcessing {
    match (task, route) {
        (Some(task), _) => ResponseProcessing::RedactTask(task),
        (None, Route::Merge(list)) => ResponseProcessing::FilterList(list),
        (None, Route::Initialize | Route::Discover) => ResponseProcessing::Handshake,
        (None, _) => ResponseProcessing::Forward,
    }
}

/// Removes a cancelled request after a delay: it needs no response, but one that arrives in the meantime is forwarded.
async fn remove_cancelled_later(connection: Weak<ClientConnection>, id: RequestId) {
    tokio::time::sleep(LATE_RESPONSE_WINDOW).await;
    if let Some(connection) = connection.upgrade() {
        connection.upstreams.remove_request(&id);
    }
}
