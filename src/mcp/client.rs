//! What is known of a client by its handshake. It says so itself: nothing that policies see depends on it.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::frame::Frame;

/// What a client said of itself.
#[derive(Debug, Default)]
pub(super) struct Client {
    capabilities: Mutex<Option<Value>>,
}

impl Client {
    /// Notes what an `initialize` says.
    pub(super) fn greet(&self, initialize: &Frame) {
        let said = initialize.param("capabilities").cloned();
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }

    /// What it can do, by its handshake.
    pub(super) fn capabilities(&self) -> Option<Value> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
