//! Recovers request ids from malformed messages, so that a peer that waits for a response gets an error.

use std::iter::Peekable;
use std::str::CharIndices;

use super::jsonrpc::RequestId;
use super::method;
use callgate::json::Value;

/// The ids of the requests that malformed text was meant to answer: truncated text, invalid JSON, a batch.
///
/// Looks only at the members of the message itself. A message with a method answers nothing.
pub(super) fn recover_response_ids(text: &str) -> Vec<RequestId> {
    scan_messages(text).into_iter().flat_map(PartialMessage::response_ids).collect()
}

/// The id of the request that malformed text was meant to be. Returns `None` unless it is unambiguous: one message with a method, and one
/// member that any parser could read as its id.
pub(super) fn recover_request_id(text: &str) -> Option<RequestId> {
    let [message] = <[PartialMessage; 1]>::try_from(scan_messages(text)).ok()?;
    // Invalid UTF-8 was replaced by this character.
    message.request_id().filter(|id| !is_batch(text) && !id.to_string().contains('\u{fffd}'))
}

fn is_batch(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

fn scan_messages(text: &str) -> Vec<PartialMessage> {
    let mut messages = Vec::new();
    let mut message = PartialMessage::default();
    let outermost = if is_batch(text) { 2 } else { 1 };
    let (mut depth, mut key) = (0_usize, None);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_id = depth == outermost && key.as_deref() == Some(ID);
        match c {
            '{' | '[' => {
                message.is_ambiguous |= is_id;
                depth += 1;
            }
            '}' | ']' => {
                if depth == outermost {
                    messages.push(PartialMessage { is_complete: true, ..std::mem::take(&mut message) });
                    key = None;
                }
                depth = depth.saturating_sub(1);
            }
            ',' if depth <= outermost => key = None,
            '"' => {
                let string = text.get(at..skip_string(&mut chars, text.len())).unwrap_or_default();
                if is_id {
                    message.ids.extend(parse_id(string));
                } else if depth == outermost && key.is_none() {
                    key = member_name(string);
                    message.add_member(key.as_deref());
                }
            }
            '-' | '0'..='9' if is_id => {
                while chars.next_if(|(_, c)| c.is_ascii_alphanumeric() || ".+-".contains(*c)).is_some() {}
                // A number at the end of the text may be truncated.
                if let Some((end, _)) = chars.peek() {
                    message.ids.extend(parse_id(text.get(at..*end).unwrap_or_default()));
                }
            }
            // Some parsers read these as the start of a comment or a string, which can contain anything.
            '/' | '#' | '\'' | '`' => message.is_ambiguous = true,
            _ => message.is_ambiguous |= is_id && c != ':' && !c.is_ascii_whitespace(),
        }
    }
    if depth >= outermost {
        messages.push(message);
    }
    messages
}

const ID: &str = "id";

/// The facts recovered from a message.
#[derive(Default)]
struct PartialMessage {
    ids: Vec<RequestId>,
    /// The number of members that some parser could read as the id.
    id_members: usize,
    has_method: bool,
    has_result_or_error: bool,
    /// Parsers may disagree on where its members begin and end.
    is_ambiguous: bool,
    /// It is not truncated.
    is_complete: bool,
}

impl PartialMessage {
    fn add_member(&mut self, key: Option<&str>) {
        self.id_members += usize::from(key.is_some_and(|key| method::plain(key).eq(method::plain(ID))));
        self.has_method |= key == Some("method");
        self.has_result_or_error |= matches!(key, Some("result" | "error"));
    }

    /// The ids that it answers. A truncated message without a result may be a request.
    fn response_ids(self) -> Vec<RequestId> {
        match !self.has_method && (self.is_complete || self.has_result_or_error) {
            true => self.ids,
            false => Vec::new(),
        }
    }

    /// The id that it requests under, if it is unambiguous.
    fn request_id(self) -> Option<RequestId> {
        let is_sure =
            self.has_method && !self.has_result_or_error && self.id_members == 1 && !self.is_ambiguous;
        let [id] = <[RequestId; 1]>::try_from(self.ids).ok().filter(|_| is_sure)?;
        Some(id)
    }
}

/// The name of a member, with escapes decoded.
fn member_name(string: &str) -> Option<String> {
    let plain = || Some(string.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    callgate::json::from_str(string).ok().or_else(plain)
}

/// Reads to the end of a string; returns the position of the next character.
fn skip_string(chars: &mut Peekable<CharIndices<'_>>, length: usize) -> usize {
    while let Some((_, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => break,
            _ => {}
        }
    }
    chars.peek().map_or(length, |(end, _)| *end)
}

fn parse_id(text: &str) -> Option<RequestId> {
    RequestId::from_value(&callgate::json::from_str::<Value>(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovers_the_ids_that_malformed_responses_answer() {
        let cases: [(&str, &[&str]); 15] = [
            (r#"{"id":1,"result":{"mean":NaN}}"#, &["1"]),
            (r#"{"id" : "a\"b" , "error":{"id":9}}"#, &[r#""a\"b""#]),
            (r#"{"result":{"id":9,"list":[{"id":8}]},"id":-7}"#, &["-7"]),
            (r#"{"id":1,"result":{},"id":2}"#, &["1", "2"]),
            (r#"[{"id":1,"result":{}},{"id":2,"method":"x"},{"id":3,"error":{}}]"#, &["1", "3"]),
            (r#"{"id":1,"result":{"content":[{"te"#, &["1"]),
            (r#"{"id":1,"result":"\"#, &["1"]),
            (r#"{"note":"id","x":"id","id":4}"#, &["4"]),
            (r#"{"id":1,"resu"#, &[]),
            (r#"{"id":1,"method":"x","result":{}}"#, &[]),
            (r#"{"id":1.5,"result":{}}"#, &[]),
            (r#"{"id":null,"error":{}}"#, &[]),
            ("started with id: 5", &[]),
            ("]]}}\"", &[]),
            (r#"{"result":{},"id":12"#, &[]),
        ];
        for (text, expected) in cases {
            let found: Vec<String> = recover_response_ids(text).iter().map(RequestId::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn recovers_the_id_of_a_request_only_if_it_is_unambiguous() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}"#, Some("7")),
            (r#"{"method":"a","params":{"id":8,"x":NaN,"y":[{"id":9}]},"id":"s\"1"}"#, Some(r#""s\"1""#)),
            ("{\"id\":-7,\r\"method\":\"a\"}", Some("-7")),
            (r#"{"\u0069d":1,"method":"a","x":01}"#, Some("1")),
            (r#"{"id" : 1 ,"method":"a","params":{"na"#, Some("1")),
            (r#"{"id":1,"method":"a","params":{"x":"\"#, Some("1")),
            (r#"{"id":1,"method":"a"}}"#, Some("1")),
            // Two ids.
            (r#"{"id":1,"id":2,"method":"a"}"#, None),
            (r#"{"id":1,"id":1,"method":"a"}"#, None),
            (r#"{"id":1,"\u0069d":2,"method":"a"}"#, None),
            (r#"{"id":1,"Id":2,"method":"a","x":NaN}"#, None),
            (r#"{"id":1,"id":null,"method":"a"}"#, None),
            (r#"{"id":1 "id":2,"method":"a"}"#, None),
            ("{\"id\":1,\"method\":\"a\"}\r{\"id\":2,\"method\":\"b\"}", None),
            ("{\"method\":\"a\"}\r{\"id\":2,\"method\":\"b\"}", None),
            (r#"[{"id":1,"method":"a","x":NaN}]"#, None),
            // Not a valid id.
            (r#"{"id":1.0,"method":"a","x":NaN}"#, None),
            (r#"{"id":.5,"method":"a"}"#, None),
            (r#"{"id":+5,"method":"a"}"#, None),
            (r#"{"id":a5,"method":"a"}"#, None),
            (r#"{"id":[1] 5,"method":"a","x":NaN}"#, None),
            (r#"{"id":5 null,"method":"a"}"#, None),
            (r#"{"Id":5,"method":"a","x":NaN}"#, None),
            (r#"{"method":"a","id":12"#, None),
            (r#"{"method":"a","id":"12"#, None),
            ("{\"id\":\"a\u{fffd}\",\"method\":\"a\",\"x\":\"\u{fffd}\"}", None),
            // Not a request, or possibly not.
            (r#"{"id":1,"result":{"mean":NaN}}"#, None),
            (r#"{"id":1,"method":"a","result":{"mean":NaN}}"#, None),
            (r#"{"id":1,"para"#, None),
            // Comments, or strings in other quotes, to some parsers.
            (r#"{"method":"a",/*"id":5,*/"x":1}"#, None),
            (r#"{"id":1,"method":"a","params":{"x":'"}, "id":2'}}"#, None),
            (r#"{"id":5,"method":"a"} # "#, Some("5")),
            ("", None),
            ("null", None),
            (r#""{\"id\":1,\"method\":\"a\"}""#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(recover_request_id(text).map(|id| id.to_string()).as_deref(), expected, "{text}");
        }
    }
}
