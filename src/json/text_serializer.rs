//! `to_string`: any `Serialize` type → compact JSON text, without a [`Value`] for its structs, lists and strings.

use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::serialize::ObjectSerializer;
use super::{Error, Value, lossless_transfer, write_compact, write_string};

/// Converts any `Serialize` type into compact JSON text: that of its value.
///
/// # Errors
///
/// As [`to_value`](super::to_value).
pub fn to_string<T: ?Sized + Serialize>(value: &T) -> Result<String, Error> {
    let mut text = String::new();
    append_json(&mut text, value)?;
    Ok(text)
}

/// Appends any `Serialize` type as compact JSON text. After an error the text is incomplete.
///
/// # Errors
///
/// As [`to_value`](super::to_value).
pub fn append_json<T: ?Sized + Serialize>(text: &mut String, value: &T) -> Result<(), Error> {
    value.serialize(TextSerializer(text))
}

struct TextSerializer<'t>(&'t mut String);

impl TextSerializer<'_> {
    fn write_value(self, value: &Value) -> Result<(), Error> {
        write_compact(value, self.0).map_err(ser::Error::custom)
    }

    fn write_string(self, text: &str) -> Result<(), Error> {
        write_string(text, self.0).map_err(ser::Error::custom)
    }
}

macro_rules! primitives {
    ($($method:ident: $primitive:ty)*) => {$(
        fn $method(self, value: $primitive) -> Result<(), Error> {
            self.write_value(&Value::from(value))
        }
    )*};
}

impl<'t> ser::Serializer for TextSerializer<'t> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'t>;
    type SerializeTuple = Members<'t>;
    type SerializeTupleStruct = Members<'t>;
    type SerializeTupleVariant = Members<'t>;
    type SerializeMap = MapText<'t>;
    type SerializeStruct = Members<'t>;
    type SerializeStructVariant = Members<'t>;

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
        serialize_bytes: &[u8]
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.write_string(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.write_string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.0.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.write_string(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        if name != lossless_transfer::NEWTYPE_NAME {
            return value.serialize(self);
        }
        let Self(text) = self;
        lossless_transfer::write_to(text, |text| value.serialize(TextSerializer(text)))
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let members = Members::variant(self.0, variant, "", "}")?;
        append_json(members.text, value)?;
        members.end()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'t>, Error> {
        Ok(Members::new(self.0, "[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'t>, Error> {
        Ok(Members::new(self.0, "[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'t>, Error> {
        Ok(Members::new(self.0, "[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'t>, Error> {
        Members::variant(self.0, variant, "[", "]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MapText<'t>, Error> {
        Ok(MapText { text: self.0, map: ObjectSerializer::default() })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'t>, Error> {
        Ok(Members::new(self.0, "{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'t>, Error> {
        Members::variant(self.0, variant, "{", "}}")
    }

    fn collect_str<T: ?Sized + Display>(self, value: &T) -> Result<(), Error> {
        self.write_string(&value.to_string())
    }
}

/// The items of an array, or the members of a struct, whose names differ.
struct Members<'t> {
    text: &'t mut String,
    is_first: bool,
    closing: &'static str,
}

impl<'t> Members<'t> {
    fn new(text: &'t mut String, opening: &str, closing: &'static str) -> Self {
        text.push_str(opening);
        Self { text, is_first: true, closing }
    }

    /// The content of a variant: an object with the variant as its one key.
    fn variant(
        text: &'t mut String,
        variant: &str,
        opening: &str,
        closing: &'static str,
    ) -> Result<Self, Error> {
        text.push('{');
        TextSerializer(text).write_string(variant)?;
        text.push(':');
        Ok(Self::new(text, opening, closing))
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.text.push(',');
        }
    }

    fn add_item<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        append_json(self.text, value)
    }

    fn add_member<T: ?Sized + Serialize>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        self.separate();
        TextSerializer(self.text).write_string(key)?;
        self.text.push(':');
        append_json(self.text, value)
    }

    fn end(self) -> Result<(), Error> {
        self.text.push_str(self.closing);
        Ok(())
    }
}

macro_rules! members {
    ($($of:ident: $method:ident($($key:ident)?) $add:ident;)*) => {$(
        impl ser::$of for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: ?Sized + Serialize>(&mut self, $($key: &'static str,)? value: &T) -> Result<(), Error> {
                self.$add($($key,)? value)
            }

            fn end(self) -> Result<(), Error> {
                self.end()
            }
        }
    )*};
}

members! {
    SerializeSeq: serialize_element() add_item;
    SerializeTuple: serialize_element() add_item;
    SerializeTupleStruct: serialize_field() add_item;
    SerializeTupleVariant: serialize_field() add_item;
    SerializeStruct: serialize_field(key) add_member;
    SerializeStructVariant: serialize_field(key) add_member;
}

/// A map, whose keys may repeat: the last member of a name counts, so that no text has a name twice.
struct MapText<'t> {
    text: &'t mut String,
    map: ObjectSerializer,
}

impl ser::SerializeMap for MapText<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        ser::SerializeMap::serialize_key(&mut self.map, key)
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        ser::SerializeMap::serialize_value(&mut self.map, value)
    }

    fn end(self) -> Result<(), Error> {
        let map = ser::SerializeMap::end(self.map)?;
        TextSerializer(self.text).write_value(&map)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use super::*;
    use crate::json::{Number, json, parse, to_value};

    #[derive(Serialize)]
    enum Variant {
        Unit,
        Newtype(u8),
        Tuple(u8, &'static str),
        Struct { a: Option<u8>, b: () },
    }

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One { value: Value },
        Other(Plain),
    }

    #[derive(Serialize)]
    struct Plain {
        text: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
        numbers: (i64, u128, f32, f64, f64, f64),
        character: char,
        empty: Vec<u8>,
    }

    #[derive(Serialize)]
    struct Everything {
        variants: Vec<Variant>,
        tagged: Vec<Tagged>,
        value: Value,
        number: Number,
        keys: BTreeMap<u8, bool>,
        #[serde(flatten)]
        flattened: BTreeMap<&'static str, Value>,
    }

    #[test]
    fn text_is_that_of_the_value() {
        let value = parse(r#"{"a":[1.50,1e400,-0,123456789012345678901234567890,"\"\\\n\u0001é😀"],"b":{}}"#)
            .unwrap();
        let plain = || Plain {
            text: "a\"b\\c\u{1f}",
            absent: None,
            numbers: (-1, u128::MAX, 0.1, 1e300, f64::NAN, -0.0),
            character: '"',
            empty: Vec::new(),
        };
        let everything = Everything {
            variants: vec![
                Variant::Unit,
                Variant::Newtype(1),
                Variant::Tuple(1, "x"),
                Variant::Struct { a: None, b: () },
            ],
            tagged: vec![Tagged::One { value: value.clone() }, Tagged::Other(plain())],
            number: "1.00".parse().unwrap(),
            keys: [(1, true), (2, false)].into(),
            flattened: [("value", json!(1)), ("x", value.clone())].into(),
            value,
        };
        assert_eq!(to_string(&everything).unwrap(), to_value(&everything).unwrap().to_string());
        assert_eq!(to_string(&plain()).unwrap(), to_value(plain()).unwrap().to_string());
    }

    #[test]
    fn keys_that_are_not_strings_are_errors() {
        let keys = BTreeMap::from([(vec![1], 1)]);
        assert_eq!(to_string(&keys).unwrap_err().to_string(), to_value(&keys).unwrap_err().to_string());
    }
}
