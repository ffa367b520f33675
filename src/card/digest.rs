//! The short digest that a card shows: it commits to all of a call, also to what the card does not show.

use crate::json::{self, Value, json};
use crate::message::RequestPart;

/// The short digest of a question's call: its tool, its server and its arguments, as they are and as they are shown. Two calls that
/// differ in anything, also in what is redacted or cut, have different digests.
///
/// It is made of the request's `input_digest`, so it is keyed where that is: then nobody without the key can find what is redacted by
/// trying.
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
    short(&about(request))
}

/// The short digest of what a person answered to a question: arguments, or what stands in the tool's place.
pub(super) fn answer_digest(request: &RequestPart, answer: &Value) -> String {
    short(&json!([about(request), answer]))
}

fn about(request: &RequestPart) -> Value {
    json!([request.tool_name, request.server, request.input_digest, request.input])
}

fn short(about: &Value) -> String {
    json::digest(about).short()
}
