//! The place of a call in its round (`$.session.round`).

use std::sync::OnceLock;

use crate::json::{Value, json};

/// The place of a call among those that are decided together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundPosition {
    /// The number of calls of the round.
    pub size: usize,
    /// The number of calls before it.
    pub index: usize,
}

impl RoundPosition {
    /// The place of a call that is decided alone.
    pub const ALONE: Self = Self { size: 1, index: 0 };
}

/// A place in a round as policies read it, made when a policy reads it.
#[derive(Debug, Default)]
pub struct RoundDocument {
    position: Option<RoundPosition>,
    document: OnceLock<Value>,
}

impl RoundDocument {
    /// The document of a place. Without one, `$.session.round` is absent.
    pub fn new(position: Option<RoundPosition>) -> Self {
        Self { position, document: OnceLock::new() }
    }

    /// `{ size, index }`
    pub fn value(&self) -> Option<&Value> {
        let RoundPosition { size, index } = self.position?;
        Some(self.document.get_or_init(|| json!({ "size": size, "index": index })))
    }
}
