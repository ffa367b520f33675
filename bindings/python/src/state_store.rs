//! Opens state stores by URL with the keys that seal them, as the command line does, so that both can use one store.

use callgate::{KEYS_VARIABLE, Keys};
use callgate_state::{HostState, OpenStateStore};
use pyo3::prelude::*;
use tokio::runtime::Builder;

use crate::errors;

/// Opens the store at a URL.
pub(crate) fn open_state(py: Python<'_>, url: &str, host: HostState) -> PyResult<OpenStateStore> {
    py.detach(|| {
        let runtime =
            Builder::new_current_thread().build().map_err(|error| errors::store(error.to_string()))?;
        OpenStateStore::open_for_host(url, host, &runtime).map_err(|error| errors::store(error.to_string()))
    })
}

/// The given keys, those of the environment, or a random one.
pub(crate) fn host_keys(keys: Option<Keys>) -> PyResult<Keys> {
    match keys.map_or_else(Keys::from_environment, |keys| Ok(Some(keys))) {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Keys::random().map_err(|error| errors::store(error.to_string())),
        Err(error) => Err(errors::store(format!("{KEYS_VARIABLE} can't be used: {error}"))),
    }
}
