//! HTTP responses without a body, or with one of a known type.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

/// A response without a body.
pub fn empty(status: u16) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// A response that must not be cached, with a body of this media type.
pub fn with_body(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = empty(status);
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    // These and those that a server adds to every response, without growing step by step.
    headers.reserve(8);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A plain text response.
pub(crate) fn text(status: u16, text: &str) -> Response {
    with_body(status, "text/plain; charset=utf-8", text.to_owned())
}
