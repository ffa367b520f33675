//! Recognizes MCP results (`CallToolResult`): objects with `content`, `structuredContent`, or both.

use crate::json::{Map, Value};

pub(super) const CONTENT: &str = "content";
pub(super) const STRUCTURED_CONTENT: &str = "structuredContent";

/// The part of an MCP result that policies read.
pub(super) enum McpContent<'a> {
    /// Its structured content.
    Structured,
    /// The text of its only text part.
    Text(&'a str),
    /// The texts of several parts.
    Texts(Vec<&'a str>),
    /// It has no text.
    Other,
}

impl<'a> McpContent<'a> {
    /// Reads an MCP result. Returns `None` if the value is not one: it has other members, or members of other types.
    pub(super) fn from_output(output: &'a Value) -> Option<Self> {
        let members = output.as_object()?;
        if !members.iter().all(|(name, value)| is_member(name, value)) {
            return None;
        }
        if members.contains_key(STRUCTURED_CONTENT) {
            return Some(Self::Structured);
        }
        let texts: Vec<&str> = members.get(CONTENT)?.as_array()?.iter().filter_map(text_of_part).collect();
        Some(match texts.as_slice() {
            [] => Self::Other,
            [text] => Self::Text(text),
            _ => Self::Texts(texts),
        })
    }
}

fn is_member(name: &str, value: &Value) -> bool {
    let is_part = |part: &Value| part.get("type").is_some_and(Value::is_string);
    match name {
        CONTENT => value.as_array().is_some_and(|parts| parts.iter().all(is_part)),
        STRUCTURED_CONTENT => value.is_object(),
        "isError" => value.as_bool().is_some(),
        "_meta" => true,
        _ => false,
    }
}

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
