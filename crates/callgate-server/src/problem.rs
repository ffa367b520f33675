//! Error responses: problem details (RFC 9457).

use callgate::host::StoreError;
use callgate::json::{Value, json};

/// The media type of error responses.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request fails: what its client must know to act.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// The HTTP status.
    pub(crate) status: u16,
    /// A stable code for programs.
    pub(crate) code: &'static str,
    /// What is wrong, and what to do.
    pub(crate) detail: String,
    /// Headers that tell clients what to do, such as `retry-after`.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Problem {
    /// A problem with this status, code and explanation.
    pub(crate) fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), headers: Vec::new() }
    }

    /// The request itself is invalid.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", detail)
    }

    /// There is nothing of this name, or the caller may not know of it.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(404, "not_found", detail)
    }

    /// The server can't do it now.
    pub(crate) fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(503, code, detail).with_header("retry-after", "1")
    }

    /// Adds a header to the response.
    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The title: the status in words.
    fn title(&self) -> &'static str {
        match self.status {
            400 => "Bad request",
            401 => "Authentication required",
            403 => "Forbidden",
            404 => "Not found",
            405 => "Method not allowed",
            408 => "Request timeout",
            409 => "Conflict",
            410 => "Gone",
            413 => "Request too large",
            415 => "Unsupported media type",
            422 => "Unprocessable content",
            429 => "Too many requests",
            503 => "Service unavailable",
            _ => "Internal error",
        }
    }

    /// The body of the response.
    pub(crate) fn body(&self) -> Value {
        json!({
            "type": format!("urn:callgate:problem:{}", self.code),
            "title": self.title(),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        })
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable("store_unavailable", format!("the state store fails: {error}"))
    }
}
