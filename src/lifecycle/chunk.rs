//! What a model streams, piece by piece.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::middleware::Usage;
use crate::json::{self, Map, Value};

/// One piece of what a model streams.
///
/// As JSON it is an object whose `type` says what it is: `{"type": "text", "id": "t1", "delta": "Hello"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
pub enum Chunk {
    /// More of a text that people will read.
    Text {
        /// Which text: several may be streamed side by side.
        id: String,
        /// What is added to it.
        delta: String,
    },
    /// More of what the model thinks aloud.
    Reasoning {
        /// Which text.
        id: String,
        /// What is added to it.
        delta: String,
    },
    /// More of the arguments of a tool call, as JSON text. Policies of streams do not touch it: calls pass the gate.
    ToolInput {
        /// The call.
        call_id: String,
        /// What is added.
        delta: String,
    },
    /// The model has ended its turn.
    Finished {
        /// Why, in its provider's word.
        reason: Option<String>,
        /// What it used.
        usage: Option<Usage>,
    },
    /// Anything else, as the host has it.
    Other {
        /// The host's own.
        value: Value,
    },
}

impl Chunk {
    /// More of a text.
    pub fn text(id: impl Into<String>, delta: impl Into<String>) -> Self {
        Self::Text { id: id.into(), delta: delta.into() }
    }
}

/// A chunk as serde's derive has it: an object with the variant as its one key. Its `tag` attribute would hold the members in a form
/// that loses numbers.
struct ByVariant<C>(C);

impl Serialize for ByVariant<&Chunk> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Chunk::serialize(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for ByVariant<Chunk> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Chunk::deserialize(deserializer).map(Self)
    }
}

const TYPE: &str = "type";

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Map::new();
        if let Value::Object(by_variant) = json::to_value(ByVariant(self)).map_err(S::Error::custom)? {
            for (variant, value) in by_variant {
                members.insert(TYPE.to_owned(), variant.into());
                members.extend(value.as_object().cloned().unwrap_or_default());
            }
        }
        members.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Chunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        let Some(Value::String(variant)) = members.remove(TYPE) else {
            return Err(D::Error::custom("a chunk has a `type`, which is a string"));
        };
        let by_variant = Value::from_iter([(variant, members)]);
        json::from_value(by_variant).map(|ByVariant(chunk)| chunk).map_err(D::Error::custom)
    }
}

/// What becomes of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum ChunkFate {
    /// It passes as it is.
    Pass,
    /// These take its place; with none it is dropped, and no later middleware sees it.
    Replace(Vec<Chunk>),
}

impl ChunkFate {
    /// It is dropped.
    pub fn drop() -> Self {
        Self::Replace(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_an_object_with_its_type_and_keeps_numbers() {
        for text in [
            r#"{"type":"text","id":"t1","delta":"Hello"}"#,
            r#"{"type":"tool_input","call_id":"c1","delta":"{"}"#,
            r#"{"type":"finished","reason":null,"usage":null}"#,
            r#"{"type":"other","value":{"a":12.50,"type":"other","b":[1e400,-0,12345678901234567890123]}}"#,
        ] {
            let chunk: Chunk = json::from_str(text).unwrap();
            assert_eq!(json::to_string(&chunk).unwrap(), text);
        }
        for text in [r#"{"id":"t1","delta":""}"#, r#"{"type":1}"#, r#"{"type":"nope"}"#, r#"{"type":"text"}"#]
        {
            assert!(json::from_str::<Chunk>(text).is_err(), "{text}");
        }
    }
}
