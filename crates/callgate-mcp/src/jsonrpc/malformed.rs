//! Malformed messages, and the JSON-RPC errors that answer them.

use super::{JsonRpcMessage, RequestId};
use crate::malformed_recovery;
use callgate::json::{ParseError, ParseErrorKind};
use callgate::safe_text::{escape_controls, truncate};

/// The codes of JSON-RPC errors.
pub mod code {
    /// Invalid or ambiguous JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// Valid JSON, but not a valid message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The request failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Policies do not permit the request. Codes of applications are outside of the range that JSON-RPC reserves.
    pub const NOT_PERMITTED: i64 = -31403;
    /// The headers of an HTTP request don't match its body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The error of a malformed message.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageError {
    /// The id of the request, if it could be determined.
    pub id: Option<RequestId>,
    /// One of [`code`].
    pub code: i64,
    /// The problem. Excerpts of the message are escaped, so they can't break out of their line or backticks.
    pub message: String,
}

impl MessageError {
    pub(super) fn new(id: Option<RequestId>, code: i64, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    /// Creates the error of text that is not a message, with the id of its request if that can be determined.
    pub(crate) fn unparsable(text: &str, message: impl Into<String>) -> Self {
        Self::new(malformed_recovery::recover_request_id(text), code::PARSE_ERROR, message)
    }

    /// Creates the error of invalid JSON.
    pub(super) fn invalid_json(text: &str, error: &ParseError) -> Self {
        Self::unparsable(text, format!("invalid JSON: {}", problem(error)))
    }

    /// The error response.
    pub fn to_response(&self) -> JsonRpcMessage {
        JsonRpcMessage::error_response(self.id.as_ref(), self.code, &self.message, None)
    }
}

/// The problem of a JSON text and its position. A key of the text is truncated and escaped.
fn problem(error: &ParseError) -> String {
    match &error.kind {
        ParseErrorKind::DuplicateKey(key) => {
            let kind = ParseErrorKind::DuplicateKey(escape_controls(&truncate(key)));
            ParseError { kind, ..error.clone() }.to_string()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_truncates_message_text_in_errors() {
        let parse_failure = |text: &str| JsonRpcMessage::parse(text).expect_err("it is none").message;
        let cases = [
            (r#"{"id":1.5}"#, "`id` must be a string or an integer of at most 18 digits"),
            (r#"{"id" 1}"#, "invalid JSON: expected `:` at line 1 column 7"),
            (r#"{"a":1,"a":2}"#, "invalid JSON: duplicate key `a` at line 1 column 8"),
            (
                r#"{"`\u001b[2J\n":1,"`\u001b[2J\n":2}"#,
                r"invalid JSON: duplicate key `\u{60}\u{1b}[2J\u{a}` at line 1 column 19",
            ),
            (
                r#"{"`Method":1,"method":2}"#,
                r"ambiguous member `\u{60}Method`: some parsers read it as another one",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_failure(text), expected, "{text}");
        }
        let long = parse_failure(&format!(r#"{{"{0}":1,"{0}":2}}"#, "k".repeat(1_000)));
        assert!(
            long.len() < 200 && long.contains("duplicate key `kkk") && long.contains("kkk…` at"),
            "{long}"
        );
    }
}
