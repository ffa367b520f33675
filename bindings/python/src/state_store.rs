//! Opens state stores by URL, as the command line does: a file is sealed with its keys, and an anchor beside it detects a rollback.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate::file_access::check_private_file;
use callgate::host::StateStore;
use callgate::state::{IntegrityError, SealedStore, has_seals};
use callgate::{KEYS_VARIABLE, Keys};
use callgate_sqlite::SqliteStore;
use pyo3::prelude::*;

use crate::clock::OperationClock;
use crate::errors;
use crate::operation::block_on;

/// A state store with the keys that seal its records.
pub(crate) struct OpenStateStore {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) keys: Keys,
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    errors::store(error.to_string())
}

impl OpenStateStore {
    /// Opens `file:PATH`, which is created if missing, or `memory:`. `keys`: those of the host; by default those of the environment or of
    /// the key file beside the store.
    pub(crate) fn open(py: Python<'_>, url: &str, keys: Option<Keys>) -> PyResult<Self> {
        let path = callgate_sqlite::file_path(url).map_err(failed)?;
        let Some(path) = path else {
            let store = callgate_sqlite::open_store(url).map_err(failed)?;
            return Ok(Self { store, keys: host_keys(keys)? });
        };
        let anchor = sibling_path(path, ".anchor");
        if anchor.exists() && !path.exists() {
            return Err(integrity_error(url, &IntegrityError::Lost));
        }
        let store = py.detach(|| callgate_sqlite::open_store(url)).map_err(failed)?;
        let is_sealed = anchor.exists() || block_on(py, has_seals(&*store))?.map_err(failed)?;
        let keys = match keys {
            Some(keys) => keys,
            None => file_keys(&sibling_path(path, ".key"), is_sealed)?,
        };
        let anchor = py.detach(|| SqliteStore::open_anchor(&anchor)).map_err(failed)?;
        let clock = OperationClock::new(None);
        let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), clock);
        match block_on(py, sealed.open())? {
            Ok(()) => Ok(Self { store: Arc::new(sealed), keys }),
            Err(error) => Err(integrity_error(url, &error)),
        }
    }
}

/// The given keys, those of the environment, or a random one.
pub(crate) fn host_keys(keys: Option<Keys>) -> PyResult<Keys> {
    match keys.map_or_else(Keys::from_environment, |keys| Ok(Some(keys))) {
        Ok(Some(keys)) => Ok(keys),
        Ok(None) => Keys::random().map_err(failed),
        Err(error) => Err(errors::store(format!("{KEYS_VARIABLE} can't be used: {error}"))),
    }
}

/// The keys of the environment, or of the file beside a store.
fn file_keys(file: &Path, is_sealed: bool) -> PyResult<Keys> {
    match Keys::from_environment() {
        Ok(Some(keys)) => return Ok(keys),
        Ok(None) => {}
        Err(error) => return Err(errors::store(format!("{KEYS_VARIABLE} can't be used: {error}"))),
    }
    if is_sealed && !file.exists() {
        return Err(errors::store(format!(
            "the key of this state store is missing: restore `{}`, or set {KEYS_VARIABLE} to its content",
            file.display()
        )));
    }
    check_private_file(file).map_err(failed)?;
    Keys::from_file_or_new(file).map_err(failed)
}

fn integrity_error(url: &str, error: &IntegrityError) -> PyErr {
    errors::store(match error {
        IntegrityError::OtherKeys => {
            format!("`{url}` was created with other keys; use those, or another state store")
        }
        IntegrityError::Lost | IntegrityError::OtherAnchor => format!(
            "the state store `{url}` does not match its anchor (`PATH.anchor`), or one of them is missing: restore both files \
             from one backup. To accept the state store as it is, although calls may have run since, run \
             `callgate state accept --state {url}`"
        ),
        other => format!("the state store `{url}` can't be opened: {other}"),
    })
}

/// The path of a file next to the state store.
fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
