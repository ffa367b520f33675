//! Requests by other MCP methods than `tools/call`, in both directions: evaluates those that policies with `match: { method: … }` concern.
//! All others are forwarded unchanged.
//!
//! A request is evaluated as a call with the name of its method and its parameters as arguments.

mod client_requests;
mod final_params;
mod input_requests;
mod listed_items;
mod method_executor;
mod server_requests;

pub(super) use self::client_requests::{ClientRequest, ResponseTimeout, start_request};
pub(super) use self::input_requests::check_input_requests;
pub(super) use self::listed_items::filter_items;
pub(super) use self::server_requests::handle_server_request;

use super::call_result;
use super::connection::ClientConnection;
use super::jsonrpc::{JsonRpcMessage, RequestId, code};
use super::routes;
use callgate::call::{Outcome, ToolCall, unevaluated_method};
use callgate::json::{Map, Value};

/// The parameters that belong to the protocol, and that policies don't see.
const PROTOCOL_PARAMS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Whether policies concern requests by a method between the client and a server.
pub(super) fn is_evaluated(connection: &ClientConnection, server: &str, method: &str) -> bool {
    unevaluated_method(method).is_none() && connection.session.concerns_method(server, method)
}

/// Whether a message without an id can be forwarded: no peer could read it as a request that policies concern.
pub(super) fn may_be_notification(connection: &ClientConnection, server: &str, method: &str) -> bool {
    method.starts_with("notifications/")
        || !routes::resembles_request(method) && !is_evaluated(connection, server, method)
}

/// A request as policies see it.
fn call_for(connection: &ClientConnection, server: &str, method: &str, params: Value) -> ToolCall {
    let id = connection.requests.new_call_id();
    let mut call = ToolCall::for_method(id, method, params).with_server(server);
    call.context.clone_from(&connection.context);
    call
}

/// The parameters as policies see them.
fn visible_params(params: Option<&Map>) -> Value {
    let visible = params.into_iter().flatten().filter(|(name, _)| !PROTOCOL_PARAMS.contains(&name.as_str()));
    Value::Object(visible.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The message with the parameters that result from the policies.
fn with_params(message: &JsonRpcMessage, params: &Value) -> JsonRpcMessage {
    let mut message = message.clone();
    if visible_params(message.params()) == *params {
        return message;
    }
    let mut all: Map = params.as_object().cloned().unwrap_or_default();
    for name in PROTOCOL_PARAMS {
        match message.param(name) {
            Some(value) => drop(all.insert(name.to_owned(), value.clone())),
            None => drop(all.remove(name)),
        }
    }
    message.replace_params(all);
    message
}

/// The error that the client receives for a request that is not permitted or did not complete.
fn rejection(id: &RequestId, outcome: &Outcome) -> JsonRpcMessage {
    let message = outcome.error.as_ref().unwrap_or(&outcome.reason.message);
    let data = call_result::outcome_meta(outcome);
    JsonRpcMessage::error_response(Some(id), code::NOT_PERMITTED, message, Some(data))
}
