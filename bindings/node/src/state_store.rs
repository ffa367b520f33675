//! Opens state stores by URL with the keys that seal them, as the command line does, so that both can use one store.

use std::sync::Arc;

use callgate::Keys;
use callgate::host::StateStore;
use callgate_state::{HostState, OpenStateStore, StateError, keys_from_environment};

use crate::failure::Failure;
use crate::runtime::runtime;

/// A state store with its keys.
pub struct OpenedState {
    pub store: Arc<dyn StateStore>,
    /// `None` for a store in memory that needs none.
    pub keys: Option<Keys>,
    /// Other processes can use the store.
    pub is_shared: bool,
}

/// Opens the store at a URL.
pub fn open_state(url: &str, host: HostState) -> Result<OpenedState, Failure> {
    let failed = |error: StateError| {
        let code = match error {
            StateError::MissingKeys(_) => "invalid_keys",
            StateError::Unusable(_) => "state_unavailable",
        };
        Failure::new(code, error.to_string())
    };
    let given = match &host.keys {
        Some(keys) => Some(keys.clone()),
        None => keys_from_environment().map_err(failed)?,
    };
    let OpenStateStore { store, keys, is_shared, .. } =
        OpenStateStore::open_for_host(url, host, runtime()?).map_err(failed)?;
    Ok(OpenedState { store, keys: if is_shared { Some(keys) } else { given }, is_shared })
}
