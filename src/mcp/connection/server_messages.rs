//! Handles messages from servers: responses, requests to the client, and notifications.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use super::{
    ClientConnection, ClientResponseReceiver, ConnectedServer, ResponseProcessing, ServerResponseReceiver,
    locked,
};
use crate::mcp::client_sender::ClientSender;
use crate::mcp::http_headers::META_SUBSCRIPTION;
use crate::mcp::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::mcp::upstream_server::{ConnectionClosed, UpstreamEvent};
use crate::mcp::{approval_channels, method, tasks, tool_list};
use crate::safe_text::escape_controls;

impl ClientConnection {
    pub(super) async fn handle_server_event(
        self: &Arc<Self>,
        index: usize,
        generation: u64,
        said: UpstreamEvent,
    ) {
        let Some(server) = self.servers.get(index) else { return };
        match said {
            UpstreamEvent::Malformed { why, answers } => {
                self.log_server(index, &format!("it sent a malformed message: {why}"));
                for id in answers {
                    // A truncated line may contain an id without a pending request.
                    if !locked(&server.awaiting).contains_key(&id) {
                        continue;
                    }
                    let message = "the server's response is malformed";
                    let answer =
                        JsonRpcMessage::error_response(Some(&id), code::INTERNAL_ERROR, message, None);
                    self.handle_server_response(index, server, answer, &id).await;
                }
            }
            UpstreamEvent::Trouble(why) => self.log_server(index, &escape_controls(&why)),
            UpstreamEvent::Gone(ConnectionClosed(why)) => {
                self.handle_lost_connection(index, generation, &why).await
            }
            UpstreamEvent::Frame { frame, about } => {
                server.has_timed_out.store(false, Ordering::Relaxed);
                match frame.kind().clone() {
                    MessageKind::Response(id) => self.handle_server_response(index, server, frame, &id).await,
                    MessageKind::Request(id) => {
                        self.handle_server_request(index, frame, id, about.as_ref()).await
                    }
                    MessageKind::Notification => {
                        if frame.method() == method::TOOLS_CHANGED {
                            server.tools.invalidate();
                        }
                        let outlet = self.select_sender(&frame, about.as_ref());
                        let frame = match tasks::task_id(&frame) {
                            Some(task) => tasks::redact(self, &task, frame),
                            None => frame,
                        };
                        outlet.send(frame).await;
                    }
                    MessageKind::UnidentifiedError => {
                        let name = &server.spec.name;
                        self.gateway.log(&format!("the server `{name}` could not parse a message"));
                    }
                }
            }
        }
    }

    pub(super) async fn handle_server_response(
        self: &Arc<Self>,
        index: usize,
        server: &ConnectedServer,
        frame: JsonRpcMessage,
        id: &RequestId,
    ) {
        let waits = locked(&server.awaiting).remove(id).map(|(_, waits)| waits);
        match waits {
            None => {
                let name = &server.spec.name;
                self.gateway.log(&format!("the server `{name}` sent a response to an unknown request"));
            }
            Some(ServerResponseReceiver::Gateway(tell)) => {
                let _ = tell.send(frame);
                // Messages that follow from this response go before the server's next message.
                tokio::task::yield_now().await;
            }
            Some(ServerResponseReceiver::Client { id, outlet, then }) => {
                let frame = match then {
                    ResponseProcessing::Nothing => frame,
                    ResponseProcessing::Handshake => tool_list::declare_list_changed(self, frame),
                    ResponseProcessing::FilterTools => tool_list::filter_tools(self, index, frame),
                    ResponseProcessing::RedactTask(task) => tasks::redact(self, &task, frame),
                };
                self.respond(&id, &outlet, frame).await;
            }
        }
    }

    pub(super) async fn handle_server_request(
        &self,
        index: usize,
        frame: JsonRpcMessage,
        id: RequestId,
        about: Option<&RequestId>,
    ) {
        if frame.method() == method::ELICIT
            && frame.param("message").is_some_and(approval_channels::imitates_callgate)
        {
            // Only the gateway may ask in its own name.
            self.log_server(
                index,
                "it imitates an approval request of Callgate; the request is not forwarded",
            );
            let message = "a request that mentions Callgate is not forwarded";
            let _ = self
                .send(index, JsonRpcMessage::error_response(Some(&id), code::INVALID_REQUEST, message, None))
                .await;
            return;
        }
        let outlet = self.select_sender(&frame, about);
        let asked_as = {
            let mut asking = locked(&self.asking);
            let free = if asking.contains_key(&id) { self.new_id() } else { id.clone() };
            asking.insert(free.clone(), ClientResponseReceiver::Server(index, id));
            free
        };
        outlet.send(frame.with_id(&asked_as)).await;
    }

    /// Selects the queue for a server's message: that of the request it belongs to, by its transport, progress token or subscription; else
    /// the general queue; or, if the client does not read that, the queue of the only pending request.
    pub(super) fn select_sender(&self, frame: &JsonRpcMessage, about: Option<&RequestId>) -> ClientSender {
        let asked = locked(&self.asked);
        let token = frame.param("progressToken").and_then(RequestId::from_value);
        let by_token =
            token.and_then(|token| asked.values().find(|asked| asked.progress.as_ref() == Some(&token)));
        let subscription = frame.meta(META_SUBSCRIPTION).and_then(RequestId::from_value);
        let by_request = || {
            let about = about.or(subscription.as_ref())?;
            asked.values().find(|asked| asked.sent.iter().any(|(_, id)| id == about))
        };
        let the_only = || match asked.len() {
            1 if self.general.is_closed() => asked.values().next(),
            _ => None,
        };
        let found = by_token.or_else(by_request).or_else(the_only);
        found.map_or_else(|| self.general.clone(), |asked| asked.outlet.clone())
    }
}

/// Handles a server's events until its connection or the client's is closed.
pub(super) async fn handle_events(
    link: Weak<ClientConnection>,
    index: usize,
    generation: u64,
    mut heard: mpsc::Receiver<UpstreamEvent>,
) {
    while let Some(said) = heard.recv().await {
        let Some(link) = link.upgrade() else { return };
        link.handle_server_event(index, generation, said).await;
    }
}
