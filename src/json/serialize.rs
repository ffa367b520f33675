//! `to_value`: any `Serialize` type → [`Value`].

use std::fmt::Display;

use serde::ser::{self, Error as _, Serialize};

use super::{Error, Map, Number, Value, lossless_transfer};

/// Converts any `Serialize` type into a value. JSON values inside it keep the text of their numbers.
///
/// # Errors
///
/// The type's own errors, and keys that are not strings, numbers or booleans. Infinity and NaN become `null`.
pub fn to_value<T: Serialize>(value: T) -> Result<Value, Error> {
    value.serialize(ValueSerializer)
}

/// Converts any `Serialize` type into JSON text with an indentation of two spaces.
///
/// # Errors
///
/// As [`to_value`].
pub fn to_string_pretty<T: ?Sized + Serialize>(value: &T) -> Result<String, Error> {
    Ok(format!("{:#}", to_value(value)?))
}

/// Writes any `Serialize` type as compact JSON text.
///
/// # Errors
///
/// As [`to_value`], and errors of the writer.
pub fn to_writer<T: ?Sized + Serialize>(mut writer: impl std::io::Write, value: &T) -> Result<(), Error> {
    write!(writer, "{}", to_value(value)?).map_err(Error::custom)
}

/// The initial array of [`json!`](super::json).
#[doc(hidden)]
pub fn empty_array() -> Vec<Value> {
    Vec::new()
}

/// Converts an expression in [`json!`](super::json).
#[doc(hidden)]
#[expect(clippy::panic, reason = "documented at the macro, whose expressions are written in Rust")]
pub fn serialized<T: ?Sized + Serialize>(value: &T) -> Value {
    match to_value(value) {
        Ok(value) => value,
        Err(error) => panic!("an expression in `json!` can't be written as JSON: {error}"),
    }
}

struct ValueSerializer;

macro_rules! primitives {
    ($($method:ident: $primitive:ty)*) => {$(
        fn $method(self, value: $primitive) -> Result<Value, Error> {
            Ok(value.into())
        }
    )*};
}

impl ser::Serializer for ValueSerializer {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = ArraySerializer;
    type SerializeTuple = ArraySerializer;
    type SerializeTupleStruct = ArraySerializer;
    type SerializeTupleVariant = VariantSerializer<ArraySerializer>;
    type SerializeMap = ObjectSerializer;
    type SerializeStruct = ObjectSerializer;
    type SerializeStructVariant = VariantSerializer<ObjectSerializer>;

    primitives! {
        serialize_bool: bool
        serialize_i8: i8
        serialize_i16: i16
        serialize_i32: i32
        serialize_i64: i64
        serialize_i128: i128
        serialize_u8: u8
        serialize_u16: u16
        serialize_u32: u32
        serialize_u64: u64
        serialize_u128: u128
        serialize_f32: f32
        serialize_f64: f64
        serialize_str: &str
    }

    fn serialize_char(self, value: char) -> Result<Value, Error> {
        Ok(Value::String(value.to_string()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Error> {
        Ok(Value::from(bytes))
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        if name != lossless_transfer::NEWTYPE_NAME {
            return value.serialize(self);
        }
        let (given, serialized) = lossless_transfer::receive_from(|| value.serialize(self));
        given.map_or(serialized, Ok)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(Value::from_iter([(variant, value.serialize(self)?)]))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ArraySerializer, Error> {
        // Limited, so that a wrong length reserves little.
        Ok(ArraySerializer(Vec::with_capacity(length.unwrap_or(0).min(1024))))
    }

    fn serialize_tuple(self, length: usize) -> Result<ArraySerializer, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<ArraySerializer, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<VariantSerializer<ArraySerializer>, Error> {
        Ok(VariantSerializer { variant, inner: self.serialize_seq(Some(length))? })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<ObjectSerializer, Error> {
        Ok(ObjectSerializer::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<ObjectSerializer, Error> {
        Ok(ObjectSerializer::default())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<VariantSerializer<ObjectSerializer>, Error> {
        Ok(VariantSerializer { variant, inner: ObjectSerializer::default() })
    }

    fn collect_str<T: ?Sized + Display>(self, value: &T) -> Result<Value, Error> {
        Ok(Value::String(value.to_string()))
    }
}

struct ArraySerializer(Vec<Value>);

impl ArraySerializer {
    fn push<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.0.push(value.serialize(ValueSerializer)?);
        Ok(())
    }

    fn finish(self) -> Value {
        Value::Array(self.0)
    }
}

/// Collects the members of an object; of several with one name the last counts.
#[derive(Default)]
pub(super) struct ObjectSerializer {
    map: Map,
    /// The key of the next value.
    key: Option<String>,
}

impl ObjectSerializer {
    fn insert<T: ?Sized + Serialize>(&mut self, key: String, value: &T) -> Result<(), Error> {
        self.map.insert(key, value.serialize(ValueSerializer)?);
        Ok(())
    }

    fn finish(self) -> Value {
        Value::Object(self.map)
    }
}

/// A variant with data: an object with the variant as its one key.
struct VariantSerializer<I> {
    variant: &'static str,
    inner: I,
}

macro_rules! sequences {
    ($($of:ident: $method:ident;)*) => {$(
        impl ser::$of for ArraySerializer {
            type Ok = Value;
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

sequences! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
}

impl ser::SerializeTupleVariant for VariantSerializer<ArraySerializer> {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.inner.push(value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::from_iter([(self.variant, self.inner.finish())]))
    }
}

impl ser::SerializeMap for ObjectSerializer {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(ValueSerializer)? {
            Value::String(key) => key,
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            _ => return Err(Error::custom("a key of an object must be a string")),
        });
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::custom("a value of an object has no key"))?;
        self.insert(key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.finish())
    }
}

impl ser::SerializeStruct for ObjectSerializer {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.insert(key.to_owned(), value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.finish())
    }
}

impl ser::SerializeStructVariant for VariantSerializer<ObjectSerializer> {
    type Ok = Value;
    type Error = Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.inner.insert(key.to_owned(), value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(Value::from_iter([(self.variant, self.inner.finish())]))
    }
}

/// For other serializers: integers as integers, other numbers as the float that prints as the same decimal value, else as
/// a 128-bit integer. Fails if none of these has the exact value.
impl Serialize for Value {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(lossless_transfer::NEWTYPE_NAME, &TransferValue(self))
    }
}

/// As [`Value`].
impl Serialize for Map {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

/// As [`Value`].
impl Serialize for Number {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::Number(self.clone()).serialize(serializer)
    }
}

/// A value that has identified itself by the newtype struct name.
struct TransferValue<'a>(&'a Value);

impl Serialize for TransferValue<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if lossless_transfer::pass_to_serializer(self.0) {
            return serializer.serialize_unit();
        }
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(value) => serialize_number(value, serializer),
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => serializer.collect_seq(items),
            Value::Object(members) => serializer.collect_map(members),
        }
    }
}

fn serialize_number<S: ser::Serializer>(number: &Number, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(value) = number.as_i64().filter(|value| *value != 0 || !number.text().starts_with('-')) {
        return serializer.serialize_i64(value);
    }
    if let Some(value) = number.as_u64() {
        return serializer.serialize_u64(value);
    }
    if let Some(value) = number.as_exact_f64() {
        return serializer.serialize_f64(value);
    }
    if let Some(value) = number.as_i128() {
        return serializer.serialize_i128(value);
    }
    match number.as_u128() {
        Some(value) => serializer.serialize_u128(value),
        None => Err(S::Error::custom(format_args!(
            "the number {number} can't be written exactly: no 128-bit integer and no float has its value"
        ))),
    }
}
