//! JSON as policies see it: exact numbers, one equality, one canonical form, and a reader that refuses doubled keys.
//!
//! `serde_json` compares numbers by their text or as floats, and keeps the last of two equal keys; a gate can use
//! neither, because the tool behind it may read the same bytes otherwise.

mod canonical;
mod decimal;
mod difference;
mod strict;

pub use canonical::{Digest, NoDigest, canonical, digest};
pub use decimal::Decimal;
pub use difference::{Difference, differences};
pub use strict::parse;

use serde::Serialize;
use serde_json::Value;

/// Values nested deeper than this are refused instead of walked (`serde_json` itself reads no deeper).
pub const MAX_DEPTH: usize = 128;

/// The six types of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JsonType {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// any number
    Number,
    /// a string
    String,
    /// an array
    Array,
    /// an object
    Object,
}

impl JsonType {
    /// The type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// The type in a sentence: `a string`, `an array`.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    /// The type's name in policies and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl std::fmt::Display for JsonType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether two values are the same JSON value: key order aside, numbers by exact decimal value (1 and 1.0 are equal,
/// 2^53 and 2^53+1 are not).
///
/// ```
/// use serde_json::json;
/// assert!(callgate::json::equal(&json!({"a": 1, "b": 2}), &json!({"b": 2.0, "a": 1})));
/// assert!(!callgate::json::equal(&json!(9007199254740992u64), &json!(9007199254740993u64)));
/// ```
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Decimal::of(a) == Decimal::of(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        _ => false,
    }
}

/// Whether a value nests deeper than `limit` levels. Walks no deeper than that itself.
pub fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| deeper_than(item, limit - 1)),
        _ => false,
    }
}
