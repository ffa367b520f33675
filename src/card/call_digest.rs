//! The short digest on a card: it commits to the whole call, including what the card does not show.

use crate::json::{self, Value, json};
use crate::message::RequestPart;

/// Returns the short digest of a request's call: its tool, its server and its arguments, both original and as shown. Two calls
/// that differ in anything, even in redacted or truncated parts, have different digests.
///
/// It is derived from the request's `input_digest`, so it is keyed if that is: without the key nobody can recover redacted values
/// by brute force.
///
/// ```
/// use callgate::card::call_digest;
/// use callgate::json::json;
/// use callgate::message::RequestPart;
///
/// let request = |amount: u32| RequestPart { input: Some(json!({"amount": amount})), ..RequestPart::default() };
/// assert_ne!(call_digest(&request(20)), call_digest(&request(21)));
/// ```
pub fn call_digest(request: &RequestPart) -> String {
    short_digest(&digest_input(request))
}

/// Returns the short digest of an answer to a request: edited arguments, or the substitute for the tool's result.
pub(super) fn answer_digest(request: &RequestPart, answer: &Value) -> String {
    short_digest(&json!([digest_input(request), answer]))
}

fn digest_input(request: &RequestPart) -> Value {
    json!([request.tool_name, request.server, request.input_digest, request.input])
}

fn short_digest(about: &Value) -> String {
    json::digest(about).short_hex()
}
