//! Handles messages from servers: responses, requests to the client, and notifications.

use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, watch};

use super::ClientConnection;
use super::upstream::{EventStream, ResponseProcessing, ServerResponseReceiver, Upstream};
use crate::gateway_server::ServerList;
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::routes::{self, ListKind};
use crate::upstream_event::{UpstreamError, UpstreamEvent};
use crate::{approval_channels, method, method_requests, tasks, tool_list};
use callgate::safe_text::escape_controls;

impl ClientConnection {
    async fn handle_server_event(
        self: &Arc<Self>,
        upstream: &Upstream,
        generation: u64,
        event: UpstreamEvent,
    ) {
        match event {
            UpstreamEvent::Malformed { why, answers } => {
                upstream.log(&format!("it sent a malformed message: {why}"));
                for id in answers {
                    // A truncated line may contain an id without a pending request.
                    if !upstream.has_pending(&id) {
                        continue;
                    }
                    let message = "the server's response is malformed";
                    let response =
                        JsonRpcMessage::error_response(Some(&id), code::INTERNAL_ERROR, message, None);
                    self.handle_server_response(upstream, response, &id).await;
                }
            }
            UpstreamEvent::Problem(why) => upstream.log(&escape_controls(&why)),
            UpstreamEvent::Closed(UpstreamError(why)) => {
                upstream.handle_lost_connection(generation, &why).await;
            }
            UpstreamEvent::Failed { response, about } => {
                upstream.record_failure();
                self.handle_server_response(upstream, response, &about).await;
            }
            UpstreamEvent::Message { message, about } => {
                upstream.record_activity();
                match message.kind().clone() {
                    MessageKind::Response(id) => self.handle_server_response(upstream, message, &id).await,
                    MessageKind::Request(id) => {
                        self.handle_server_request(upstream, message, id, about.as_ref()).await;
                    }
                    MessageKind::Notification => {
                        self.handle_server_notification(upstream, message, about.as_ref()).await;
                    }
                    MessageKind::UnidentifiedError => {
                        let name = upstream.name();
                        self.gateway.log(&format!("the server `{name}` could not parse a message"));
                    }
                }
            }
        }
    }

    async fn handle_server_response(&self, upstream: &Upstream, message: JsonRpcMessage, id: &RequestId) {
        let Some(message) = method_requests::check_input_requests(self, upstream, message).await else {
            return;
        };
        match upstream.take_response_receiver(id) {
            None => {
                let name = upstream.name();
                self.gateway.log(&format!("the server `{name}` sent a response to an unknown request"));
            }
            Some(ServerResponseReceiver::Gateway(receiver)) => {
                let _ = receiver.send(message);
                // Messages that follow from this response go before the server's next message.
                tokio::task::yield_now().await;
            }
            Some(ServerResponseReceiver::Client { id, sender, then }) => {
                let message = self.process_response(upstream, then, message);
                self.requests.respond(&id, &sender, message).await;
            }
        }
    }

    /// Processes a response before it is forwarded to the client.
    pub(super) fn process_response(
        &self,
        upstream: &Upstream,
        then: ResponseProcessing,
        message: JsonRpcMessage,
    ) -> JsonRpcMessage {
        match then {
            ResponseProcessing::Forward => message,
            ResponseProcessing::Handshake => tool_list::declare_list_changed(&self.gateway, message),
            ResponseProcessing::FilterList(ListKind::Tools) => {
                tool_list::filter_tools(self, upstream, message)
            }
            ResponseProcessing::FilterList(list) => {
                method_requests::filter_items(self, upstream, list, message)
            }
            ResponseProcessing::RedactTask(task) => self.redact_task(&task, message),
        }
    }

    async fn handle_server_request(
        self: &Arc<Self>,
        upstream: &Upstream,
        message: JsonRpcMessage,
        id: RequestId,
        about: Option<&RequestId>,
    ) {
        if message.method() == method::ELICIT
            && message.param("message").is_some_and(approval_channels::imitates_callgate)
        {
            // Only the gateway may ask in its own name.
            upstream.log("it imitates an approval request of Callgate; the request is not forwarded");
            let why = "a request that mentions Callgate is not forwarded";
            let _ = upstream
                .send(JsonRpcMessage::error_response(Some(&id), code::INVALID_REQUEST, why, None))
                .await;
            return;
        }
        if routes::misread_request(message.method()).is_some() {
            let why = "unknown method";
            let error = JsonRpcMessage::error_response(Some(&id), code::METHOD_NOT_FOUND, why, None);
            let _ = upstream.send(error).await;
            return;
        }
        let sender = self.requests.select_sender(&message, about, &self.notifier.general_sender);
        if method_requests::is_evaluated(self, upstream.name(), message.method()) {
            let (connection, index) = (Arc::clone(self), upstream.index());
            tokio::spawn(async move {
                let Some(upstream) = connection.upstreams.find(index) else { return };
                let request = (&message, &id);
                let response =
                    method_requests::handle_server_request(&connection, &upstream, request, &sender).await;
                upstream.send_if_connected(response).await;
            });
            return;
        }
        let sent_as = self.requests.add_server_request(upstream.index(), &id);
        sender.send(message.with_id(&sent_as)).await;
    }

    async fn handle_server_notification(
        &self,
        upstream: &Upstream,
        message: JsonRpcMessage,
        about: Option<&RequestId>,
    ) {
        if !method_requests::may_be_notification(self, upstream.name(), message.method()) {
            return upstream.log("a request without an id is not forwarded");
        }
        if message.method() == method::TOOLS_CHANGED {
            upstream.tools().invalidate();
        }
        let sender = self.requests.select_sender(&message, about, &self.notifier.general_sender);
        let Some(message) = method_requests::check_input_requests(self, upstream, message).await else {
            return;
        };
        let message = match tasks::task_id(&message) {
            Some(task) => self.redact_task(&task, message),
            None => message,
        };
        sender.send(message).await;
    }
}

/// Handles the events of each new connection to a server, in a task of its own, and changes of the servers, until the client's connection
/// is closed.
pub(super) async fn handle_event_streams(
    connection: Weak<ClientConnection>,
    mut streams: mpsc::UnboundedReceiver<EventStream>,
    mut servers: watch::Receiver<ServerList>,
) {
    loop {
        let changed = async {
            if servers.changed().await.is_err() {
                // The gateway is gone, and so will be the connection.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => drop(tokio::spawn(handle_events(Weak::clone(&connection), stream))),
                None => return,
            },
            () = changed => {
                let list = Arc::clone(&*servers.borrow_and_update());
                let Some(connection) = connection.upgrade() else { return };
                connection.update_servers(&list);
            }
        }
    }
}

/// Handles a server's events until its connection or the client's is closed.
async fn handle_events(connection: Weak<ClientConnection>, mut stream: EventStream) {
    while let Some(event) = stream.events.recv().await {
        let Some(connection) = Weak::upgrade(&connection) else { return };
        let Some(upstream) = connection.upstreams.find(stream.server) else { return };
        connection.handle_server_event(&upstream, stream.generation, event).await;
    }
}
