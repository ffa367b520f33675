//! Handles `tools/list`: caches each server's tools, and filters the list for the client.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::argument_names;
use super::connection::ClientConnection;
use super::http_headers::HeaderArguments;
use super::jsonrpc::JsonRpcMessage;
use super::method;
use super::pins::PinStatus;
use crate::json::{Map, Value, json};
use crate::tools::ToolDescriptor;

/// How long a server has to list its tools before calls proceed without the list.
const LISTING: Duration = Duration::from_secs(20);
/// The maximum number of pages of one list.
const MAX_PAGES: usize = 100;

/// The cached tools of a server, as far as it has listed them.
#[derive(Debug, Default)]
pub(super) struct ToolCache {
    known: Mutex<CachedTools>,
    /// Held while the list is requested.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CachedTools {
    tools: HashMap<String, Value>,
    /// The list is complete, and has not changed since.
    complete: bool,
}

impl ToolCache {
    fn known(&self) -> MutexGuard<'_, CachedTools> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Invalidates the list: the server's tools have changed.
    pub(super) fn invalidate(&self) {
        self.known().complete = false;
    }

    /// Whether a tool of this name is known.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known().tools.contains_key(name)
    }

    /// A tool whose name a lenient server may read in this spelling.
    pub(super) fn similar(&self, name: &str) -> Option<String> {
        let known = self.known();
        let alike = |other: &&String| method::plain(other).eq(method::plain(name));
        known.tools.keys().find(alike).cloned()
    }

    /// An argument that lenient servers read as another argument of the tool.
    pub(super) fn ambiguous_argument(&self, tool: &str, given: &Value) -> Option<String> {
        let known = self.known();
        argument_names::find_ambiguous(known.tools.get(tool)?.get("inputSchema")?, given).map(str::to_owned)
    }

    /// The server's description of a tool.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.known().tools.get(name).cloned()
    }

    /// All tools, sorted by name.
    pub(super) fn all(&self) -> Vec<(String, Value)> {
        let known = self.known();
        let mut all: Vec<_> = known.tools.iter().map(|(name, tool)| (name.clone(), tool.clone())).collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    fn add(&self, tools: &[Value]) {
        let mut known = self.known();
        for tool in tools {
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                known.tools.insert(name.to_owned(), tool.clone());
            }
        }
    }
}

/// Filters a list of tools for the client: removes tools that are always denied, and tools that are not reviewed if review is required.
pub(super) fn filter_tools(
    link: &ClientConnection,
    index: usize,
    mut frame: JsonRpcMessage,
) -> JsonRpcMessage {
    let Some(server) = link.server(index) else { return frame };
    let Some(result) = frame.result_mut() else { return frame };
    let Some(Value::Array(tools)) = result.get_mut("tools") else { return frame };
    server.tools.add(tools);
    register_tools(link, index);
    let before = tools.len();
    let mut quarantined = Vec::new();
    tools.retain(|tool| {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let standing = link.gateway.pin_status(&server.spec.name, name, tool);
        if standing != PinStatus::Accepted {
            quarantined.push(name.to_owned());
        }
        standing == PinStatus::Accepted && !link.session.never_runs(&server.spec.name, name)
    });
    link.gateway.log_quarantine(&server.spec.name, &quarantined);
    let hides = tools.len() < before;
    link.prefix_names(index, tools);
    // The filtered list differs between clients and after a reload, so it must not be shared or cached.
    if hides && let Some(result) = result.as_object_mut() {
        if result.contains_key("cacheScope") {
            result.insert("cacheScope".to_owned(), "private".into());
        }
        if result.contains_key("ttlMs") {
            result.insert("ttlMs".to_owned(), json!(0));
        }
    }
    frame
}

/// Registers a server's tools with the session, for their schemas and hints.
fn register_tools(link: &ClientConnection, index: usize) {
    let Some(server) = link.server(index) else { return };
    let known = server.tools.known();
    link.session.add_tools(known.tools.values().filter_map(|tool| descriptor(tool, &server.spec.name)));
}

fn descriptor(tool: &Value, server: &str) -> Option<ToolDescriptor> {
    Some(ToolDescriptor {
        name: tool.get("name")?.as_str()?.to_owned(),
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        input_schema: tool.get("inputSchema").cloned(),
        annotations: tool.get("annotations").cloned(),
        server: Some(server.to_owned()),
        once: false,
        idempotent: false,
    })
}

/// Loads the tools of a server before one of them is called. Returns whether all are known; `false` if the server does not list them.
pub(super) async fn load_tools(link: &ClientConnection, index: usize, call: &JsonRpcMessage) -> bool {
    let Some(server) = link.server(index) else { return false };
    if server.tools.known().complete {
        return true;
    }
    let _asking = server.tools.asking.lock().await;
    if server.tools.known().complete {
        return true;
    }
    server.tools.known().tools.clear();
    let (mut cursor, mut listed) = (None, false);
    for _ in 0..MAX_PAGES {
        let asked = link.request_server(index, method::TOOLS_LIST, list_params(call, cursor));
        let page = match tokio::time::timeout(LISTING, asked).await {
            Ok(Ok(page)) => page,
            Ok(Err(_)) => return false,
            Err(_) => {
                link.log_server(index, "it does not respond to `tools/list`");
                break;
            }
        };
        let Some(tools) = page.result_value().and_then(|result| result.get("tools")?.as_array()) else {
            break;
        };
        listed = true;
        server.tools.add(tools);
        cursor = page.result_value().and_then(|result| result.get("nextCursor")).cloned();
        if cursor.is_none() {
            break;
        }
    }
    // Not requested again with each call: a server that lists none sends a notification when that changes.
    server.tools.known().complete = true;
    register_tools(link, index);
    listed
}

/// The arguments that the tool of a call requires in headers. Returns `None` if the message does not call a known tool.
pub(super) async fn header_arguments(
    link: &ClientConnection,
    call: &JsonRpcMessage,
) -> Option<HeaderArguments> {
    if call.method() != method::TOOLS_CALL {
        return None;
    }
    let (index, tool) = link.route(call.param("name")?.as_str()?)?;
    load_tools(link, index, call).await;
    let tool = link.server(index)?.tools.get(tool)?;
    Some(HeaderArguments::from_schema(tool.get("inputSchema")?))
}

/// Parameters of a `tools/list` in the same protocol version as a call.
fn list_params(call: &JsonRpcMessage, cursor: Option<Value>) -> Value {
    let mut params = Map::new();
    if let Some(Value::Object(meta)) = call.param("_meta") {
        let of_protocol = meta.iter().filter(|(key, _)| key.starts_with("io.modelcontextprotocol/"));
        let meta: Map = of_protocol.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), Value::Object(meta));
        }
    }
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor);
    }
    Value::Object(params)
}

/// Adds `listChanged` of tools to the response to `initialize` or `server/discover` if the gateway itself notifies clients of it.
/// Without a handshake, clients of a server without subscriptions can't be notified, so nothing is declared then.
pub(super) fn declare_list_changed(link: &ClientConnection, mut answer: JsonRpcMessage) -> JsonRpcMessage {
    let Some(result) = answer.result_mut().filter(|_| link.gateway.notifies_tool_changes()) else {
        return answer;
    };
    let shakes_hands = result.get("protocolVersion").is_some();
    let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) else {
        return answer;
    };
    let is_on = |capability: &Value| {
        ["listChanged", "subscribe"].iter().any(|name| capability.get(name) == Some(&Value::Bool(true)))
    };
    let takes_subscriptions = capabilities.values().any(is_on);
    if let Some(tools) = capabilities.get_mut("tools").and_then(Value::as_object_mut)
        && (shakes_hands || takes_subscriptions)
    {
        tools.insert("listChanged".to_owned(), true.into());
    }
    answer
}
