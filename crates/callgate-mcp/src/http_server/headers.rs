//! Reads the headers of a request, and validates them against its body.

use axum::http::HeaderMap;

use crate::http_headers::{self, EVENT_STREAM, HeaderArguments, JSON};
use crate::jsonrpc::{JsonRpcMessage, MessageTrace, TRACE_PARENT, TRACE_STATE, code};
use crate::method;
use callgate::json::{Digest, Value};
use callgate_http::{accepts, single_value};

/// The number of digits of the digest of a session id in traces.
const SESSION_DIGITS: usize = 32;

/// The trace of a request, if it is named. What is not a single value is ignored, as malformed values are.
pub(super) fn trace(headers: &HeaderMap) -> MessageTrace {
    let text = |name: &str| single_value(headers, name).ok().flatten().map(str::to_owned);
    MessageTrace { parent: text(TRACE_PARENT), state: text(TRACE_STATE), mcp_session: None }
}

/// The trace of a request in a session. A digest stands for the session: whoever knows its id could use it.
pub(super) fn trace_in_session(headers: &HeaderMap) -> MessageTrace {
    let session = single_value(headers, http_headers::SESSION).ok().flatten();
    let digest = session.map(|id| Digest::compute(id.as_bytes()).to_string());
    let mcp_session = digest.and_then(|digest| digest.get(..SESSION_DIGITS).map(str::to_owned));
    MessageTrace { mcp_session, ..trace(headers) }
}

/// Whether a client accepts both a single message and a stream.
pub(super) fn accepts_both(headers: &HeaderMap) -> bool {
    accepts(headers, JSON) && accepts(headers, EVENT_STREAM)
}

/// Validates the headers and `_meta` of a stateless request; returns the code and message of the first error.
pub(super) fn find_mismatch(headers: &HeaderMap, message: &JsonRpcMessage) -> Option<(i64, String)> {
    let Some(version) = http_headers::protocol_version(message) else {
        let member = http_headers::META_VERSION;
        return Some((code::INVALID_PARAMS, format!("`_meta` must have the protocol version in `{member}`")));
    };
    if !message.meta(method::CLIENT_CAPABILITIES).is_some_and(Value::is_object) {
        let member = method::CLIENT_CAPABILITIES;
        return Some((
            code::INVALID_PARAMS,
            format!("`_meta` must have the client's capabilities, an object, in `{member}`"),
        ));
    }
    let is_required = matches!(message.method(), method::TOOLS_CALL | "prompts/get" | "resources/read");
    let subject = http_headers::subject(message);
    let of_body = [
        (http_headers::VERSION, Some(version), true),
        (http_headers::METHOD, Some(message.method()), true),
        (http_headers::NAME, subject, is_required && subject.is_some()),
    ];
    let mismatch = |why: String| Some((code::HEADER_MISMATCH, why));
    for (name, body, is_required) in of_body {
        let value = match single_value(headers, name) {
            Ok(value) => value,
            Err(error) => return mismatch(error.to_string()),
        };
        let Some(value) = value else {
            if is_required {
                return mismatch(format!("the header `{name}` is missing"));
            }
            continue;
        };
        let decoded =
            if name == http_headers::NAME { http_headers::decode(value) } else { Some(value.to_owned()) };
        if body.is_some_and(|body| decoded.as_deref() != Some(body)) {
            return mismatch(format!("the header `{name}` does not match the body"));
        }
    }
    None
}

/// Validates the headers that repeat arguments; returns the message of the first error.
pub(super) fn find_argument_mismatch(
    headers: &HeaderMap,
    message: &JsonRpcMessage,
    repeated: &HeaderArguments,
) -> Option<String> {
    let none = Value::Null;
    let arguments = message.param("arguments").unwrap_or(&none);
    repeated.headers(arguments).find_map(|(name, body)| {
        let value = match single_value(headers, name) {
            Ok(value) => value,
            Err(error) => return Some(error.to_string()),
        };
        match (value, body) {
            (None, None) => None,
            (Some(value), Some(body)) => {
                let decoded = http_headers::decode(value);
                let is_same = decoded
                    .as_deref()
                    .is_some_and(|decoded| decoded == body || are_same_number(decoded, &body));
                (!is_same).then(|| format!("the header `{name}` does not match the argument"))
            }
            (None, Some(_)) => Some(format!("the header `{name}` is missing")),
            (Some(_), None) => Some(format!("the header `{name}` has no matching argument")),
        }
    })
}

/// Whether both are the same number, such as `42.0` and `42`.
fn are_same_number(header: &str, body: &str) -> bool {
    let number = |text: &str| callgate::json::parse(text).ok().filter(Value::is_number);
    matches!((number(header), number(body)), (Some(header), Some(body)) if header == body)
}
