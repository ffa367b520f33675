//! Handles messages from the client: requests, notifications and responses.

use std::sync::{Arc, Weak};
use std::task::Poll;

use tokio::sync::watch;

use super::{
    ClientConnection, ClientRequest, ClientResponseReceiver, LATE_RESPONSE_WINDOW, ResponseProcessing,
    ServerResponseReceiver, locked,
};
use crate::json::{Value, json};
use crate::mcp::client_sender::ClientSender;
use crate::mcp::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::mcp::upstream_server::ConnectionClosed;
use crate::mcp::{method, multiplexing, tasks, tool_calls};

impl ClientConnection {
    /// Handles a message from the client. Its response, and all messages that belong to it, go to `outlet`.
    pub(in crate::mcp) async fn handle_client_message(
        self: &Arc<Self>,
        frame: JsonRpcMessage,
        outlet: &ClientSender,
    ) {
        match frame.kind().clone() {
            MessageKind::Request(id) => self.handle_request(frame, id, outlet).await,
            MessageKind::Notification => self.handle_notification(frame).await,
            MessageKind::Response(id) => self.handle_client_response(frame, &id).await,
            MessageKind::UnidentifiedError => self.gateway.log("the client could not parse a message"),
        }
    }

    pub(super) async fn handle_request(
        self: &Arc<Self>,
        frame: JsonRpcMessage,
        id: RequestId,
        outlet: &ClientSender,
    ) {
        let asked = ClientRequest {
            outlet: outlet.clone(),
            progress: frame.meta("progressToken").and_then(RequestId::from_value),
            subscribes_to_tools: frame.method() == method::LISTEN
                && frame.param_at(&["notifications", "toolsListChanged"]) == Some(&Value::Bool(true)),
            sent: Vec::new(),
            cancel: watch::Sender::new(false),
        };
        let cancelled = asked.cancel.subscribe();
        let is_taken = {
            let mut all = locked(&self.asked);
            match all.entry(id.clone()) {
                std::collections::hash_map::Entry::Occupied(_) => true,
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(asked);
                    false
                }
            }
        };
        if is_taken {
            // Their responses could not be distinguished.
            let message = "a request with this id is still pending";
            return outlet
                .send(JsonRpcMessage::error_response(Some(&id), code::INVALID_REQUEST, message, None))
                .await;
        }
        match frame.method() {
            method::TOOLS_CALL => {
                let (link, outlet) = (Arc::clone(self), outlet.clone());
                let mut call = Box::pin(async move {
                    match tool_calls::call_tool(&link, frame, &id, &outlet, cancelled).await {
                        Some(answer) => link.respond(&id, &outlet, answer).await,
                        None => drop(locked(&link.asked).remove(&id)),
                    }
                });
                // Polled once before it is spawned, so that calls reach the server in the order in which they arrived.
                let is_over =
                    std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready()));
                if !is_over.await {
                    tokio::spawn(call);
                }
            }
            method if method::resembles_tools_call(method) => {
                let message = "unknown method; call tools by `tools/call`";
                let answer = JsonRpcMessage::error_response(Some(&id), code::METHOD_NOT_FOUND, message, None);
                self.respond(&id, outlet, answer).await;
            }
            method => {
                if let Some(message) = tasks::find_ambiguity(&frame) {
                    let answer =
                        JsonRpcMessage::error_response(Some(&id), code::INVALID_REQUEST, &message, None);
                    return self.respond(&id, outlet, answer).await;
                }
                if method == method::INITIALIZE {
                    self.client.set_initialize(&frame);
                }
                let task = tasks::task_id(&frame);
                if self.servers.len() > 1 {
                    let (link, outlet) = (Arc::clone(self), outlet.clone());
                    tokio::spawn(async move {
                        let mut answer = multiplexing::handle_request(&link, frame, &id).await;
                        if let Some(task) = task {
                            answer = tasks::redact(&link, &task, answer);
                        }
                        link.respond(&id, &outlet, answer).await;
                    });
                    return;
                }
                let then = match task {
                    Some(task) => ResponseProcessing::RedactTask(task),
                    None if method == method::TOOLS_LIST => ResponseProcessing::FilterTools,
                    None if matches!(method, method::INITIALIZE | method::DISCOVER) => {
                        ResponseProcessing::Handshake
                    }
                    None => ResponseProcessing::Nothing,
                };
                self.forward_request(0, frame, id, outlet, then).await;
            }
        }
    }

    /// Sends the response to a request of the client.
    pub(super) async fn respond(&self, id: &RequestId, outlet: &ClientSender, answer: JsonRpcMessage) {
        locked(&self.asked).remove(id);
        outlet.send(answer.with_id(id)).await;
    }

    /// Answers a request of the client with an error, unless the client cancelled it.
    pub(super) async fn respond_with_error(&self, id: &RequestId, outlet: &ClientSender, why: &str) {
        let asked = locked(&self.asked).remove(id);
        if asked.is_none_or(|asked| !*asked.cancel.borrow()) {
            outlet.send(JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, why, None)).await;
        }
    }

    /// Forwards a request to a server.
    pub(super) async fn forward_request(
        &self,
        index: usize,
        frame: JsonRpcMessage,
        id: RequestId,
        outlet: &ClientSender,
        then: ResponseProcessing,
    ) {
        let waits = ServerResponseReceiver::Client { id: id.clone(), outlet: outlet.clone(), then };
        if let Err(ConnectionClosed(why)) = self.send_request(index, frame, &id, waits).await {
            self.respond_with_error(&id, outlet, &why).await;
        }
    }

    /// Forwards the cancellation of a client's request to its servers.
    pub(in crate::mcp) async fn forward_cancellation(&self, id: &RequestId, reason: Option<&Value>) {
        let sent = locked(&self.asked).get(id).map(|asked| asked.sent.clone()).unwrap_or_default();
        for (index, sent_as) in sent {
            let mut params = json!({ "requestId": sent_as.to_json() });
            if let (Some(reason), Some(params)) = (reason, params.as_object_mut()) {
                params.insert("reason".to_owned(), reason.clone());
            }
            let _ = self.send(index, JsonRpcMessage::notification(method::CANCELLED, params)).await;
        }
    }

    /// Cancels a request that took too long, at all servers that have not answered it.
    pub(in crate::mcp) async fn cancel_pending(&self, id: &RequestId) {
        let sent = locked(&self.asked).get(id).map(|asked| asked.sent.clone()).unwrap_or_default();
        for (index, sent_as) in sent {
            let Some(server) = self.servers.get(index) else { continue };
            if locked(&server.awaiting).remove(&sent_as).is_some() {
                let params = json!({ "requestId": sent_as.to_json(), "reason": "it took too long" });
                let _ = self.send(index, JsonRpcMessage::notification(method::CANCELLED, params)).await;
            }
        }
    }

    pub(super) async fn handle_notification(&self, frame: JsonRpcMessage) {
        if frame.method() == method::CANCELLED {
            let Some(id) = frame.param("requestId").and_then(RequestId::from_value) else { return };
            if let Some(asked) = locked(&self.asked).get(&id) {
                asked.cancel.send_replace(true);
            }
            self.forward_cancellation(&id, frame.param("reason")).await;
            tokio::spawn(remove_cancelled_later(Weak::clone(&self.me), id));
            return;
        }
        if method::resembles_tools_call(frame.method()) {
            return self.gateway.log("a tool call without an id is not forwarded");
        }
        for index in 0..self.servers.len() {
            let _ = self.send(index, frame.clone()).await;
        }
    }

    pub(super) async fn handle_client_response(&self, frame: JsonRpcMessage, id: &RequestId) {
        let waits = locked(&self.asking).remove(id);
        match waits {
            None => self.gateway.log("the client sent a response to an unknown request"),
            Some(ClientResponseReceiver::Gateway(tell)) => drop(tell.send(frame)),
            Some(ClientResponseReceiver::Server(index, own)) => {
                let _ = self.send(index, frame.with_id(&own)).await;
            }
        }
    }
}

/// Removes a cancelled request after a delay: it needs no response, but one that arrives in the meantime is forwarded.
async fn remove_cancelled_later(link: Weak<ClientConnection>, id: RequestId) {
    tokio::time::sleep(LATE_RESPONSE_WINDOW).await;
    let Some(link) = link.upgrade() else { return };
    let Some(asked) = locked(&link.asked).remove(&id) else { return };
    for (index, sent_as) in asked.sent {
        if let Some(server) = link.servers.get(index) {
            locked(&server.awaiting).remove(&sent_as);
        }
    }
}
