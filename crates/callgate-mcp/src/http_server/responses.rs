//! HTTP responses with one message.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::http_headers::JSON;
use crate::jsonrpc::{JsonRpcMessage, code};
use callgate::json::Value;
use callgate_http::empty;

/// A response with one message.
pub(super) fn message_response(status: u16, message: &JsonRpcMessage) -> Response {
    let mut response = empty(status);
    *response.body_mut() = Body::from(message.to_string());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// The response to a request that is rejected before its message is handled.
pub(super) fn rejection(status: u16, why: &str) -> Response {
    message_response(status, &JsonRpcMessage::error_response(None, code::INVALID_REQUEST, why, None))
}

/// The HTTP status of the response to a stateless request.
pub(super) fn http_status(answer: &JsonRpcMessage) -> u16 {
    let error_code = answer.error_value().and_then(|error| error.get("code")).and_then(Value::as_i64);
    match error_code {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION) => 400,
        _ => 200,
    }
}
