//! What is known of a client by its handshake. It says so itself: nothing that policies see depends on it.

use std::sync::{Mutex, PoisonError};

use super::frame::Frame;
use crate::json::Value;

/// What a client said of itself.
#[derive(Debug, Default)]
pub(super) struct Client {
    greeting: Mutex<Option<Frame>>,
}

impl Client {
    /// Notes an `initialize`.
    pub(super) fn greet(&self, initialize: &Frame) {
        *self.greeting.lock().unwrap_or_else(PoisonError::into_inner) = Some(initialize.clone());
    }

    /// Its `initialize`, where it has sent one.
    pub(super) fn greeting(&self) -> Option<Frame> {
        self.greeting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it can do, by its handshake.
    pub(super) fn capabilities(&self) -> Option<Value> {
        self.greeting()?.param("capabilities").cloned()
    }
}
