//! Multiplexing of several servers behind one connection: merges their lists and handshakes, and routes requests by name prefix.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use super::connection::ClientConnection;
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::method;
use super::tool_list;
use super::upstream_server::ConnectionClosed;
use crate::host::BoxFuture;
use crate::json::{Map, Value, json};

/// Timeout of each server for a request to all servers; then the merged response omits it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Timeout of a server that did not answer in time before, and has sent nothing since.
const SILENT_SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for sending cancellations.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of pages of one list.
const MAX_PAGES: usize = 100;

/// The lists that are merged: method and list member.
const LISTS: [(&str, &str); 4] = [
    (method::TOOLS_LIST, "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// Answers a request that is for all servers, or for the one that it names.
pub(super) async fn handle_request(
    link: &Arc<ClientConnection>,
    frame: JsonRpcMessage,
    id: &RequestId,
) -> JsonRpcMessage {
    let list = LISTS.iter().find(|(method, _)| *method == frame.method());
    match (frame.method(), list) {
        (_, Some((_, member))) => listed(link, &frame, id, member).await,
        (method::INITIALIZE, _) => greeted(link, &frame, id).await,
        (method::DISCOVER, _) => discovered(link, &frame, id).await,
        ("ping", _) => JsonRpcMessage::response(id, json!({})),
        ("logging/setLevel" | "subscriptions/listen", _) => broadcast(link, &frame, id).await,
        ("prompts/get", _) => named(link, frame, id, &["name"]).await,
        ("completion/complete", _) if frame.param("ref").is_some_and(|of| of.get("name").is_some()) => {
            named(link, frame, id, &["ref", "name"]).await
        }
        _ => try_each(link, &frame, id).await,
    }
}

/// Sends requests to all servers concurrently; returns the results in the order of the servers.
async fn of_each<'a, T>(link: &ClientConnection, ask: impl Fn(usize) -> BoxFuture<'a, T>) -> Vec<(usize, T)> {
    let mut asked: Vec<_> = (0..link.gateway.servers.len()).map(|index| (ask(index), None)).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for (asking, came) in asked.iter_mut().filter(|(_, came)| came.is_none()) {
            match asking.as_mut().poll(context) {
                Poll::Ready(done) => *came = Some(done),
                Poll::Pending => is_over = false,
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    asked.into_iter().enumerate().filter_map(|(index, (_, came))| Some((index, came?))).collect()
}

/// One server's response to a request to all servers.
async fn request_with_timeout(
    link: &ClientConnection,
    index: usize,
    frame: JsonRpcMessage,
    id: &RequestId,
) -> Result<JsonRpcMessage, ConnectionClosed> {
    let Some(server) = link.server(index) else { return Err(ConnectionClosed("unknown server".to_owned())) };
    let patience =
        if server.has_timed_out.load(Ordering::Relaxed) { SILENT_SERVER_TIMEOUT } else { PATIENCE };
    let answer = link.request_for_client(index, frame, id);
    match tokio::time::timeout(patience, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            server.has_timed_out.store(true, Ordering::Relaxed);
            Err(ConnectionClosed("it does not respond".to_owned()))
        }
    }
}

/// Cancels the request at all servers that have not answered it.
async fn cancel_pending(link: &ClientConnection, id: &RequestId) {
    let _ = tokio::time::timeout(CANCEL_TIMEOUT, link.cancel_pending(id)).await;
}

/// The responses of all servers, in their order.
async fn request_all(
    link: &ClientConnection,
    frame: &JsonRpcMessage,
    id: &RequestId,
) -> Vec<(usize, Result<JsonRpcMessage, ConnectionClosed>)> {
    if frame.method() == method::LISTEN {
        // A subscription is answered when it ends.
        return of_each(link, |index| Box::pin(link.request_for_client(index, frame.clone(), id))).await;
    }
    let answers = of_each(link, |index| Box::pin(request_with_timeout(link, index, frame.clone(), id))).await;
    // The protocol forbids cancelling a handshake.
    if frame.method() != method::INITIALIZE {
        cancel_pending(link, id).await;
    }
    answers
}

/// The results among all responses. Logs the servers that returned none.
fn results(
    link: &ClientConnection,
    answers: Vec<(usize, Result<JsonRpcMessage, ConnectionClosed>)>,
) -> Vec<(usize, Value)> {
    let mut results = Vec::new();
    for (index, answer) in answers {
        let why = match answer {
            Ok(mut frame) => match frame.result_mut() {
                Some(result) => {
                    results.push((index, result.take()));
                    continue;
                }
                None => "it responds with an error".to_owned(),
            },
            Err(ConnectionClosed(why)) => why,
        };
        link.log_server(index, &format!("omitted from a merged response: {why}"));
    }
    results
}

/// Merges the handshakes with all servers.
async fn greeted(link: &ClientConnection, frame: &JsonRpcMessage, id: &RequestId) -> JsonRpcMessage {
    let results = results(link, request_all(link, frame, id).await);
    let versions = results.iter().filter_map(|(_, result)| result.get("protocolVersion")?.as_str());
    let Some(version) = versions.min() else {
        return JsonRpcMessage::error_response(
            Some(id),
            code::INTERNAL_ERROR,
            "no server accepts the connection",
            None,
        );
    };
    let mut merged = json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": who() });
    merge_capabilities(&mut merged, &results);
    merge_instructions(link, &mut merged, &results);
    tool_list::declare_list_changed(link, JsonRpcMessage::response(id, merged))
}

/// Merges the capabilities of all servers. If one of them does not support the protocol version, the client must fall back to the
/// older handshake.
async fn discovered(link: &ClientConnection, frame: &JsonRpcMessage, id: &RequestId) -> JsonRpcMessage {
    let answers = request_all(link, frame, id).await;
    for (index, answer) in &answers {
        if let Err(ConnectionClosed(why)) = answer {
            link.log_server(*index, why);
        }
    }
    // A silent server may be waiting for the older handshake.
    if answers.iter().any(|(_, answer)| !matches!(answer, Ok(frame) if frame.result_value().is_some())) {
        return JsonRpcMessage::error_response(
            Some(id),
            code::METHOD_NOT_FOUND,
            "not all servers support this protocol version",
            None,
        );
    }
    let results = results(link, answers);
    let Some((_, first)) = results.first() else {
        return JsonRpcMessage::error_response(
            Some(id),
            code::INTERNAL_ERROR,
            "the gateway has no servers",
            None,
        );
    };
    let mut merged = first.clone();
    let known_by_all = |version: &Value| {
        results.iter().all(|(_, result)| {
            let versions = result.get("supportedVersions").and_then(Value::as_array);
            versions.is_some_and(|versions| versions.contains(version))
        })
    };
    if let Some(Value::Array(versions)) = merged.get_mut("supportedVersions") {
        versions.retain(known_by_all);
    }
    merge_capabilities(&mut merged, &results);
    merge_instructions(link, &mut merged, &results);
    if let Some(meta) = merged.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), who());
    }
    if merged.get("serverInfo").is_some() {
        set(&mut merged, "serverInfo", who());
    }
    merge_caching(&mut merged, &results);
    tool_list::declare_list_changed(link, JsonRpcMessage::response(id, merged))
}

fn who() -> Value {
    json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") })
}

fn set(value: &mut Value, name: &str, member: Value) {
    if let Some(members) = value.as_object_mut() {
        members.insert(name.to_owned(), member);
    }
}

/// Sets the union of all servers' capabilities.
fn merge_capabilities(merged: &mut Value, results: &[(usize, Value)]) {
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
    set(merged, "capabilities", Value::Object(capabilities));
}

fn merge_instructions(link: &ClientConnection, merged: &mut Value, results: &[(usize, Value)]) {
    let texts = results.iter().filter_map(|(index, result)| {
        let text = result.get("instructions")?.as_str()?;
        Some(format!("{}:\n{text}", link.server(*index)?.spec.name))
    });
    let texts: Vec<String> = texts.collect();
    if !texts.is_empty() {
        set(merged, "instructions", texts.join("\n\n").into());
    }
}

/// Sets the shortest lifetime of all parts, and makes the merged result private if one part is.
fn merge_caching(merged: &mut Value, results: &[(usize, Value)]) {
    let lasts = results.iter().filter_map(|(_, result)| result.get("ttlMs")?.as_u64()).min();
    if let Some(lasts) = lasts {
        set(merged, "ttlMs", lasts.into());
    }
    if results.iter().any(|(_, result)| result.get("cacheScope").is_some_and(|scope| scope == "private")) {
        set(merged, "cacheScope", "private".into());
    }
}

/// The pages of one server's list; empty if the server does not support the method.
async fn pages(
    link: &ClientConnection,
    index: usize,
    mut asked: JsonRpcMessage,
    id: &RequestId,
) -> Vec<JsonRpcMessage> {
    let mut pages = Vec::new();
    asked.take_param("cursor");
    for _ in 0..MAX_PAGES {
        let page = match request_with_timeout(link, index, asked.clone(), id).await {
            Ok(page) => page,
            Err(ConnectionClosed(why)) => {
                link.log_server(index, &format!("omitted from a merged response: {why}"));
                break;
            }
        };
        let Some(result) = page.result_value() else { break };
        let next = result.get("nextCursor").cloned();
        pages.push(page);
        match next {
            Some(cursor) => asked.set_param("cursor", cursor),
            None => break,
        }
    }
    pages
}

/// Merges the lists of all servers, in the order of the servers.
async fn listed(
    link: &ClientConnection,
    frame: &JsonRpcMessage,
    id: &RequestId,
    member: &str,
) -> JsonRpcMessage {
    let lists = of_each(link, |index| Box::pin(pages(link, index, frame.clone(), id))).await;
    cancel_pending(link, id).await;
    let (mut items, mut parts) = (Vec::new(), Vec::new());
    for (index, pages) in lists {
        for mut page in pages {
            if frame.method() == method::TOOLS_LIST {
                page = tool_list::filter_tools(link, index, page);
            }
            let Some(result) = page.result_mut() else { continue };
            if let Some(Value::Array(list)) = result.get_mut(member) {
                if member == "prompts" {
                    link.prefix_names(index, list);
                }
                items.append(list);
            }
            parts.push((index, result.take()));
        }
    }
    let mut merged = parts.first().map(|(_, result)| result.clone()).unwrap_or_else(|| json!({}));
    if let Some(members) = merged.as_object_mut() {
        members.remove("nextCursor");
    }
    set(&mut merged, member, Value::Array(items));
    merge_caching(&mut merged, &parts);
    JsonRpcMessage::response(id, merged)
}

/// Sends a request to all servers; returns the first result.
async fn broadcast(link: &ClientConnection, frame: &JsonRpcMessage, id: &RequestId) -> JsonRpcMessage {
    let answers = request_all(link, frame, id).await;
    let answers: Vec<JsonRpcMessage> = answers.into_iter().filter_map(|(_, answer)| answer.ok()).collect();
    let result = answers.iter().position(|answer| answer.result_value().is_some());
    match answers.into_iter().nth(result.unwrap_or(0)) {
        Some(answer) => answer,
        None => JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, "no server responds", None),
    }
}

/// Routes a request to the server of a prefixed name, with the prefix removed.
async fn named(
    link: &ClientConnection,
    mut frame: JsonRpcMessage,
    id: &RequestId,
    place: &[&str],
) -> JsonRpcMessage {
    let found = frame.param_at(place).and_then(Value::as_str).and_then(|name| {
        let (index, own) = link.route(name)?;
        Some((index, own.to_owned()))
    });
    let Some((index, own)) = found else {
        return JsonRpcMessage::error_response(
            Some(id),
            code::INVALID_PARAMS,
            "no server matches this name",
            None,
        );
    };
    frame.set_param_at(place, own.into());
    match link.request_for_client(index, frame, id).await {
        Ok(answer) => answer,
        Err(ConnectionClosed(why)) => {
            JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, &why, None)
        }
    }
}

/// Tries the servers in turn until one returns a result: for resources by URI, tasks by id and unknown methods.
async fn try_each(link: &ClientConnection, frame: &JsonRpcMessage, id: &RequestId) -> JsonRpcMessage {
    let mut refused = None;
    for index in 0..link.gateway.servers.len() {
        match link.request_for_client(index, frame.clone(), id).await {
            Ok(answer) if answer.result_value().is_some() => return answer,
            Ok(answer) => {
                let unknown = answer.error_value().and_then(|error| error.get("code")?.as_i64());
                // The error of a server that supports the method is more useful than that of one that does not.
                if refused.is_none() || unknown != Some(code::METHOD_NOT_FOUND) {
                    refused = Some(answer);
                }
            }
            Err(ConnectionClosed(why)) => link.log_server(index, &why),
        }
    }
    refused.unwrap_or_else(|| {
        JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, "no server responds", None)
    })
}
