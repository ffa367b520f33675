//! The client's self-description from its handshake. It is not verified, so nothing that policies see depends on it.

use std::sync::{Mutex, PoisonError};

use super::jsonrpc::JsonRpcMessage;
use callgate::json::Value;

/// The client's handshake, once received.
#[derive(Debug, Default)]
pub(super) struct ClientInfo {
    initialize: Mutex<Option<JsonRpcMessage>>,
}

impl ClientInfo {
    /// Stores an `initialize`.
    pub(super) fn set_initialize(&self, initialize: &JsonRpcMessage) {
        *self.initialize.lock().unwrap_or_else(PoisonError::into_inner) = Some(initialize.clone());
    }

    /// Its `initialize`, if it has sent one.
    pub(super) fn initialize(&self) -> Option<JsonRpcMessage> {
        self.initialize.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its capabilities from the handshake.
    pub(super) fn capabilities(&self) -> Option<Value> {
        self.initialize()?.param("capabilities").cloned()
    }
}
