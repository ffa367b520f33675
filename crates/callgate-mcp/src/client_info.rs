//! The client of a connection: what its transport has verified, and its self-description from the handshake. The latter is not
//! verified, so nothing that policies see depends on it.

use std::sync::{Mutex, PoisonError};

use super::jsonrpc::JsonRpcMessage;
use callgate::json::Value;

/// The client of a connection, as far as its transport has verified it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientContext {
    /// The verified context of every call: principal, roles, tenant, anything.
    pub context: Value,
    /// The session of its calls, if it outlives the connection; `None` creates a new one.
    pub session: Option<String>,
    /// The name of the requester, which owns the approvals given under it.
    pub requester: String,
}

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
