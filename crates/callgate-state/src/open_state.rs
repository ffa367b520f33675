//! Opens state stores by URL, with the keys that seal their records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callgate::file_access::check_private_file;
use callgate::host::{StateStore, SystemClock};
use callgate::seal::{KEYS_VARIABLE, Keys};
use callgate::state::{IntegrityError, SealedStore, has_seals};
use callgate_sqlite::SqliteStore;
use tokio::runtime::Runtime;

use crate::host_stores::{HostState, HostStores};
use crate::state_error::{StateError, failed};
use crate::state_parts::StateParts;

/// A state store and its keys.
pub struct OpenStateStore {
    /// The URL as given, without a password.
    pub url: String,
    /// The store.
    pub store: Arc<dyn StateStore>,
    /// Whether the store at the URL outlives the process.
    pub is_shared: bool,
    /// The same store, if it is sealed already.
    pub sealed: Option<Arc<SealedStore>>,
    /// Those of the host or of CALLGATE_KEYS, or else of the key file next to the store; for an in-memory store, a random key.
    pub keys: Keys,
}

/// How to open a state store.
#[derive(Clone, Copy, PartialEq)]
enum OpenMode {
    /// Create it, and its key, if missing.
    Create,
    /// It must exist, with its key.
    Existing,
    /// Trust it as it is, and create a new anchor.
    Accept,
}

impl OpenStateStore {
    /// Opens a state store, and creates it and its key if missing. Must not be called within an async runtime, because it waits.
    ///
    /// # Errors
    /// If the URL is invalid, the store can't be opened or was created with other keys, or keys are missing.
    pub fn open_or_new(url: &str, runtime: &Runtime) -> Result<Self, StateError> {
        Self::open_for_host(url, HostState::default(), runtime)
    }

    /// Opens a state store, and creates it and its key if missing; with the keys and the stores of a host. If the host has a store of
    /// records, the returned store is not sealed yet: the engine seals it.
    ///
    /// # Errors
    /// As for [`open_or_new`](Self::open_or_new).
    pub fn open_for_host(url: &str, host: HostState, runtime: &Runtime) -> Result<Self, StateError> {
        let HostState { keys, stores } = host;
        let mut opening = Opening::new(OpenMode::Create, keys)?;
        let is_file = callgate_sqlite::file_path(url).is_ok_and(|path| path.is_some());
        if opening.keys.is_none() && !stores.is_empty() && !is_file {
            return Err(StateError::MissingKeys(format!(
                "stores of a host need keys, which seal what they store: give `keys`, or set {KEYS_VARIABLE}, for example to the output of \
                 `openssl rand -hex 32`"
            )));
        }
        if stores.records.is_none() {
            opening.stores = stores;
            return Self::open_at(url, opening, runtime);
        }
        let opened = Self::open_at(url, opening, runtime)?;
        Ok(Self { store: stores.combine(opened.store), sealed: None, ..opened })
    }

    fn open_at(url: &str, opening: Opening, runtime: &Runtime) -> Result<Self, StateError> {
        match StateParts::parse(url)? {
            Some(parts) => opening.open_shared(&parts, runtime),
            None => opening.open_local(url, callgate_sqlite::file_path(url).map_err(failed)?, runtime),
        }
    }

    /// Opens an existing state store. Must not be called within an async runtime, because it waits.
    ///
    /// # Errors
    /// If it does not exist, and as for [`open_or_new`](Self::open_or_new).
    pub fn open_existing(url: &str, runtime: &Runtime) -> Result<Self, StateError> {
        let opening = Opening::new(OpenMode::Existing, None)?;
        if let Some(parts) = StateParts::parse(url)? {
            return opening.open_shared(&parts, runtime);
        }
        let path = callgate_sqlite::file_path(url).map_err(failed)?;
        match path {
            Some(path) if !path.exists() && !sibling_path(path, ".anchor").exists() => {
                return Err(StateError::new(format!(
                    "the state store `{}` does not exist; `callgate run --state` creates it",
                    path.display()
                )));
            }
            None if url == "memory:" => {
                return Err(StateError::new(
                    "`memory:` ends with its process, so it has no pending approvals; use the `file:PATH` of a run",
                ));
            }
            _ => {}
        }
        opening.open_local(url, path, runtime)
    }

    /// Trusts a store in a file as it is, and creates a new anchor.
    ///
    /// # Errors
    /// If the URL names no file, or the file can't be opened with its keys.
    pub fn accept(url: &str, runtime: &Runtime) -> Result<Self, StateError> {
        if let Some(parts) = StateParts::parse(url)? {
            let shown = parts.without_passwords();
            return Err(StateError::new(format!("`{shown}` has no anchor; only files have one")));
        }
        let Some(path) = callgate_sqlite::file_path(url).map_err(failed)? else {
            return Err(StateError::new(format!("`{url}` ends with its process; use `file:PATH`")));
        };
        Opening::new(OpenMode::Accept, None)?.open_local(url, Some(path), runtime)
    }

    /// The files of a store in a file: the store, and its keys. Empty for other stores.
    pub fn files(&self) -> Vec<PathBuf> {
        let path = callgate_sqlite::file_path(&self.url).ok().flatten();
        let files = path.map(|path| vec![path.to_owned(), sibling_path(path, ".key")]);
        files.unwrap_or_default().into_iter().filter(|path| path.exists()).collect()
    }

    /// A store that outlives the process.
    fn new(url: String, sealed: SealedStore, keys: Keys) -> Self {
        let sealed = Arc::new(sealed);
        Self {
            url,
            store: Arc::clone(&sealed) as Arc<dyn StateStore>,
            is_shared: true,
            sealed: Some(sealed),
            keys,
        }
    }
}

/// Keys, and where they come from.
struct SourcedKeys {
    keys: Keys,
    source: String,
}

/// One opening of a store.
struct Opening {
    mode: OpenMode,
    /// Those of the host, or of the environment.
    keys: Option<SourcedKeys>,
    stores: HostStores,
}

impl Opening {
    fn new(mode: OpenMode, keys: Option<Keys>) -> Result<Self, StateError> {
        let keys = match keys {
            Some(keys) => Some(SourcedKeys { keys, source: "`keys`".to_owned() }),
            None => {
                keys_from_environment()?.map(|keys| SourcedKeys { keys, source: KEYS_VARIABLE.to_owned() })
            }
        };
        Ok(Self { mode, keys, stores: HostStores::default() })
    }

    /// Opens state that hosts share.
    fn open_shared(self, parts: &StateParts, runtime: &Runtime) -> Result<OpenStateStore, StateError> {
        let shown = parts.without_passwords();
        let Some(SourcedKeys { keys, source }) = self.keys else {
            return Err(StateError::MissingKeys(format!(
                "every host that shares `{shown}` needs the same keys: set {KEYS_VARIABLE}, for example to the output of `openssl rand -hex 32`"
            )));
        };
        let store = self.stores.combine(Arc::new(parts.open_engines()?));
        let sealed = SealedStore::new(store, keys.clone());
        match runtime.block_on(sealed.open()) {
            Ok(()) => Ok(OpenStateStore::new(shown, sealed, keys)),
            Err(IntegrityError::OtherKeys) => Err(StateError::new(other_keys_message(&shown, &source))),
            Err(error) => Err(StateError::new(format!("the state store `{shown}` can't be opened: {error}"))),
        }
    }

    /// Opens a store in a file, or in memory.
    fn open_local(
        self,
        url: &str,
        path: Option<&Path>,
        runtime: &Runtime,
    ) -> Result<OpenStateStore, StateError> {
        let mode = self.mode;
        let anchor = path.map(|path| sibling_path(path, ".anchor"));
        if let (Some(path), Some(anchor), true) = (path, &anchor, mode != OpenMode::Accept)
            && anchor.exists()
            && !path.exists()
        {
            return Err(StateError::new(integrity_message(url, &IntegrityError::Lost)));
        }
        let store = callgate_sqlite::open_store(url).map_err(failed)?;
        let is_sealed = match &anchor {
            Some(anchor) => anchor.exists() || runtime.block_on(has_seals(&*store)).map_err(failed)?,
            None => false,
        };
        let key = path.map(|path| sibling_path(path, ".key"));
        let SourcedKeys { keys, source } = match self.keys {
            Some(keys) => keys,
            None => load_keys(key.as_deref(), is_sealed, mode)?,
        };
        let store = self.stores.combine(store);
        let Some(anchor) = anchor else {
            return Ok(OpenStateStore { url: url.to_owned(), store, is_shared: false, sealed: None, keys });
        };
        let opened = match mode {
            OpenMode::Accept => accept_store(store, &keys, &anchor, runtime)?,
            OpenMode::Create | OpenMode::Existing => {
                let anchor = SqliteStore::open_anchor(&anchor).map_err(failed)?;
                let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), SystemClock);
                runtime.block_on(sealed.open()).map(|()| sealed)
            }
        };
        match opened {
            Ok(sealed) => Ok(OpenStateStore::new(url.to_owned(), sealed, keys)),
            Err(IntegrityError::OtherKeys) => Err(StateError::new(other_keys_message(url, &source))),
            Err(error) => Err(StateError::new(integrity_message(url, &error))),
        }
    }
}

/// The keys of a state store without those of the host, and their source.
fn load_keys(key: Option<&Path>, is_sealed: bool, mode: OpenMode) -> Result<SourcedKeys, StateError> {
    let Some(key) = key else {
        let keys = Keys::random().map_err(failed)?;
        return Ok(SourcedKeys { keys, source: "this process".to_owned() });
    };
    if (is_sealed || mode != OpenMode::Create) && !key.exists() {
        return Err(StateError::new(format!(
            "the key of this state store is missing: restore `{}`, or set {KEYS_VARIABLE} to its content",
            key.display()
        )));
    }
    check_private_file(key).map_err(failed)?;
    let keys = match mode {
        OpenMode::Create => Keys::from_file_or_new(key),
        OpenMode::Existing | OpenMode::Accept => Keys::from_file(key),
    };
    let keys = keys.map_err(failed)?;
    Ok(SourcedKeys { keys, source: format!("`{}`", key.display()) })
}

fn other_keys_message(url: &str, from: &str) -> String {
    format!(
        "`{url}` was created with another key than the one of {from}, so its content can't be verified; use the key that it was created \
         with, or another state store"
    )
}

/// The keys of the environment variable CALLGATE_KEYS, if it is set.
///
/// # Errors
/// If it has other content than keys.
pub fn keys_from_environment() -> Result<Option<Keys>, StateError> {
    Keys::from_environment()
        .map_err(|error| StateError::new(format!("{KEYS_VARIABLE} can't be used: {error}")))
}

/// Creates a new anchor for a state store that was created with these keys.
fn accept_store(
    store: Arc<dyn StateStore>,
    keys: &Keys,
    anchor: &Path,
    runtime: &Runtime,
) -> Result<Result<SealedStore, IntegrityError>, StateError> {
    if let Err(error) = runtime.block_on(SealedStore::new(Arc::clone(&store), keys.clone()).open()) {
        return Ok(Err(error));
    }
    for file in [anchor.to_owned(), sibling_path(anchor, "-wal"), sibling_path(anchor, "-shm")] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StateError::new(format!("`{}` can't be removed: {error}", file.display())));
            }
            _ => {}
        }
    }
    let anchor = SqliteStore::open_anchor(anchor).map_err(failed)?;
    let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), SystemClock);
    Ok(runtime.block_on(sealed.accept()).map(|()| sealed))
}

/// The message for a state store that fails its integrity check, with what to do.
fn integrity_message(url: &str, error: &IntegrityError) -> String {
    let accept = format!("run `callgate state accept --state {url}`");
    match error {
        IntegrityError::Lost => format!(
            "the state store `{url}` is empty or missing, although it was in use: restore the file. To start with an empty \
             state store, without approvals and completed calls, {accept}"
        ),
        IntegrityError::OtherAnchor => format!(
            "the state store `{url}` does not match its anchor (`PATH.anchor`), or the anchor was lost: restore both files \
             from one backup. To accept the state store as it is, although calls may have run since, {accept}"
        ),
        IntegrityError::Unsealed => format!(
            "the state store `{url}` was used without a key, or by an earlier version, so its content can't be verified; use another \
             state store"
        ),
        other => format!("the state store `{url}` can't be opened: {other}"),
    }
}

/// The path of a file next to the state store.
fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
