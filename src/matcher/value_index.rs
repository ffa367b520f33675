//! The values of a set by hash, for a condition that looks up many elements. Values → whether one of them equals a scalar.

use std::collections::HashSet;

use super::comparison::{operand_mismatch, type_mismatch};
use super::truth::Truth;
use crate::call::NodeRef;
use crate::json::{JsonType, Number, Value};
use crate::string_search::StringSearch;

/// Scalars by hash, and the types of all values.
#[derive(Debug, Default)]
pub struct ValueIndex {
    strings: HashSet<String>,
    numbers: HashSet<Number>,
    booleans: HashSet<bool>,
    /// Each type once, in order.
    types: Vec<JsonType>,
    /// The strings as parts of a text.
    parts: Option<StringSearch>,
}

/// The most bytes of strings that are searched for in one pass. Beyond them, the search itself would need too much memory.
const MAX_PARTS: usize = 4 << 20;

impl ValueIndex {
    /// Indexes values. Returns `None` if one is a time, which is compared in its own way.
    pub fn new(values: &[NodeRef<'_>]) -> Option<Self> {
        let mut index = Self::default();
        for value in values {
            match value {
                NodeRef::Time(_) => return None,
                NodeRef::Text(text) => drop(index.strings.insert((*text).to_owned())),
                NodeRef::Json(Value::String(text)) => drop(index.strings.insert(text.clone())),
                NodeRef::Json(Value::Number(number)) => drop(index.numbers.insert(number.clone())),
                NodeRef::Json(Value::Bool(value)) => drop(index.booleans.insert(*value)),
                NodeRef::Json(Value::Null | Value::Array(_) | Value::Object(_)) => {}
            }
            let json_type = value.json_type();
            if !index.types.contains(&json_type) {
                index.types.push(json_type);
            }
        }
        Some(index)
    }

    /// Prepares the search for the strings in texts.
    #[must_use]
    pub fn with_parts(mut self) -> Self {
        if self.strings.iter().map(String::len).sum::<usize>() <= MAX_PARTS {
            self.parts = StringSearch::new(&self.strings);
        }
        self
    }

    /// Whether a node, a text or an array, contains one of the values, as `contains` with each of them decides it. Returns `None` if that is
    /// not known without them.
    pub fn has_part_of(&self, node: NodeRef<'_>) -> Option<Truth> {
        if let NodeRef::Json(Value::Array(items)) = node {
            let found = items.iter().map(|item| self.contains(NodeRef::Json(item), "contains"));
            return found.collect::<Option<Vec<Truth>>>().map(Truth::any);
        }
        let (text, parts) = (node.as_str()?, self.parts.as_ref()?);
        let is_mixed = self.types.iter().any(|json_type| *json_type != JsonType::String);
        Some(match parts.is_match(text) {
            true => Truth::Yes,
            false if is_mixed => operand_mismatch(),
            false => Truth::No,
        })
    }

    /// Whether one of the values equals a node, as a comparison with each of them decides it. Returns `None` if the node is not a string, a
    /// number or a boolean.
    pub fn contains(&self, node: NodeRef<'_>, operator: &str) -> Option<Truth> {
        let is_found = match node {
            NodeRef::Text(text) => self.strings.contains(text),
            NodeRef::Json(Value::String(text)) => self.strings.contains(text),
            NodeRef::Json(Value::Number(number)) => self.numbers.contains(number),
            NodeRef::Json(Value::Bool(value)) => self.booleans.contains(value),
            NodeRef::Json(Value::Null | Value::Array(_) | Value::Object(_)) | NodeRef::Time(_) => {
                return None;
            }
        };
        let other = self.types.iter().find(|json_type| **json_type != node.json_type());
        Some(match (is_found, other) {
            (true, _) => Truth::Yes,
            (false, Some(other)) => type_mismatch(node, operator, other.with_article()),
            (false, None) => Truth::No,
        })
    }
}
