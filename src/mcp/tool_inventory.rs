//! The inventory of all servers' tools as they describe them now, for a review.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::client_sender::ClientSender;
use super::connection::{ClientConnection, ClientContext};
use super::gateway::Gateway;
use super::jsonrpc::{JsonRpcMessage, RequestId};
use super::method;
use super::tool_list;
use super::upstream_server::ConnectionClosed;
use crate::json::{Value, json};

/// The protocol version for servers that don't support 2026-07-28.
const LEGACY_VERSION: &str = "2025-11-25";
const MODERN_VERSION: &str = "2026-07-28";
/// Some servers don't answer unknown methods. One that is silent for this long gets the older handshake.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server has to list its tools; its package may have to be installed first.
const PATIENCE: Duration = Duration::from_secs(300);

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
    pub async fn list_tools(self: &Arc<Self>) -> Result<Vec<ToolInventory>, String> {
        // Messages from servers to the client are dropped: there is no client.
        let (outlet, _) = ClientSender::lossy();
        let link = ClientConnection::open(self, &ClientContext::default(), outlet.clone())
            .map_err(|ConnectionClosed(why)| why)?;
        let mut inspected = Vec::new();
        for (index, spec) in self.servers.iter().enumerate() {
            let listed = async {
                let envelope = greet(&link, index).await?;
                Ok(tool_list::load_tools(&link, index, &envelope).await)
            };
            let listed = tokio::time::timeout(PATIENCE, listed).await;
            let listed = listed.unwrap_or_else(|_| Err("it does not respond".to_owned()));
            if !listed.map_err(|why| format!("the server `{}`: {why}", spec.name))? {
                return Err(format!("the server `{}` does not list its tools", spec.name));
            }
            let tools = link.server(index).map(|server| server.tools.all()).unwrap_or_default();
            inspected.push(ToolInventory { server: spec.name.clone(), tools });
        }
        link.close().await;
        Ok(inspected)
    }
}

/// Performs the handshake in the protocol version that the server supports; returns a message in it, as a template for later requests.
async fn greet(link: &ClientConnection, index: usize) -> Result<JsonRpcMessage, String> {
    let about = json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": about,
    });
    let modern = json!({ "_meta": meta });
    let id = RequestId::from_text("callgate");
    let ask = |method: &'static str, params: Value| link.request_server(index, method, params);
    let mut discovered = pin!(ask(method::DISCOVER, modern.clone()));
    let answer = tokio::time::timeout(DISCOVER_TIMEOUT, &mut discovered).await;
    let has_timed_out = answer.is_err();
    if let Ok(answer) = answer
        && answer.map_err(|ConnectionClosed(why)| why)?.result_value().is_some()
    {
        return Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, modern));
    }
    let late = async {
        // A server that starts slowly may still answer.
        if !(has_timed_out && discovered.await.is_ok_and(|answer| answer.result_value().is_some())) {
            std::future::pending::<()>().await;
        }
    };
    let greeting = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": about });
    let answer = tokio::select! {
        () = late => return Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, modern)),
        answer = ask(method::INITIALIZE, greeting) => answer.map_err(|ConnectionClosed(why)| why)?,
    };
    if let Some(error) = answer.error_value() {
        return Err(format!("it rejects the handshake: {error}"));
    }
    link.notify_server(index, JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await;
    Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, json!({})))
}
