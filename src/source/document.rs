//! The tree that a rules file is read into: plain YAML values, each with the place where it stands.

use crate::diagnostic::Span;
use crate::json::{Map, Number, Value};

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: NodeValue,
    /// Where it stands (of an alias: where it is used).
    pub span: Span,
}

/// What a [`Node`] is.
#[derive(Clone, Debug)]
pub enum NodeValue {
    /// `null`, `~`, or nothing
    Null,
    /// `true`, `false`
    Bool(bool),
    /// a number, its text kept
    Number(Number),
    /// any other scalar
    String(Text),
    /// a list
    Sequence(Vec<Node>),
    /// a mapping, in the file's order, without doubled keys
    Mapping(Vec<Entry>),
}

/// A string scalar.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text as YAML understands it.
    pub text: String,
    /// How it was written, so that a place inside can be pointed at.
    pub style: TextStyle,
}

/// How a string scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// Without quotes, on one line: byte offsets in the text and in the file run alike.
    Plain,
    /// In quotes, or over several lines.
    Quoted,
    /// A block scalar (`|`): each line of the text is one line of the file, indented.
    Literal,
    /// A block scalar (`>`).
    Folded,
}

/// One key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The value under a key, where this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries, where this is a mapping.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            NodeValue::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items, where this is a list.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            NodeValue::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The text, where this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The boolean, where this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            NodeValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, where this is one.
    pub fn as_number(&self) -> Option<&Number> {
        match &self.value {
            NodeValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// What it is, in the words of a message: `a string`, `a mapping`.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Sequence(_) => "a list",
            NodeValue::Mapping(_) => "a mapping",
        }
    }

    /// The value as JSON, without places.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(number) => Value::Number(number.clone()),
            NodeValue::String(text) => Value::String(text.text.clone()),
            NodeValue::Sequence(items) => items.iter().map(Node::to_json).collect(),
            NodeValue::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect::<Map>(),
            ),
        }
    }
}
