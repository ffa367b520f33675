//! Messages that can't be taken.

use super::{Frame, Id};

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
    /// What is wrong with it.
    pub message: String,
}

impl Malformed {
    pub(super) fn new(id: Option<Id>, code: i64, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    /// The answer that says so.
    pub fn answer(&self) -> Frame {
        Frame::error(self.id.as_ref(), self.code, &self.message, None)
    }
}
