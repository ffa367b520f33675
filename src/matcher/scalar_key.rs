//! Scalars as keys of an index: JSON scalar → [`ScalarKey`].

use std::hash::BuildHasher;

use crate::call::NodeRef;
use crate::json::{JsonType, Number, Value};

/// A scalar as the key of an index.
#[derive(Clone, Copy, Debug)]
pub enum ScalarKey<'a> {
    /// A string.
    String(&'a str),
    /// A number, by exact value.
    Number(&'a Number),
    /// A boolean.
    Boolean(bool),
}

impl<'a> ScalarKey<'a> {
    /// Returns the key of a node. Returns `None` if it is not a scalar, or is `null`.
    pub fn from_node(node: NodeRef<'a>) -> Option<Self> {
        match node {
            NodeRef::Text(text) => Some(Self::String(text)),
            NodeRef::Json(Value::String(text)) => Some(Self::String(text)),
            NodeRef::Json(Value::Number(number)) => Some(Self::Number(number)),
            NodeRef::Json(Value::Bool(value)) => Some(Self::Boolean(*value)),
            NodeRef::Json(_) | NodeRef::Time(_) => None,
        }
    }

    /// The JSON type of the scalar.
    pub fn json_type(&self) -> JsonType {
        match self {
            Self::String(_) => JsonType::String,
            Self::Number(_) => JsonType::Number,
            Self::Boolean(_) => JsonType::Boolean,
        }
    }

    /// The hash. Equal values have equal hashes; after a collision, evaluating the test decides.
    pub fn hash(&self, state: &impl BuildHasher) -> u64 {
        match self {
            Self::String(text) => state.hash_one(text),
            Self::Number(number) => state.hash_one(number),
            Self::Boolean(value) => state.hash_one(value),
        }
    }
}
