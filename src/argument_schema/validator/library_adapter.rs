//! Adapter of JSON values to the schema library: by reference, with exact numbers.
//!
//! The library's own values are those of `serde_json`, whose numbers are not exact. The library stores schemas and reports errors
//! in them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::slice;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use serde_json::Value as LibraryValue;

use crate::json::{InexactNumber, Key, Map, Number, Value, canonical_text};

/// The JSON representation of instances.
pub(super) struct ExactJson;

impl Json for ExactJson {
    type Node<'a> = &'a Value;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(&Value) -> T) -> T {
        *buffer = string.into();
        f(buffer)
    }
}

impl<'a> Node<'a, ExactJson> for &'a Value {
    type Object = &'a Map;
    type Array = &'a [Value];
    type Number = &'a Number;

    fn as_object(&self) -> Option<&'a Map> {
        Value::as_object(self)
    }

    fn as_array(&self) -> Option<&'a [Value]> {
        Value::as_array(self).map(Vec::as_slice)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        Value::as_number(self)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.as_bool()
    }

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &LibraryValue) -> bool {
        equals(self, expected)
    }

    fn to_value(&self) -> Cow<'a, LibraryValue> {
        Cow::Owned(to_library_value(self))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref::<Value>(self) as usize))
    }
}

impl<'a> Object<'a, ExactJson> for &'a Map {
    type Node = &'a Value;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        Map::len(self)
    }

    fn get(&self, key: &String) -> Option<&'a Value> {
        Map::get(self, key)
    }

    fn members(&self) -> Members<'a> {
        Members(self.iter())
    }
}

/// The members of an object in the library's form.
pub(super) struct Members<'a>(<&'a Map as IntoIterator>::IntoIter);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (name.as_str(), value))
    }
}

impl<'a> Array<'a, ExactJson> for &'a [Value] {
    type Node = &'a Value;
    type ElementsIter = slice::Iter<'a, Value>;

    fn len(&self) -> usize {
        <[Value]>::len(self)
    }

    fn elements(&self) -> slice::Iter<'a, Value> {
        self.iter()
    }

    fn is_unique(&self) -> bool {
        let mut seen = HashSet::with_capacity(<[Value]>::len(self));
        self.iter().all(|item| seen.insert(canonical_text(item)))
    }
}

impl JsonNumber for &Number {
    fn as_u64(&self) -> Option<u64> {
        Number::as_u64(self)
    }

    fn as_i64(&self) -> Option<i64> {
        Number::as_i64(self)
    }

    fn as_f64(&self) -> Option<f64> {
        Number::as_f64(self)
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(to_library_number(self))
    }

    fn is_integer(&self) -> bool {
        Number::is_integer(self)
    }

    fn is_written_as_integer(&self) -> bool {
        !self.is_f64()
    }
}

fn equals(ours: &Value, theirs: &LibraryValue) -> bool {
    match (ours, theirs) {
        (Value::Null, LibraryValue::Null) => true,
        (Value::Bool(ours), LibraryValue::Bool(theirs)) => ours == theirs,
        (Value::Number(ours), LibraryValue::Number(theirs)) => {
            Number::try_from(theirs).is_ok_and(|theirs| *ours == theirs)
        }
        (Value::String(ours), LibraryValue::String(theirs)) => ours == theirs,
        (Value::Array(ours), LibraryValue::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| equals(ours, theirs))
        }
        (Value::Object(ours), LibraryValue::Object(theirs)) => {
            let same = |(key, ours): (&Key, &Value)| {
                theirs.get(key.as_str()).is_some_and(|theirs| equals(ours, theirs))
            };
            ours.len() == theirs.len() && ours.iter().all(same)
        }
        _ => false,
    }
}

/// Converts a schema to the library's form. Numbers of `const` and `enum` are exact, others are the nearest floats: limits are
/// looked up in the schema itself.
///
/// # Errors
///
/// Returns [`InexactNumber`] for a number of `const` or `enum` that the library cannot represent exactly.
pub(super) fn to_library_schema(schema: &Value) -> Result<LibraryValue, InexactNumber> {
    Ok(match schema {
        Value::Array(items) => {
            LibraryValue::Array(items.iter().map(to_library_schema).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| {
                let value = match key.as_str() {
                    "const" | "enum" => value.clone().try_into(),
                    _ => to_library_schema(value),
                };
                Ok((key.to_string(), value?))
            });
            LibraryValue::Object(members.collect::<Result<_, _>>()?)
        }
        other => to_library_value(other),
    })
}

/// Converts a value with the nearest numbers that the library can represent.
fn to_library_value(value: &Value) -> LibraryValue {
    match value {
        Value::Null => LibraryValue::Null,
        Value::Bool(value) => LibraryValue::Bool(*value),
        Value::Number(number) => LibraryValue::Number(to_library_number(number)),
        Value::String(text) => LibraryValue::String(text.clone()),
        Value::Array(items) => LibraryValue::Array(items.iter().map(to_library_value).collect()),
        Value::Object(members) => LibraryValue::Object(
            members.iter().map(|(key, value)| (key.to_string(), to_library_value(value))).collect(),
        ),
    }
}

fn to_library_number(number: &Number) -> serde_json::Number {
    let largest = || if number.decimal().is_negative() { f64::MIN } else { f64::MAX };
    let float = || serde_json::Number::from_f64(number.as_f64().unwrap_or_else(largest));
    number.try_into().ok().or_else(float).unwrap_or_else(|| 0.into())
}
