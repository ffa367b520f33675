//! JSON for policies: a lossless value type with parser and writer, exact numbers, one equality, one canonical form.
//!
//! Numbers keep their text and are compared by their exact decimal value, members keep their order, duplicate keys are rejected, and no
//! input key has a special meaning to the parser. [`to_value`] and [`from_value`] convert any serde type; `From` and `TryFrom` convert
//! `serde_json` values, whatever features that crate is built with.
//!
//! The feature `json-schema` adds one feature to the `serde_json` of the same program, through the `jsonschema` crate:
//! `float_roundtrip`, which reads each float as the nearest one. It changes no type.

mod canonical_form;
mod conversions;
mod decimal;
mod deserialize;
mod from_deserializer;
mod difference;
mod error;
mod exponent;
mod lossless_transfer;
mod serde_json_interop;
mod macros;
mod number;
mod number_text;
mod parse_error;
mod parser;
mod serialize;
mod text_serializer;
mod value;
mod writer;

pub use canonical_form::{Digest, InvalidDigest, canonical_text, digest};
pub(crate) use canonical_form::{write_canonical, write_canonical_array, write_canonical_object};
pub use decimal::Decimal;
pub use deserialize::{from_slice, from_str, from_value};
pub use difference::{Difference, differences};
pub use error::{DataError, Error};
pub use macros::json;
pub use number::{InvalidNumber, Number};
pub use number_text::NumberText;
pub use parse_error::{ParseError, ParseErrorKind};
pub(crate) use parser::parse_members;
pub use parser::{LoneSurrogates, parse, parse_bytes, parse_with_surrogates};
pub use serde_json_interop::InexactNumber;
#[doc(hidden)]
pub use serialize::{empty_array, serialized};
pub use serialize::{to_string_pretty, to_value, to_writer};
#[doc(hidden)]
pub use text_serializer::append_json;
pub use text_serializer::to_string;
pub use value::{Entry, Index, Key, Map, Value};
use writer::write_compact;
#[doc(hidden)]
pub use writer::write_string;

use serde::Serialize;

/// The maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;

/// The result of a conversion between JSON and a Rust type.
pub type Result<T> = std::result::Result<T, Error>;

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
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// The type name with an article: `a string`, `an array`.
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

    /// The type name in policies and messages.
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

/// About how many bytes a value has as JSON.
#[doc(hidden)]
pub fn approximate_size(value: &Value) -> usize {
    const PER_VALUE: usize = 8;
    let size = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(approximate_size).sum(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + approximate_size(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size + PER_VALUE
}

/// Whether a value nests deeper than `limit` levels. Recurses no deeper than that.
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper_than(item, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|item| is_deeper_than(item, limit - 1)),
        _ => false,
    }
}
