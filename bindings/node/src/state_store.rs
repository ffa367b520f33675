//! Opens state stores by URL with the keys that seal them, as the command line does, so that both can use one store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate::file_access::check_private_file;
use callgate::host::{StateStore, SystemClock};
use callgate::state::{IntegrityError, MemoryStore, SealedStore, has_seals};
use callgate::{KEYS_VARIABLE, Keys};
use callgate_postgres::{PostgresSettings, PostgresStore};
use callgate_sqlite::SqliteStore;

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

fn failed(message: impl std::fmt::Display) -> Failure {
    Failure::new("state_unavailable", message.to_string())
}

/// Opens the store at a URL: `memory:`, `file:PATH`, or one of PostgreSQL. `keys` are those of the options; without them, those of the
/// environment variable apply, and for a file its own key file.
pub fn open_state(url: &str, keys: Option<Keys>) -> Result<OpenedState, Failure> {
    let keys = match keys {
        Some(keys) => Some(keys),
        None => Keys::from_environment()
            .map_err(|error| failed(format!("{KEYS_VARIABLE} can't be used: {error}")))?,
    };
    if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return open_database(url, keys);
    }
    match callgate_sqlite::file_path(url).map_err(failed)? {
        Some(path) => open_file(url, path, keys),
        None => Ok(OpenedState { store: Arc::new(MemoryStore::default()), keys, is_shared: false }),
    }
}

fn open_database(url: &str, keys: Option<Keys>) -> Result<OpenedState, Failure> {
    let Some(keys) = keys else {
        return Err(failed(format!(
            "every host that shares a database needs the same keys: set `keys`, or the variable {KEYS_VARIABLE}"
        )));
    };
    let password = std::env::var("PGPASSWORD").ok();
    let settings = PostgresSettings::parse(url, password.as_deref()).map_err(failed)?;
    let store = PostgresStore::open(settings).map_err(failed)?;
    let sealed = SealedStore::new(Arc::new(store), keys.clone());
    runtime()?.block_on(sealed.open()).map_err(failed)?;
    Ok(OpenedState { store: Arc::new(sealed), keys: Some(keys), is_shared: true })
}

fn open_file(url: &str, path: &Path, keys: Option<Keys>) -> Result<OpenedState, Failure> {
    let anchor = sibling_path(path, ".anchor");
    if anchor.exists() && !path.exists() {
        return Err(integrity_failure(url, &IntegrityError::Lost));
    }
    let store = callgate_sqlite::open_store(url).map_err(failed)?;
    let runtime = runtime()?;
    let is_sealed = anchor.exists() || runtime.block_on(has_seals(&*store)).map_err(failed)?;
    let keys = match keys {
        Some(keys) => keys,
        None => load_key_file(&sibling_path(path, ".key"), is_sealed)?,
    };
    let anchor = SqliteStore::open_anchor(&anchor).map_err(failed)?;
    let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), SystemClock);
    runtime.block_on(sealed.open()).map_err(|error| integrity_failure(url, &error))?;
    Ok(OpenedState { store: Arc::new(sealed), keys: Some(keys), is_shared: true })
}

fn load_key_file(key: &Path, is_sealed: bool) -> Result<Keys, Failure> {
    if is_sealed && !key.exists() {
        return Err(failed(format!(
            "the key of this state store is missing: restore `{}`, or set `keys` to its content",
            key.display()
        )));
    }
    check_private_file(key).map_err(failed)?;
    Keys::from_file_or_new(key).map_err(failed)
}

fn integrity_failure(url: &str, error: &IntegrityError) -> Failure {
    failed(match error {
        IntegrityError::OtherKeys => {
            format!(
                "`{url}` was created with another key, so its content can't be verified; use the key that it was created with"
            )
        }
        IntegrityError::Lost | IntegrityError::OtherAnchor => format!(
            "the state store `{url}` is older than this machine last saw it, or it is missing: restore it with its anchor, or run \
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
