//! The inventory of all servers' tools as they describe them now, for a review.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::client_info::ClientContext;
use super::client_sender::ClientSender;
use super::connection::{ClientConnection, Upstream};
use super::gateway::Gateway;
use super::jsonrpc::{JsonRpcMessage, RequestId};
use super::method;
use super::tool_list;
use super::upstream_event::UpstreamError;
use callgate::json::{Value, json};

/// The protocol version for servers that don't support 2026-07-28.
const LEGACY_VERSION: &str = "2025-11-25";
const MODERN_VERSION: &str = "2026-07-28";
/// Some servers don't answer unknown methods. One that is silent for this long gets the older handshake.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server has to list its tools; its package may have to be installed first.
const LIST_TIMEOUT: Duration = Duration::from_secs(300);

/// A server and its current tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInventory {
    /// Its name.
    pub server: String,
    /// Its tools by their own (unprefixed) names, sorted.
    pub tools: Vec<(String, Value)>,
}

impl Gateway {
    /// Lists the tools of all servers, as a client would.
    ///
    /// # Errors
    /// A server can't be started, or does not list its tools.
    pub async fn list_tools(self: &Arc<Self>) -> Result<Vec<ToolInventory>, UpstreamError> {
        // Messages from servers to the client are dropped: there is no client.
        let (sender, _) = ClientSender::lossy();
        let connection = ClientConnection::open(self, &ClientContext::default(), sender)?;
        let mut inventories = Vec::new();
        for upstream in connection.upstreams.as_slice() {
            let name = upstream.name();
            let listed = async {
                let envelope = handshake(upstream).await?;
                Ok(tool_list::load_tools(&connection.session, upstream, &envelope).await)
            };
            let listed = tokio::time::timeout(LIST_TIMEOUT, listed).await;
            let listed = listed.unwrap_or_else(|_| Err(UpstreamError("it does not respond".to_owned())));
            if !listed.map_err(|error| UpstreamError(format!("the server `{name}`: {error}")))? {
                return Err(UpstreamError(format!("the server `{name}` does not list its tools")));
            }
            inventories.push(ToolInventory { server: name.to_owned(), tools: upstream.tools().all() });
        }
        connection.close().await;
        Ok(inventories)
    }
}

/// Performs the handshake in the protocol version that the server supports; returns a message in it, as a template for later requests.
async fn handshake(upstream: &Upstream) -> Result<JsonRpcMessage, UpstreamError> {
    let client_info = json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": client_info,
    });
    let modern = json!({ "_meta": meta });
    let id = RequestId::from_text("callgate");
    let mut discovered = pin!(upstream.request(method::DISCOVER, modern.clone()));
    let response = tokio::time::timeout(DISCOVER_TIMEOUT, &mut discovered).await;
    let has_timed_out = response.is_err();
    if let Ok(response) = response
        && response?.result_value().is_some()
    {
        return Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, modern));
    }
    let late = async {
        // A server that starts slowly may still answer.
        if !(has_timed_out && discovered.await.is_ok_and(|response| response.result_value().is_some())) {
            std::future::pending::<()>().await;
        }
    };
    let initialize =
        json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": client_info });
    let response = tokio::select! {
        () = late => return Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, modern)),
        response = upstream.request(method::INITIALIZE, initialize) => response?,
    };
    if let Some(error) = response.error_value() {
        return Err(UpstreamError(format!("it rejects the handshake: {error}")));
    }
    let _ = upstream.send(JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await;
    Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, json!({})))
}
