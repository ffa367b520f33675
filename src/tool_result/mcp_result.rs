//! Recognizes MCP results (`CallToolResult`): objects with `content`, `structuredContent`, or both.

use crate::json::{self, Map, Value};
use crate::work_limit;

pub(super) const CONTENT: &str = "content";
pub(super) const STRUCTURED_CONTENT: &str = "structuredContent";
/// The only member of structured content that wraps a value which is not an object.
pub(super) const WRAPPED: &str = "result";

/// The part of an MCP result that policies read.
pub(super) enum McpContent<'a> {
    /// Its structured content, and the texts beside it.
    Structured(&'a Value, Vec<&'a str>),
    /// The value that its structured content wraps, because structured content used to be an object: `{"result": VALUE}`.
    Wrapped(&'a Value, Vec<&'a str>),
    /// The text of its only text part.
    Text(&'a str),
    /// The texts of several parts.
    Texts(Vec<&'a str>),
    /// It has no text.
    Other,
    /// It has members or parts that may contain a text which is not read.
    Unreadable,
}

impl<'a> McpContent<'a> {
    /// Reads an MCP result. Returns `None` if the value is not one: it has neither an array of typed parts nor structured content.
    /// `is_wrapped`: the tool declares that structured content wraps a value.
    pub(super) fn from_output(output: &'a Value, is_wrapped: bool) -> Option<Self> {
        let members = output.as_object()?;
        let content = members.get(CONTENT);
        let parts = content.and_then(Value::as_array).map(Vec::as_slice);
        let parts = parts.filter(|parts| parts.iter().all(is_part));
        let structured = members.get(STRUCTURED_CONTENT).filter(|content| content.is_object());
        let has_only_known = members.iter().all(|(name, value)| is_known_member(name, value));
        match (parts, structured) {
            (None, None) => return None,
            (None, Some(_)) if content.is_some_and(|content| !content.is_null()) => return None,
            // An ordinary object may have a list `content`, too. If it has entries, it looks like a result with unknown members.
            (Some([]), None) if !has_only_known => return None,
            _ if !has_only_known => return Some(Self::Unreadable),
            (parts, Some(content)) => {
                let texts: Vec<&str> = parts.into_iter().flatten().filter_map(text_of_part).collect();
                return Some(match wrapped_value(content) {
                    Some(value) if is_wrapped || is_marked_as_wrapped(members) || repeats(&texts, value) => {
                        Self::Wrapped(value, texts)
                    }
                    _ => Self::Structured(content, texts),
                });
            }
            (Some(_), None) => {}
        }
        let parts = parts?;
        if !parts.iter().all(has_known_type) {
            return Some(Self::Unreadable);
        }
        let texts: Vec<&str> = parts.iter().filter_map(text_of_part).collect();
        Some(match texts.as_slice() {
            [] => Self::Other,
            [text] => Self::Text(text),
            _ => Self::Texts(texts),
        })
    }
}

fn wrapped_value(content: &Value) -> Option<&Value> {
    let members = content.as_object()?;
    members.get(WRAPPED).filter(|_| members.len() == 1)
}

/// Whether the server says that it wrapped the value, as FastMCP does.
fn is_marked_as_wrapped(members: &Map) -> bool {
    let marks = members.get("_meta").and_then(|meta| meta.get("fastmcp"));
    marks.and_then(|marks| marks.get("wrap_result")).and_then(Value::as_bool) == Some(true)
}

/// Whether texts are the texts of a value: the string, its JSON, or one text for each element of an array.
pub(super) fn repeats(texts: &[&str], value: &Value) -> bool {
    let is_text_of = |text: &str, value: &Value| match value.as_str() {
        Some(string) => string == text,
        None => is_json_of(text, value),
    };
    match (texts, value) {
        ([text], value) if is_text_of(text, value) => true,
        (texts, Value::Array(items)) => {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, item)| is_text_of(text, item))
        }
        _ => false,
    }
}

fn is_json_of(text: &str, value: &Value) -> bool {
    // Some programs write a byte order mark first.
    let text = text.trim_start_matches('\u{feff}');
    work_limit::spend_for(text.len(), 4).is_ok() && json::parse(text).is_ok_and(|parsed| parsed == *value)
}

fn is_part(part: &Value) -> bool {
    part.get("type").is_some_and(Value::is_string)
}

/// Whether MCP defines the member with this value. Some libraries write absent members as null, and `_meta` as `meta`.
fn is_known_member(name: &str, value: &Value) -> bool {
    match name {
        CONTENT | "_meta" => true,
        STRUCTURED_CONTENT => value.is_null() || value.is_object(),
        "isError" => value.is_null() || value.as_bool().is_some(),
        "resultType" => value.is_null() || value.is_string(),
        "meta" => value.is_null(),
        _ => false,
    }
}

/// Whether a part is a text, or a part without text for the model. Embedded resources contain texts.
fn has_known_type(part: &Value) -> bool {
    match part.get("type").and_then(Value::as_str) {
        Some("text") => text_of_part(part).is_some(),
        Some(kind) => WITHOUT_TEXT.contains(&kind),
        None => false,
    }
}

/// The types of parts that have no text.
pub(super) const WITHOUT_TEXT: [&str; 3] = ["image", "audio", "resource_link"];

/// The text of a content part, or `None` if it is not a text part.
pub(super) fn text_of_part(part: &Value) -> Option<&str> {
    part.get("type").filter(|kind| kind.as_str() == Some("text"))?;
    part.get("text")?.as_str()
}

/// A text part.
pub(super) fn text_part(text: &str) -> Value {
    let members = [("type", Value::from("text")), ("text", Value::from(text))];
    Value::Object(Map::from_iter(members.map(|(name, value)| (name.to_owned(), value))))
}
