//! Notifies one client that its tool list may have changed.

use std::sync::Arc;

use super::client_info::ClientInfo;
use super::client_sender::ClientSender;
use super::connection::RequestTable;
use super::http_headers::META_SUBSCRIPTION;
use super::jsonrpc::JsonRpcMessage;
use super::method;
use callgate::json::json;

/// The streams on which a client receives notifications.
pub(super) struct ToolChangeNotifier {
    pub(super) client: Arc<ClientInfo>,
    pub(super) requests: Arc<RequestTable>,
    /// The queue for messages that belong to no request.
    pub(super) general_sender: ClientSender,
}

impl ToolChangeNotifier {
    /// Notifies the client that its tool list may have changed: on the general stream after a handshake, and on its subscriptions.
    pub(super) async fn notify_tools_changed(&self) {
        if self.client.initialize().is_some() {
            self.general_sender.send(JsonRpcMessage::notification(method::TOOLS_CHANGED, json!({}))).await;
        }
        for (id, sender) in self.requests.tool_subscriptions() {
            let params = json!({ "_meta": { META_SUBSCRIPTION: id.to_json() } });
            sender.send(JsonRpcMessage::notification(method::TOOLS_CHANGED, params)).await;
        }
    }
}
