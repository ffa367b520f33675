//! Reads the headers of a request.

use axum::http::HeaderMap;
use axum::http::header::{self, AsHeaderName};
use thiserror::Error;

/// The media type of JSON bodies.
pub const JSON: &str = "application/json";

/// The reason why a header is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The value is not text.
    #[error("the header `{0}` is not valid text")]
    NotText(String),
    /// The header occurs more than once, so parsers could choose different values.
    #[error("duplicate header `{0}`")]
    Duplicate(String),
}

/// The value of a header that may occur once.
///
/// # Errors
/// There are several values, or the value is not text.
pub fn single_value(
    headers: &HeaderMap,
    name: impl AsHeaderName + ToString + Copy,
) -> Result<Option<&str>, HeaderError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| HeaderError::NotText(name.to_string())),
        (Some(_), Some(_)) => Err(HeaderError::Duplicate(name.to_string())),
    }
}

/// Whether a client accepts a content type.
pub fn accepts(headers: &HeaderMap, content_type: &str) -> bool {
    let family = content_type.split('/').next().unwrap_or_default();
    headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|part| {
            let kind = part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            kind == content_type || kind == "*/*" || kind == format!("{family}/*")
        })
    })
}

/// Whether the content type of the body is JSON.
pub fn has_json_body(headers: &HeaderMap) -> bool {
    let kind = single_value(headers, &header::CONTENT_TYPE).ok().flatten().unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON)
}
