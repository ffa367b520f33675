//! `Deserialize` for JSON values: any serde deserializer → `Value`, `Map` or `Number`.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};

use super::deserialize::unexpected;
use super::value::Members;
use super::{Map, Number, Value, lossless_transfer};

/// Other deserializers pass numbers as integers and floats: a float becomes the shortest decimal that reads back as it.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(lossless_transfer::NEWTYPE_NAME, TransferVisitor)
    }
}

/// As [`Value`].
impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(members) => Ok(members),
            other => Err(D::Error::invalid_type(unexpected(&other), &"an object")),
        }
    }
}

/// As [`Value`].
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Number(number) => Ok(number),
            other => Err(D::Error::invalid_type(unexpected(&other), &"a number")),
        }
    }
}

/// Takes the value that our deserializer offers, or reads one from another deserializer.
struct TransferVisitor;

impl<'de> Visitor<'de> for TransferVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match lossless_transfer::take_offered() {
            Some(value) => Ok(value),
            None => deserializer.deserialize_any(ForeignVisitor),
        }
    }
}

/// Reads a value from a deserializer of another crate.
struct ForeignVisitor;

/// The key by which `serde_json` with `arbitrary_precision` marks a number. An object with this key can't be distinguished from a
/// number.
const SERDE_JSON_NUMBER: &str = "$serde_json::private::Number";

macro_rules! visits {
    ($($method:ident: $primitive:ty)*) => {$(
        fn $method<E>(self, value: $primitive) -> Result<Value, E> {
            Ok(value.into())
        }
    )*};
}

impl<'de> Visitor<'de> for ForeignVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    visits! {
        visit_bool: bool
        visit_i64: i64
        visit_i128: i128
        visit_u64: u64
        visit_u128: u128
        visit_str: &str
        visit_string: String
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Members::default();
        while let Some(key) = members.next_key::<String>()? {
            if key == SERDE_JSON_NUMBER {
                return Err(A::Error::custom(
                    "a number of `serde_json` with `arbitrary_precision` can't be distinguished from an object with its private key; \
                     use `callgate::json::from_str`, or convert the `serde_json::Value`",
                ));
            }
            if read.position(&key).is_some() {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            read.push(key.into(), members.next_value()?);
        }
        Ok(Value::Object(Map::from_members(read)))
    }
}
