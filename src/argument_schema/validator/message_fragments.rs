//! Text fragments of a violation: escaped and truncated values, type names, and property descriptions from the schema.

use jsonschema::error::TypeKind;

use crate::json::{self, JsonType, Value};
use crate::safe_text::{escape_controls, truncate};

/// The maximum number of listed values.
const MAX_LISTED: usize = 12;

/// A value as JSON.
pub(super) fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => {
            format!("\"{}\"", truncate(&escape_controls(&text.replace('\\', "\\\\").replace('"', "\\\""))))
        }
        other => truncate(&escape_controls(&other.to_string())),
    }
}

/// A value as JSON with its type.
pub(super) fn format_value_with_type(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format_value(value),
        _ => format!("the {} {}", JsonType::from_value(value).name(), format_value(value)),
    }
}

/// Values as a comma-separated enumeration.
pub(super) fn format_list<'a>(values: impl ExactSizeIterator<Item = &'a Value>) -> String {
    let more = values.len().saturating_sub(MAX_LISTED);
    let list = values.take(MAX_LISTED).map(format_value).collect::<Vec<_>>().join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// The type names that a `type` keyword allows.
pub(super) fn allowed_types(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(single) => vec![single.as_str()],
        TypeKind::Multiple(several) => several.iter().map(jsonschema::JsonType::as_str).collect(),
    }
}

/// `a string or null`.
pub(super) fn describe_types(types: &[&str]) -> String {
    let words: Vec<&str> = types
        .iter()
        .map(|name| match *name {
            "null" => "null",
            "boolean" => "true or false",
            "integer" => "an integer",
            "number" => "a number",
            "string" => "a string",
            "array" => "an array",
            _ => "an object",
        })
        .collect();
    words.join(" or ")
}

/// How to send a value of the wrong type as one of the right type.
pub(super) fn type_hint(types: &[&str], value: &Value) -> Option<&'static str> {
    let allows = |name: &str| types.contains(&name);
    match value {
        Value::String(text) => match json::parse(text.trim()).ok()? {
            Value::Number(_) if allows("number") || allows("integer") => Some("send it without quotes"),
            Value::Bool(_) if allows("boolean") => Some("send it without quotes"),
            Value::Null if allows("null") => Some("send it without quotes"),
            Value::Array(_) if allows("array") => Some("send it as an array, not as a string"),
            Value::Object(_) if allows("object") => Some("send it as an object, not as a string"),
            _ => None,
        },
        Value::Number(_) | Value::Bool(_) if allows("string") => Some("send it in quotes"),
        _ => None,
    }
}

/// Type and description of a property in parentheses, after a space; empty if unknown.
pub(super) fn describe_property(schema: Option<&Value>) -> String {
    let text = |key| schema.and_then(|schema: &Value| schema.get(key)).and_then(Value::as_str);
    let description = text("description").map(first_sentence).filter(|text| !text.is_empty());
    let parts: Vec<String> = [text("type"), description]
        .into_iter()
        .flatten()
        .map(|text| truncate(&escape_controls(text)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(": ")) }
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let end = text.find(". ").map(|end| end + 1).or_else(|| text.find('\n'));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The description of a `format`, with an example.
pub(super) fn describe_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "a date such as 2026-03-01",
        "date-time" => "a date and time with time zone, such as 2026-03-01T09:30:00Z",
        "time" => "a time with time zone, such as 09:30:00Z",
        "duration" => "a duration such as P3D or PT15M",
        "email" => "an email address such as ana@example.com",
        "hostname" => "a host name such as api.example.com",
        "ipv4" => "an IPv4 address such as 192.0.2.1",
        "ipv6" => "an IPv6 address such as 2001:db8::1",
        "uri" => "a full URI such as https://example.com/page",
        "uuid" => "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
        _ => return None,
    })
}
