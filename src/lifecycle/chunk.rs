//! Stream chunks: the pieces of a model's streamed response, and what a hook does with each.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::usage::Usage;
use crate::json::{self, Map, Value};

/// One chunk of a model's streamed response.
///
/// Its JSON is an object with a `type`: `{"type": "text", "id": "t1", "delta": "Hello"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
pub enum Chunk {
    /// Text for the user.
    Text {
        /// The id of the text block: several may be streamed in parallel.
        id: String,
        /// The text to append.
        delta: String,
    },
    /// Reasoning text of the model.
    Reasoning {
        /// The id of the text block.
        id: String,
        /// The text to append.
        delta: String,
    },
    /// Arguments of a tool call, as JSON text. Stream policies do not change them: tool calls are checked by gate.
    ToolInput {
        /// The id of the call.
        call_id: String,
        /// The text to append.
        delta: String,
    },
    /// The model's turn has ended.
    Finished {
        /// The finish reason, as its provider names it.
        reason: Option<String>,
        /// The tokens that were used.
        usage: Option<Usage>,
    },
    /// Any other chunk.
    Other {
        /// The host's own value.
        value: Value,
    },
}

impl Chunk {
    /// A text chunk.
    pub fn text(id: impl Into<String>, delta: impl Into<String>) -> Self {
        Self::Text { id: id.into(), delta: delta.into() }
    }
}

/// A chunk in the form of serde's derive: an object with the variant as its only key. Serde's `tag` attribute would buffer
/// the members in a form that loses digits of numbers.
struct ExternallyTagged<C>(C);

impl Serialize for ExternallyTagged<&Chunk> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Chunk::serialize(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for ExternallyTagged<Chunk> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Chunk::deserialize(deserializer).map(Self)
    }
}

const TYPE: &str = "type";

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Map::new();
        if let Value::Object(by_variant) = json::to_value(ExternallyTagged(self)).map_err(S::Error::custom)? {
            for (variant, value) in by_variant {
                members.insert(TYPE, variant.into());
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
            return Err(D::Error::custom("a chunk needs a `type` that is a string"));
        };
        let by_variant = Value::from_iter([(variant, members)]);
        json::from_value(by_variant).map(|ExternallyTagged(chunk)| chunk).map_err(D::Error::custom)
    }
}

/// What a hook does with a chunk.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChunkAction {
    /// Pass it on unchanged.
    Pass,
    /// Replace it with these; with an empty list it is dropped, and no later middleware sees it.
    Replace(Vec<Chunk>),
}

impl ChunkAction {
    /// Drops the chunk.
    pub fn discard() -> Self {
        Self::Replace(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_round_trip_as_tagged_objects_and_keep_numbers() {
        for text in [
            r#"{"type":"text","id":"t1","delta":"Hello"}"#,
            r#"{"type":"tool_input","call_id":"c1","delta":"{"}"#,
            r#"{"type":"finished","reason":null,"usage":null}"#,
            r#"{"type":"other","value":{"a":12.50,"type":"other","b":[1e400,-0,12345678901234567890123]}}"#,
        ] {
            let chunk: Chunk = json::from_str(text).unwrap();
            assert_eq!(json::to_string(&chunk).unwrap(), text);
        }
        // What is misspelt is not ignored: usage that counts as nothing would never use a budget up.
        for text in [
            r#"{"id":"t1","delta":""}"#,
            r#"{"type":1}"#,
            r#"{"type":"nope"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","id":"t1","delta":"","text":"x"}"#,
            r#"{"type":"finished","reason":null,"usage":{"prompt_tokens":1}}"#,
        ] {
            assert!(json::from_str::<Chunk>(text).is_err(), "{text}");
        }
    }
}
