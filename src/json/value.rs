//! `Value`: any JSON value, with accessors, JSON pointers and indexing.

use std::fmt;

use super::Number;

mod index;
mod map;

pub use index::Index;
pub(super) use map::Members;
pub use map::{Entry, Key, Map};

/// A JSON value. Equality ignores the order of keys and the notation of numbers, but compares the exact values of numbers.
///
/// ```
/// use callgate::json::{Value, json};
///
/// let order: Value = r#"{"amount": 12.50, "items": ["a", "b"]}"#.parse()?;
/// assert_eq!(order["items"][1], "b");
/// assert_eq!(order, json!({"items": ["a", "b"], "amount": 12.5}));
/// assert_eq!(order.to_string(), r#"{"amount":12.50,"items":["a","b"]}"#);
/// assert_ne!(json!(9007199254740992u64), json!(9007199254740993u64));
/// # Ok::<(), callgate::json::ParseError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with its text and its exact value.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object, its members in order.
    Object(Map),
}

impl Value {
    /// The member of an object by key, or the item of an array by position.
    pub fn get<I: Index>(&self, index: I) -> Option<&Self> {
        index.get_in(self)
    }

    /// The mutable member of an object by key, or item of an array by position.
    pub fn get_mut<I: Index>(&mut self, index: I) -> Option<&mut Self> {
        index.get_mut_in(self)
    }

    /// The value at a JSON pointer (RFC 6901).
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer_steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(members) => members.get(&step),
            Self::Array(items) => items.get(parse_index(&step)?),
            _ => None,
        })
    }

    /// The mutable value at a JSON pointer (RFC 6901).
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Self> {
        pointer_steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(members) => members.get_mut(&step),
            Self::Array(items) => items.get_mut(parse_index(&step)?),
            _ => None,
        })
    }

    /// Takes the value and leaves `null`.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns `()` if it is `null`.
    pub fn as_null(&self) -> Option<()> {
        self.is_null().then_some(())
    }

    /// Whether it is a boolean.
    pub fn is_boolean(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    /// The boolean. Returns `None` for any other type.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// The number. Returns `None` for any other type.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The number as [`Number::as_i64`] returns it.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The number as [`Number::as_u64`] returns it.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The number as [`Number::as_f64`] returns it.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// Whether [`as_i64`](Self::as_i64) returns a value.
    pub fn is_i64(&self) -> bool {
        self.as_i64().is_some()
    }

    /// Whether [`as_u64`](Self::as_u64) returns a value.
    pub fn is_u64(&self) -> bool {
        self.as_u64().is_some()
    }

    /// Whether it is a number that is written with a point or an exponent.
    pub fn is_f64(&self) -> bool {
        self.as_number().is_some_and(Number::is_f64)
    }

    /// Whether it is a string.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    /// The string. Returns `None` for any other type.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// The array. Returns `None` for any other type.
    pub fn as_array(&self) -> Option<&Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The mutable array. Returns `None` for any other type.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The object. Returns `None` for any other type.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The mutable object. Returns `None` for any other type.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }
}

fn pointer_steps(pointer: &str) -> Option<impl Iterator<Item = String>> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    Some(pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")))
}

/// Parses an array index of a pointer: without a sign and without leading zeros.
fn parse_index(step: &str) -> Option<usize> {
    let is_plain = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    is_plain.then(|| step.parse().ok()).flatten()
}

/// The `Debug` form names the type of each value: `Object {"a": Number(1)}`.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Bool(value) => write!(f, "Bool({value})"),
            Self::Number(number) => fmt::Debug::fmt(number, f),
            Self::String(text) => write!(f, "String({text:?})"),
            Self::Array(items) => {
                f.write_str("Array ")?;
                fmt::Debug::fmt(items, f)
            }
            Self::Object(members) => {
                f.write_str("Object ")?;
                fmt::Debug::fmt(members, f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn equality_ignores_key_order_and_number_notation() {
        assert_eq!(json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1.0}));
        assert_ne!(json!([1, 2]), json!([2, 1]));
        assert_ne!(json!({"a": null}), json!({}));
        assert_ne!(json!(9007199254740992u64), json!(9007199254740993u64));
        assert_ne!(json!("1"), json!(1));
    }

    #[test]
    fn pointers_follow_rfc_6901() {
        let value = json!({"": 0, "a/b": {"m~n": [10, 11]}, "~1": 5});
        for (pointer, expected) in [
            ("", Some(value.clone())),
            ("/", Some(json!(0))),
            ("/a~1b/m~0n/1", Some(json!(11))),
            ("/~01", Some(json!(5))),
            ("/a~1b/m~0n/01", None),
            ("/a~1b/m~0n/+1", None),
            ("/a~1b/m~0n/-", None),
            ("/a~1b/m~0n/2", None),
            ("a", None),
            ("/a", None),
        ] {
            assert_eq!(value.pointer(pointer), expected.as_ref(), "{pointer}");
            assert_eq!(value.clone().pointer_mut(pointer).cloned(), expected, "{pointer}");
        }
    }

    #[test]
    fn indexing_reads_missing_members_as_null_and_inserts_them() {
        let mut value = Value::Null;
        assert!(value["a"][3].is_null());
        value["a"]["b"] = json!([1]);
        value["a"]["b"][0] = json!(2);
        assert_eq!(value, json!({"a": {"b": [2]}}));
    }

    #[test]
    #[should_panic(expected = "no such member or item")]
    fn assigning_to_a_member_of_a_string_panics() {
        let mut value = json!("text");
        value["a"] = json!(1);
    }

    #[test]
    fn removing_members_keeps_the_order_of_the_others() {
        let mut value = json!({"a": 1, "b": 2, "c": 3, "d": 4});
        let members = value.as_object_mut().unwrap();
        assert_eq!(members.remove("a"), Some(json!(1)));
        assert_eq!(members.keys().collect::<Vec<_>>(), ["b", "c", "d"]);
        members.shift_insert(0, "d".to_owned(), json!(5));
        assert_eq!(value.to_string(), r#"{"d":5,"b":2,"c":3}"#);
    }
}
