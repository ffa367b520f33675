//! `from_value` and `from_str`: JSON → any `Deserialize` type.

use serde::de::value::StringDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
    IntoDeserializer as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::parser::value_position::ValueStep;
use super::{Error, Key, Map, Number, Value, lossless_transfer};

/// Converts a value into any `Deserialize` type. JSON values inside that type keep the text of their numbers, except in `untagged` and
/// internally tagged enums and in flattened members: serde buffers these in its own form, and numbers that would change in it are
/// errors.
///
/// # Errors
///
/// The type does not accept a value; the error has its path.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(ValueDeserializer(value))
}

/// Parses JSON text into any `Deserialize` type, by the rules of [`parse`](super::parse).
///
/// # Errors
///
/// As [`parse`](super::parse), or the type does not accept a value; the error has line and column.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_value(super::parse(text)?).map_err(|error| error.with_position(text))
}

/// Parses JSON text in bytes into any `Deserialize` type.
///
/// # Errors
///
/// As [`from_str`], or the bytes are not UTF-8.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    from_value(super::parse_bytes(bytes)?)
        .map_err(|error| error.with_position(&String::from_utf8_lossy(bytes)))
}

struct ValueDeserializer(Value);

impl<'de> Deserializer<'de> for ValueDeserializer {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(value) => visit_number(&value, visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visit_array(items, visitor),
            Value::Object(members) => visit_object(members, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != lossless_transfer::NEWTYPE_NAME {
            return visitor.visit_newtype_struct(self);
        }
        lossless_transfer::offer_to_visitor(self.0, || visitor.visit_newtype_struct(Self(Value::Null)))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(variant) => visitor.visit_enum(EnumVariant { variant, value: None }),
            Value::Object(members) => {
                let mut members = members.into_iter();
                match (members.next(), members.next()) {
                    (Some((variant, value)), None) => {
                        visitor.visit_enum(EnumVariant { variant: variant.into(), value: Some(value) })
                    }
                    _ => Err(Error::invalid_value(Unexpected::Map, &"an object with one key")),
                }
            }
            other => Err(Error::invalid_type(unexpected(&other), &"a string or an object")),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string byte_buf unit seq tuple tuple_struct map struct
        identifier
    }
}

/// Visits the primitive that has the exact value of a number.
fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    if let Some(value) = number.as_u64().filter(|value| *value != 0 || !number.text().starts_with('-')) {
        return visitor.visit_u64(value);
    }
    if let Some(value) = number.as_i64().filter(|value| *value != 0) {
        return visitor.visit_i64(value);
    }
    if let Some(value) = number.as_exact_f64() {
        return visitor.visit_f64(value);
    }
    if let Some(value) = number.as_i128() {
        return visitor.visit_i128(value);
    }
    match number.as_u128() {
        Some(value) => visitor.visit_u128(value),
        None => Err(Error::custom(format_args!(
            "the number {number} can't be read exactly: no 128-bit integer and no float has its value"
        ))),
    }
}

fn visit_array<'de, V: Visitor<'de>>(items: Vec<Value>, visitor: V) -> Result<V::Value, Error> {
    let length = items.len();
    let mut items = ArrayAccess { items: items.into_iter(), next: 0 };
    let read = visitor.visit_seq(&mut items)?;
    if items.items.len() > 0 {
        return Err(Error::invalid_length(length, &"fewer items in the array"));
    }
    Ok(read)
}

fn visit_object<'de, V: Visitor<'de>>(members: Map, visitor: V) -> Result<V::Value, Error> {
    let length = members.len();
    let mut members = ObjectAccess { members: members.into_iter(), next: None };
    let read = visitor.visit_map(&mut members)?;
    if members.members.len() > 0 {
        return Err(Error::invalid_length(length, &"fewer members in the object"));
    }
    Ok(read)
}

pub(super) fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Other("number"),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

struct ArrayAccess {
    items: std::vec::IntoIter<Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for &mut ArrayAccess {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(ValueDeserializer(item))
            .map(Some)
            .map_err(|error| error.with_parent_step(ValueStep::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct ObjectAccess {
    members: <Map as IntoIterator>::IntoIter,
    /// The member whose key was already read.
    next: Option<(Key, Value)>,
}

impl<'de> MapAccess<'de> for &mut ObjectAccess {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.members.next() else { return Ok(None) };
        match seed.deserialize(KeyDeserializer(&key)) {
            Ok(read) => {
                self.next = Some((key, value));
                Ok(Some(read))
            }
            Err(error) => Err(error.with_parent_step(ValueStep::Key(key))),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (key, value) = self.next.take().ok_or_else(|| Error::custom("a value without its key"))?;
        seed.deserialize(ValueDeserializer(value))
            .map_err(|error| error.with_parent_step(ValueStep::Key(key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// An object key, which types can also read as a number or a boolean.
struct KeyDeserializer<'k>(&'k str);

macro_rules! keys_as {
    ($($method:ident => $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for KeyDeserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0)
    }

    keys_as! {
        deserialize_bool => visit_bool
        deserialize_i8 => visit_i8
        deserialize_i16 => visit_i16
        deserialize_i32 => visit_i32
        deserialize_i64 => visit_i64
        deserialize_i128 => visit_i128
        deserialize_u8 => visit_u8
        deserialize_u16 => visit_u16
        deserialize_u32 => visit_u32
        deserialize_u64 => visit_u64
        deserialize_u128 => visit_u128
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        ValueDeserializer(Value::String(self.0.to_owned())).deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        ValueDeserializer(Value::String(self.0.to_owned())).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct EnumVariant {
    variant: String,
    value: Option<Value>,
}

impl<'de> EnumAccess<'de> for EnumVariant {
    type Error = Error;
    type Variant = VariantContent;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, VariantContent), Error> {
        let variant: StringDeserializer<Error> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, VariantContent(self.value)))
    }
}

/// The data of a variant.
struct VariantContent(Option<Value>);

impl<'de> VariantAccess<'de> for VariantContent {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.0 {
            None => Ok(()),
            Some(value) => Deserialize::deserialize(ValueDeserializer(value)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match self.0 {
            Some(value) => seed.deserialize(ValueDeserializer(value)),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"newtype variant")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Array(items)) => visit_array(items, visitor),
            Some(other) => Err(Error::invalid_type(unexpected(&other), &"tuple variant")),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"tuple variant")),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Some(Value::Object(members)) => visit_object(members, visitor),
            Some(other) => Err(Error::invalid_type(unexpected(&other), &"struct variant")),
            None => Err(Error::invalid_type(Unexpected::UnitVariant, &"struct variant")),
        }
    }
}
