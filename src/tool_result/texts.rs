//! The texts of an output: the output itself if it is a string, the texts of an MCP result, and a text that structured content wraps.

use super::mcp_result::{CONTENT, STRUCTURED_CONTENT, WRAPPED};
use super::{ResultFormat, ToolResult};
use crate::json::Value;

/// A text that is declared to be YAML, as data.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlText {
    /// An object or an array.
    Data(Value),
    /// A string, a number, or another scalar.
    Scalar,
    /// It is not YAML, or too long.
    Unreadable,
}

impl YamlText {
    /// Parses a text.
    pub fn parse(text: &str) -> Self {
        match ToolResult::from_text(text, ResultFormat::Yaml) {
            Some(ToolResult::Parsed(value @ (Value::Object(_) | Value::Array(_)))) => Self::Data(value),
            Some(ToolResult::Parsed(_)) => Self::Scalar,
            _ => Self::Unreadable,
        }
    }
}

/// Replaces texts of an output, in MCP results also those of embedded resources. `replace` returns `None` for a text that stays.
pub fn rewrite_texts(output: &mut Value, replace: &mut dyn FnMut(&str) -> Option<String>) {
    let mut rewrite = |value: Option<&mut Value>| {
        if let Some(Value::String(text)) = value
            && let Some(new) = replace(text)
        {
            *text = new;
        }
    };
    if output.is_object() {
        if let Some(Value::Array(parts)) = output.get_mut(CONTENT) {
            for part in parts {
                rewrite(part.get_mut("text"));
                rewrite(part.get_mut("resource").and_then(|resource| resource.get_mut("text")));
            }
        }
        rewrite(output.get_mut(STRUCTURED_CONTENT).and_then(|content| content.get_mut(WRAPPED)));
    } else {
        rewrite(Some(output));
    }
}
