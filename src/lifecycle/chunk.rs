//! What a model streams, piece by piece.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::middleware::Usage;

/// One piece of what a model streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
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
