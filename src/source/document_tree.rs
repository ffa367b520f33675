//! The document tree of a rules file: YAML values with their positions.

use crate::diagnostic::{SourceId, Span};
use crate::json::{self, Map, Number, Value};

/// The maximum nesting of lists and mappings.
pub const MAX_NESTING: usize = 64;
/// The maximum number of values in a bundle; an alias counts each time it is used.
pub const MAX_NODES: usize = 1_000_000;

/// A value with its position.
#[derive(Clone, Debug)]
pub struct YamlNode {
    /// The value.
    pub value: YamlValue,
    /// Its position (of an alias: the position of the alias).
    pub span: Span,
}

/// The value of a [`YamlNode`].
#[derive(Clone, Debug)]
pub enum YamlValue {
    /// `null`, `~`, or an empty value
    Null,
    /// `true`, `false`
    Bool(bool),
    /// a number, in its original notation
    Number(Number),
    /// any other scalar
    String(YamlString),
    /// a list
    Sequence(Vec<YamlNode>),
    /// a mapping, in file order, without duplicate keys
    Mapping(Vec<MappingEntry>),
}

/// A string scalar.
#[derive(Clone, Debug)]
pub struct YamlString {
    /// The string value.
    pub text: String,
    /// Its notation, for positions inside the string.
    pub style: StringStyle,
}

/// The notation of a string scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringStyle {
    /// Plain, on one line: byte offsets in the string and in the file correspond.
    Plain,
    /// Quoted, or on several lines.
    Quoted,
    /// A literal block scalar (`|`): each line of the string is one indented line of the file.
    Literal,
    /// A folded block scalar (`>`).
    Folded,
}

/// A key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct MappingEntry {
    /// The key.
    pub key: String,
    /// The position of the key.
    pub key_span: Span,
    /// The value.
    pub value: YamlNode,
}

impl YamlNode {
    /// A string that is the whole text of a file.
    pub fn whole_file(source: SourceId, text: String) -> Self {
        let span = Span::new(source, 0, text.len());
        Self { value: YamlValue::String(YamlString { text, style: StringStyle::Plain }), span }
    }

    /// A JSON value in the place of a node.
    pub fn from_json(value: &Value, span: Span) -> Self {
        let value = match value {
            Value::Null => YamlValue::Null,
            Value::Bool(value) => YamlValue::Bool(*value),
            Value::Number(number) => YamlValue::Number(number.clone()),
            Value::String(text) => {
                YamlValue::String(YamlString { text: text.clone(), style: StringStyle::Quoted })
            }
            Value::Array(items) => {
                YamlValue::Sequence(items.iter().map(|item| Self::from_json(item, span)).collect())
            }
            Value::Object(members) => {
                let entry = |(key, value): (&str, &Value)| MappingEntry {
                    key: key.to_owned(),
                    key_span: span,
                    value: Self::from_json(value, span),
                };
                YamlValue::Mapping(members.iter().map(|(key, value)| entry((key, value))).collect())
            }
        };
        Self { value, span }
    }

    /// The key of an entry, as a string.
    pub fn from_key(entry: &MappingEntry) -> Self {
        let text = YamlString { text: entry.key.clone(), style: StringStyle::Plain };
        Self { value: YamlValue::String(text), span: entry.key_span }
    }

    /// The value of a key. Returns `None` if this is not a mapping or lacks the key.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries, if this is a mapping.
    pub fn entries(&self) -> Option<&[MappingEntry]> {
        match &self.value {
            YamlValue::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items, if this is a list.
    pub fn items(&self) -> Option<&[YamlNode]> {
        match &self.value {
            YamlValue::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            YamlValue::String(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.value {
            YamlValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if this is one.
    pub fn as_number(&self) -> Option<&Number> {
        match &self.value {
            YamlValue::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The type for messages: `a string`, `a mapping`.
    pub fn type_name(&self) -> &'static str {
        match &self.value {
            YamlValue::Null => "nothing",
            YamlValue::Bool(_) => "a boolean",
            YamlValue::Number(_) => "a number",
            YamlValue::String(_) => "a string",
            YamlValue::Sequence(_) => "a list",
            YamlValue::Mapping(_) => "a mapping",
        }
    }

    /// The canonical text of the value as JSON, for digests and comparisons; of a mapping without one of its keys.
    pub fn canonical_text(&self, without: Option<&str>) -> String {
        let mut text = String::new();
        self.write_canonical(without, &mut text);
        text
    }

    fn write_canonical(&self, without: Option<&str>, text: &mut String) {
        match &self.value {
            YamlValue::Sequence(items) => {
                json::write_canonical_array(items, text, |item, text| item.write_canonical(None, text));
            }
            YamlValue::Mapping(entries) => {
                let kept = entries.iter().filter(|entry| without != Some(entry.key.as_str()));
                json::write_canonical_object(
                    kept.map(|entry| (entry.key.as_str(), &entry.value)),
                    text,
                    |item, text| item.write_canonical(None, text),
                );
            }
            YamlValue::Null => text.push_str("null"),
            YamlValue::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            YamlValue::Number(number) => text.push_str(&number.canonical_text()),
            YamlValue::String(string) => drop(json::write_string(&string.text, text)),
        }
    }

    /// The value as JSON, without positions.
    pub fn to_json(&self) -> Value {
        match &self.value {
            YamlValue::Null => Value::Null,
            YamlValue::Bool(value) => Value::Bool(*value),
            YamlValue::Number(number) => Value::Number(number.clone()),
            YamlValue::String(text) => Value::String(text.text.clone()),
            YamlValue::Sequence(items) => items.iter().map(YamlNode::to_json).collect(),
            YamlValue::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect::<Map>(),
            ),
        }
    }
}
