//! The handshake of the gateway's own connections to servers, without a client whose handshake it would repeat.

use std::pin::pin;
use std::time::Duration;

use super::connection::{ClientConnection, Upstream};
use super::jsonrpc::{JsonRpcMessage, RequestId};
use super::method;
use super::upstream_event::UpstreamError;
use callgate::json::json;

/// The protocol version for servers that don't support 2026-07-28.
const LEGACY_VERSION: &str = "2025-11-25";
const MODERN_VERSION: &str = "2026-07-28";
/// Some servers don't answer unknown methods. One that is silent for this long gets the older handshake.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Performs the handshake in the protocol version that the server supports; returns a message in it, as a template for later requests.
pub(super) async fn handshake(
    connection: &ClientConnection,
    upstream: &Upstream,
) -> Result<JsonRpcMessage, UpstreamError> {
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
        response = upstream.request(method::INITIALIZE, initialize.clone()) => response?,
    };
    if let Some(error) = response.error_value() {
        return Err(UpstreamError(format!("it rejects the handshake: {error}")));
    }
    // A server that is restarted gets it again.
    connection.client.set_initialize(&JsonRpcMessage::request(&id, method::INITIALIZE, initialize));
    let _ = upstream.send(JsonRpcMessage::notification(method::INITIALIZED, json!({}))).await;
    Ok(JsonRpcMessage::request(&id, method::TOOLS_LIST, json!({})))
}
