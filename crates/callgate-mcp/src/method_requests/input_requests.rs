//! Requests to the client inside of a server's other messages: the `inputRequests` of a result, or of a notification about a task (since
//! 2026-07-28), and the elicitations of an error that requires them. Each is evaluated as the request that it is; if one is not permitted,
//! a response is replaced by an error, and a notification is dropped.

use super::final_params::FinalParams;
use super::{call_for, is_evaluated, visible_params};
use crate::connection::{ClientConnection, Upstream};
use crate::jsonrpc::{JsonRpcMessage, MessageKind, code};
use crate::{method, routes};
use callgate::json::{Map, Value};

/// Returns the message with the changes of policies. Returns `None` for a notification with a request that is not permitted, and an error
/// for such a response.
pub(crate) async fn check_input_requests(
    connection: &ClientConnection,
    upstream: &Upstream,
    mut message: JsonRpcMessage,
) -> Option<JsonRpcMessage> {
    let Err(Refused(refused)) = evaluate_all(connection, upstream, &mut message).await else {
        return Some(message);
    };
    upstream.log(&format!("its message requests `{}`, which is not permitted", refused.escape_debug()));
    let why = "the server requests input that is not permitted";
    message.id().map(|id| JsonRpcMessage::error_response(Some(id), code::NOT_PERMITTED, why, None))
}

/// A request that is not permitted: its method.
struct Refused(String);

/// Evaluates all requests in a response.
async fn evaluate_all(
    connection: &ClientConnection,
    upstream: &Upstream,
    message: &mut JsonRpcMessage,
) -> Result<(), Refused> {
    let mut methods = routes::SERVER_REQUESTS.iter();
    let is_strict = methods.any(|method| is_evaluated(connection, upstream.name(), method));
    // A lenient client could find a request where none is evaluated.
    let refuse_misread = |value: Option<&Value>, names: &[&str]| match value.and_then(Value::as_object) {
        Some(members) if is_strict => match method::find_ambiguous_member(members, names) {
            Some(member) => Err(Refused(member.to_owned())),
            None => Ok(()),
        },
        _ => Ok(()),
    };
    let parts = match message.kind() {
        MessageKind::Notification => message.params_mut(),
        _ => message.result_mut(),
    };
    refuse_misread(parts.as_deref(), &["inputRequests"])?;
    let requests = parts.and_then(|parts| parts.get_mut("inputRequests"));
    for request in requests.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        refuse_misread(Some(request), &["method", "params"])?;
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = request.get("params").and_then(Value::as_object);
        let changed = evaluate(connection, upstream, &method, params).await?;
        if let (Some(changed), Some(request)) = (changed, request.as_object_mut()) {
            request.insert("params", changed);
        }
    }
    refuse_misread(message.error_value().and_then(|error| error.get("data")), &["elicitations"])?;
    let in_error = message.error_mut().and_then(|error| error.get_mut("data")?.get_mut("elicitations"));
    for elicitation in in_error.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(changed) = evaluate(connection, upstream, method::ELICIT, elicitation.as_object()).await?
        {
            *elicitation = changed;
        }
    }
    Ok(())
}

/// Evaluates one request; returns its parameters if policies changed them.
async fn evaluate(
    connection: &ClientConnection,
    upstream: &Upstream,
    method: &str,
    params: Option<&Map>,
) -> Result<Option<Value>, Refused> {
    // A lenient client could read it as a request that policies concern.
    if routes::misread_request(method).is_some() {
        return Err(Refused(method.to_owned()));
    }
    if !is_evaluated(connection, upstream.name(), method) {
        return Ok(None);
    }
    let call = call_for(connection, upstream.name(), method, visible_params(params));
    let executor = FinalParams::default();
    let outcome = connection.session.execute_nested(call.clone(), &executor).await;
    let mut permitted = executor.into_permitted(&outcome).ok_or_else(|| Refused(method.to_owned()))?;
    if permitted == call.input {
        return Ok(None);
    }
    if let (Some(permitted), Some(meta)) =
        (permitted.as_object_mut(), params.and_then(|all| all.get("_meta")))
    {
        permitted.insert("_meta", meta.clone());
    }
    Ok(Some(permitted))
}
