//! Handles `tools/list`: loads each server's tools, and filters the list for the client.

use std::time::Duration;

use super::connection::{ClientConnection, Upstream};
use super::gateway::Gateway;
use super::http_headers::HeaderArguments;
use super::jsonrpc::JsonRpcMessage;
use super::method;
use super::pins::PinStatus;
use callgate::json::{Map, Value, json};
use callgate::session::ConcurrentSession;

/// How long a server has to list its tools before calls proceed without the list.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum number of pages of one list.
const MAX_PAGES: usize = 100;

/// Filters a list of tools for the client: removes tools that are always denied, and tools that are not reviewed if review is required.
pub(super) fn filter_tools(
    connection: &ClientConnection,
    upstream: &Upstream,
    mut response: JsonRpcMessage,
) -> JsonRpcMessage {
    let (gateway, session) = (&connection.gateway, &connection.session);
    let Some(result) = response.result_mut() else { return response };
    let Some(Value::Array(tools)) = result.get_mut("tools") else { return response };
    upstream.tools().add(tools);
    register_tools(session, upstream);
    let before = tools.len();
    let mut quarantined = Vec::new();
    tools.retain(|tool| {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let status = gateway.pin_status(upstream.name(), name, tool);
        if status != PinStatus::Accepted {
            quarantined.push(name.to_owned());
        }
        status == PinStatus::Accepted && !session.never_runs(upstream.name(), name)
    });
    gateway.log_quarantine(upstream.name(), &quarantined);
    let hides = tools.len() < before;
    upstream.prefix_names(tools);
    if hides {
        forbid_sharing(result);
    }
    response
}

/// Marks a filtered list: it differs between clients and after a reload, so it must not be shared or cached.
pub(super) fn forbid_sharing(result: &mut Value) {
    let Some(result) = result.as_object_mut() else { return };
    if result.contains_key("cacheScope") {
        result.insert("cacheScope", "private".into());
    }
    if result.contains_key("ttlMs") {
        result.insert("ttlMs", json!(0));
    }
}

/// Registers a server's tools with the session, for their schemas and hints, and reports them to the host.
fn register_tools(session: &ConcurrentSession, upstream: &Upstream) {
    let tools = upstream.tools().descriptors(upstream.name());
    upstream.report_tools(&tools);
    session.add_tools(upstream.name(), tools);
}

/// Loads the tools of a server before one of them is called. Returns whether all are known; `false` if the server does not list them.
pub(super) async fn load_tools(
    session: &ConcurrentSession,
    upstream: &Upstream,
    call: &JsonRpcMessage,
) -> bool {
    let tools = upstream.tools();
    if tools.is_complete() {
        return true;
    }
    let _loading = tools.lock_for_load().await;
    if tools.is_complete() {
        return true;
    }
    tools.clear();
    let (mut cursor, mut is_listed) = (None, false);
    for _ in 0..MAX_PAGES {
        let request = upstream.request_for(call, method::TOOLS_LIST, list_params(call, cursor));
        let page = match tokio::time::timeout(LIST_TIMEOUT, request).await {
            Ok(Ok(page)) => page,
            Ok(Err(_)) => return false,
            Err(_) => {
                upstream.log("it does not respond to `tools/list`");
                break;
            }
        };
        let Some(listed) = page.result_value().and_then(|result| result.get("tools")?.as_array()) else {
            break;
        };
        is_listed = true;
        tools.add(listed);
        cursor = page.result_value().and_then(|result| result.get("nextCursor")).cloned();
        if cursor.is_none() {
            break;
        }
    }
    // Not requested again with each call: a server that lists none sends a notification when that changes.
    tools.complete();
    register_tools(session, upstream);
    is_listed
}

/// The arguments that the tool of a call requires in headers. Returns `None` if the message does not call a known tool.
pub(super) async fn header_arguments(
    connection: &ClientConnection,
    call: &JsonRpcMessage,
) -> Option<HeaderArguments> {
    if call.method() != method::TOOLS_CALL {
        return None;
    }
    let (upstream, tool) = connection.upstreams.route(call.param("name")?.as_str()?)?;
    load_tools(&connection.session, &upstream, call).await;
    let tool = upstream.tools().get(tool)?;
    Some(HeaderArguments::from_schema(tool.get("inputSchema")?))
}

/// Parameters of a `tools/list` in the same protocol version as a call.
fn list_params(call: &JsonRpcMessage, cursor: Option<Value>) -> Value {
    let mut params = Map::new();
    if let Some(Value::Object(meta)) = call.param("_meta") {
        let of_protocol = meta.iter().filter(|(key, _)| key.starts_with("io.modelcontextprotocol/"));
        let meta: Map = of_protocol.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !meta.is_empty() {
            params.insert("_meta", Value::Object(meta));
        }
    }
    if let Some(cursor) = cursor {
        params.insert("cursor", cursor);
    }
    Value::Object(params)
}

/// Adds `listChanged` of tools to the response to `initialize` or `server/discover` if the gateway itself notifies clients of it.
/// Without a handshake, clients of a server without subscriptions can't be notified, so nothing is declared then.
pub(super) fn declare_list_changed(gateway: &Gateway, mut response: JsonRpcMessage) -> JsonRpcMessage {
    let Some(result) = response.result_mut().filter(|_| gateway.notifies_tool_changes()) else {
        return response;
    };
    let is_handshake = result.get("protocolVersion").is_some();
    let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) else {
        return response;
    };
    let is_on = |capability: &Value| {
        ["listChanged", "subscribe"].iter().any(|name| capability.get(name) == Some(&Value::Bool(true)))
    };
    let has_subscriptions = capabilities.values().any(is_on);
    if let Some(tools) = capabilities.get_mut("tools").and_then(Value::as_object_mut)
        && (is_handshake || has_subscriptions)
    {
        tools.insert("listChanged", true.into());
    }
    response
}
