//! Messages that can't be taken.

use super::{Frame, Id};
use crate::json::{ParseError, ParseErrorKind};
use crate::mcp::unreadable;
use crate::text::{cut, inert};

/// The codes of JSON-RPC errors.
pub mod code {
    /// The text is not JSON, or can be read in several ways.
    pub const PARSE_ERROR: i64 = -32700;
    /// It is JSON, and no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method does not take these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It could not be done.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The headers of an HTTP request say something else than its body.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a capability that the request needs.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The version of the protocol is none that is spoken here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// A message that can't be taken, with the answer to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// Whose answer it is, where that can be told.
    pub id: Option<Id>,
    /// One of [`code`].
    pub code: i64,
    /// What is wrong with it. What stands in it of the message itself can't break out of its line or its backticks.
    pub message: String,
}

impl Malformed {
    pub(super) fn new(id: Option<Id>, code: i64, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    /// A text that is no message, whose request is told where that can be.
    pub(in crate::mcp) fn unreadable(text: &str, message: impl Into<String>) -> Self {
        Self::new(unreadable::asked_by(text), code::PARSE_ERROR, message)
    }

    /// A text that is not valid JSON.
    pub(super) fn invalid_json(text: &str, error: &ParseError) -> Self {
        Self::unreadable(text, format!("invalid JSON: {}", problem(error)))
    }

    /// The answer that says so.
    pub fn answer(&self) -> Frame {
        Frame::error(self.id.as_ref(), self.code, &self.message, None)
    }
}

/// What is wrong with a JSON text, and where. A key of the text is cut and can't break out of its backticks.
fn problem(error: &ParseError) -> String {
    match &error.kind {
        ParseErrorKind::DuplicateKey(key) => {
            let kind = ParseErrorKind::DuplicateKey(inert(&cut(key)));
            ParseError { kind, ..error.clone() }.to_string()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_says_is_told_apart_from_our_words() {
        let said = |text: &str| Frame::parse(text).expect_err("it is none").message;
        let cases = [
            (r#"{"id":1.5}"#, "an `id` is a string or a whole number of up to 18 digits"),
            (r#"{"id" 1}"#, "invalid JSON: expected `:` at line 1 column 7"),
            (r#"{"a":1,"a":2}"#, "invalid JSON: duplicate key `a` at line 1 column 8"),
            (
                r#"{"`\u001b[2J\n":1,"`\u001b[2J\n":2}"#,
                r"invalid JSON: duplicate key `\u{60}\u{1b}[2J\u{a}` at line 1 column 19",
            ),
            (r#"{"`Method":1,"method":2}"#, r"some take the member `\u{60}Method` for another one"),
        ];
        for (text, expected) in cases {
            assert_eq!(said(text), expected, "{text}");
        }
        let long = said(&format!(r#"{{"{0}":1,"{0}":2}}"#, "k".repeat(1_000)));
        assert!(
            long.len() < 200 && long.contains("duplicate key `kkk") && long.contains("kkk…` at"),
            "{long}"
        );
    }
}
