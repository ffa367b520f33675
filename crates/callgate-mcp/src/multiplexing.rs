//! Multiplexing of several servers behind one connection: merges their lists and handshakes, and routes requests by name prefix.

use std::sync::Arc;

use super::connection::{ClientConnection, Upstream};
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::method_requests::{self, ClientRequest, ResponseTimeout};
use super::routes::{ListKind, Route};
use super::tool_list;
use super::upstream_event::UpstreamError;
use callgate::json::{Map, Value, json};

/// The maximum number of pages of one list.
const MAX_PAGES: usize = 100;

/// The responses of all servers, in their order.
type Responses = Vec<(Arc<Upstream>, Result<JsonRpcMessage, UpstreamError>)>;

/// Answers a request that is for all servers, or for the one that it names.
pub(super) async fn handle_request(
    connection: &ClientConnection,
    route: Route,
    message: JsonRpcMessage,
    request: &ClientRequest,
) -> JsonRpcMessage {
    let id = &request.id;
    match route {
        Route::Merge(list) => merge_list(connection, &message, request, list).await,
        Route::Initialize => merge_initialize(connection, &message, id).await,
        Route::Discover => merge_discover(connection, &message, id).await,
        Route::Local => JsonRpcMessage::response(id, json!({})),
        Route::Broadcast => send_to_all(connection, &message, (request, ResponseTimeout::Merged)).await,
        Route::Subscribe => send_to_all(connection, &message, (request, ResponseTimeout::None)).await,
        Route::ByName(path) => route_by_name(connection, message, request, path).await,
        Route::ByOptionalName(path) if message.param_at(path).is_some() => {
            route_by_name(connection, message, request, path).await
        }
        // Tool calls are evaluated before.
        Route::ByOptionalName(_) | Route::TryEach | Route::ToolCall => {
            try_each(connection, &message, request).await
        }
    }
}

/// Sends a request to all servers, and cancels it at those that have not answered in time.
async fn request_all(connection: &ClientConnection, message: &JsonRpcMessage, id: &RequestId) -> Responses {
    let responses = connection.upstreams.request_all(message, id).await;
    connection.upstreams.cancel_pending_briefly(id).await;
    responses
}

/// The results among all responses. Logs the servers that returned none.
fn collect_results(responses: Responses) -> Vec<(Arc<Upstream>, Value)> {
    let mut results = Vec::new();
    for (upstream, response) in responses {
        let why = match response {
            Ok(mut response) => match response.result_mut() {
                Some(result) => {
                    results.push((upstream, result.take()));
                    continue;
                }
                None => "it responds with an error".to_owned(),
            },
            Err(UpstreamError(why)) => why,
        };
        upstream.log(&format!("omitted from a merged response: {why}"));
    }
    results
}

/// Merges the handshakes with all servers.
async fn merge_initialize(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    id: &RequestId,
) -> JsonRpcMessage {
    // The protocol forbids cancelling a handshake.
    let results = collect_results(connection.upstreams.request_all(message, id).await);
    let versions = results.iter().filter_map(|(_, result)| result.get("protocolVersion")?.as_str());
    let Some(version) = versions.min() else {
        return internal_error(id, "no server accepts the connection");
    };
    let mut merged = json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": server_info() });
    merge_capabilities(&mut merged, &results);
    merge_instructions(&mut merged, &results);
    tool_list::declare_list_changed(&connection.gateway, JsonRpcMessage::response(id, merged))
}

/// Merges the capabilities of all servers. If one of them does not support the protocol version, the client must fall back to the
/// older handshake.
async fn merge_discover(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    id: &RequestId,
) -> JsonRpcMessage {
    let responses = request_all(connection, message, id).await;
    for (upstream, response) in &responses {
        if let Err(UpstreamError(why)) = response {
            upstream.log(why);
        }
    }
    let is_result = |response: &Result<JsonRpcMessage, _>| matches!(response, Ok(response) if response.result_value().is_some());
    // A silent server may be waiting for the older handshake.
    if !responses.iter().all(|(_, response)| is_result(response)) {
        return JsonRpcMessage::error_response(
            Some(id),
            code::METHOD_NOT_FOUND,
            "not all servers support this protocol version",
            None,
        );
    }
    let results = collect_results(responses);
    let Some((_, first)) = results.first() else {
        return internal_error(id, "the gateway has no servers");
    };
    let mut merged = first.clone();
    let is_supported_by_all = |version: &Value| {
        results.iter().all(|(_, result)| {
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            versions.is_some_and(|versions| versions.contains(version))
        })
    };
    if let Some(Value::Array(versions)) = merged.get_mut("supportedVersions") {
        versions.retain(is_supported_by_all);
    }
    merge_capabilities(&mut merged, &results);
    merge_instructions(&mut merged, &results);
    if let Some(meta) = merged.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.insert("io.modelcontextprotocol/serverInfo", server_info());
    }
    if merged.get("serverInfo").is_some() {
        set_member(&mut merged, "serverInfo", server_info());
    }
    merge_caching(&mut merged, &results);
    tool_list::declare_list_changed(&connection.gateway, JsonRpcMessage::response(id, merged))
}

fn server_info() -> Value {
    json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") })
}

fn set_member(value: &mut Value, name: &str, member: Value) {
    if let Some(members) = value.as_object_mut() {
        members.insert(name, member);
    }
}

/// Sets the union of all servers' capabilities.
fn merge_capabilities(merged: &mut Value, results: &[(Arc<Upstream>, Value)]) {
    let mut capabilities = Map::new();
    for (_, result) in results {
        for (name, capability) in result.get("capabilities").and_then(Value::as_object).into_iter().flatten()
        {
            let known = capabilities.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            match (known, capability) {
                (Value::Object(known), Value::Object(more)) => known.extend(more.clone()),
                (known, capability) => *known = capability.clone(),
            }
        }
    }
    set_member(merged, "capabilities", Value::Object(capabilities));
}

fn merge_instructions(merged: &mut Value, results: &[(Arc<Upstream>, Value)]) {
    let texts = results.iter().filter_map(|(upstream, result)| {
        let text = result.get("instructions")?.as_str()?;
        Some(format!("{}:\n{text}", upstream.name()))
    });
    let texts: Vec<String> = texts.collect();
    if !texts.is_empty() {
        set_member(merged, "instructions", texts.join("\n\n").into());
    }
}

/// Sets the shortest lifetime of all parts, and makes the merged result private if one part is.
fn merge_caching(merged: &mut Value, results: &[(Arc<Upstream>, Value)]) {
    let lifetime = results.iter().filter_map(|(_, result)| result.get("ttlMs")?.as_u64()).min();
    if let Some(lifetime) = lifetime {
        set_member(merged, "ttlMs", lifetime.into());
    }
    if results.iter().any(|(_, result)| result.get("cacheScope").is_some_and(|scope| scope == "private")) {
        set_member(merged, "cacheScope", "private".into());
    }
}

/// The pages of one server's list; empty if the server does not support the method, or policies don't permit it.
async fn list_pages(
    connection: &ClientConnection,
    upstream: &Upstream,
    mut message: JsonRpcMessage,
    request: &ClientRequest,
) -> Vec<JsonRpcMessage> {
    let mut pages = Vec::new();
    message.take_param("cursor");
    for _ in 0..MAX_PAGES {
        let sent = (request, ResponseTimeout::Merged);
        let page = match method_requests::start_request(connection, upstream, &message, sent).await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(UpstreamError(why)) => {
                upstream.log(&format!("omitted from a merged response: {why}"));
                break;
            }
        };
        let Some(result) = page.result_value() else { break };
        let next = result.get("nextCursor").cloned();
        pages.push(page);
        match next {
            Some(cursor) => message.set_param("cursor", cursor),
            None => break,
        }
    }
    pages
}

/// Merges the lists of all servers, in the order of the servers.
async fn merge_list(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    request: &ClientRequest,
    list: ListKind,
) -> JsonRpcMessage {
    let (upstreams, id) = (&connection.upstreams, &request.id);
    let lists = upstreams
        .for_each(|upstream| {
            Box::pin(async move { list_pages(connection, &upstream, message.clone(), request).await })
        })
        .await;
    upstreams.cancel_pending_briefly(id).await;
    let (mut items, mut parts) = (Vec::new(), Vec::new());
    for (upstream, pages) in lists {
        for mut page in pages {
            page = match list {
                ListKind::Tools => tool_list::filter_tools(connection, &upstream, page),
                _ => method_requests::filter_items(connection, &upstream, list, page),
            };
            let Some(result) = page.result_mut() else { continue };
            if let Some(Value::Array(page_items)) = result.get_mut(list.member()) {
                if list == ListKind::Prompts {
                    upstream.prefix_names(page_items);
                }
                items.append(page_items);
            }
            parts.push((Arc::clone(&upstream), result.take()));
        }
    }
    let mut merged = parts.first().map(|(_, result)| result.clone()).unwrap_or_else(|| json!({}));
    if let Some(members) = merged.as_object_mut() {
        members.remove("nextCursor");
    }
    set_member(&mut merged, list.member(), Value::Array(items));
    merge_caching(&mut merged, &parts);
    JsonRpcMessage::response(id, merged)
}

/// Sends a request to all servers; returns the first result.
async fn send_to_all(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    sent: (&ClientRequest, ResponseTimeout),
) -> JsonRpcMessage {
    let (request, timeout) = sent;
    let upstreams = &connection.upstreams;
    let responses = upstreams
        .for_each(|upstream| {
            Box::pin(
                async move { method_requests::start_request(connection, &upstream, message, sent).await },
            )
        })
        .await;
    if timeout == ResponseTimeout::Merged {
        upstreams.cancel_pending_briefly(&request.id).await;
    }
    let responses = responses.into_iter().filter_map(|(_, response)| response.ok().flatten());
    first_result(responses.collect(), &request.id)
}

/// The first result or, if there is none, the first error.
fn first_result(responses: Vec<JsonRpcMessage>, id: &RequestId) -> JsonRpcMessage {
    let result = responses.iter().position(|response| response.result_value().is_some());
    let response = responses.into_iter().nth(result.unwrap_or(0));
    response.unwrap_or_else(|| internal_error(id, "no server responds"))
}

/// Routes a request to the server of a prefixed name, with the prefix removed.
async fn route_by_name(
    connection: &ClientConnection,
    mut message: JsonRpcMessage,
    request: &ClientRequest,
    path: &[&str],
) -> JsonRpcMessage {
    let id = &request.id;
    let route = message.param_at(path).and_then(Value::as_str).and_then(|name| {
        let (upstream, own_name) = connection.upstreams.route(name)?;
        Some((upstream, own_name.to_owned()))
    });
    let Some((upstream, own_name)) = route else {
        let why = "no server matches this name";
        return JsonRpcMessage::error_response(Some(id), code::INVALID_PARAMS, why, None);
    };
    message.set_param_at(path, own_name.into());
    let sent = (request, ResponseTimeout::None);
    match method_requests::start_request(connection, &upstream, &message, sent).await {
        Ok(Some(response)) => response,
        Ok(None) => internal_error(id, "the request was cancelled"),
        Err(UpstreamError(why)) => internal_error(id, &why),
    }
}

/// Tries the servers in turn until one returns a result.
async fn try_each(
    connection: &ClientConnection,
    message: &JsonRpcMessage,
    request: &ClientRequest,
) -> JsonRpcMessage {
    let id = &request.id;
    let mut error_response = None;
    for upstream in connection.upstreams.all().iter() {
        let sent = (request, ResponseTimeout::None);
        match method_requests::start_request(connection, upstream, message, sent).await {
            Ok(None) => return internal_error(id, "the request was cancelled"),
            Ok(Some(response)) if response.result_value().is_some() => return response,
            Ok(Some(response)) => {
                let error_code = response.error_value().and_then(|error| error.get("code")?.as_i64());
                // The error of a server that supports the method is more useful than that of one that does not.
                if error_response.is_none() || error_code != Some(code::METHOD_NOT_FOUND) {
                    error_response = Some(response);
                }
            }
            Err(UpstreamError(why)) => upstream.log(&why),
        }
    }
    error_response.unwrap_or_else(|| internal_error(id, "no server responds"))
}

fn internal_error(id: &RequestId, why: &str) -> JsonRpcMessage {
    JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, why, None)
}
