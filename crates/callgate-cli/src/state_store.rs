//! `--state`: opens a state store with the keys that seal its records.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::exit::CommandError;
use super::shared_state::StateParts;
use callgate::file_access::check_private_file;
use callgate::host::{StateStore, SystemClock};
use callgate::seal::{KEYS_VARIABLE, Keys};
use callgate::state::{IntegrityError, SealedStore, has_seals};
use callgate_sqlite::SqliteStore;

/// A state store and its keys.
pub(super) struct OpenStateStore {
    /// The URL as given, without a password.
    pub(super) url: String,
    pub(super) store: Arc<dyn StateStore>,
    /// The same store, if it outlives the process.
    pub(super) sealed: Option<Arc<SealedStore>>,
    /// From CALLGATE_KEYS, or else from the key file next to the store; for an in-memory store, a random key.
    pub(super) keys: Keys,
}

/// How to open a state store.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OpenMode {
    /// Create it, and its key, if missing.
    Create,
    /// It must exist, with its key.
    Existing,
    /// Trust it as it is, and create a new anchor.
    Accept,
}

/// The async runtime for stores and sessions.
pub(super) fn new_runtime() -> Result<Runtime, CommandError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))
}

fn command_error(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(error.to_string())
}

impl OpenStateStore {
    /// The files of a store in a file: the store, and its keys. Empty for a database.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let path = callgate_sqlite::file_path(&self.url).ok().flatten();
        let files = path.map(|path| vec![path.to_owned(), sibling_path(path, ".key")]);
        files.unwrap_or_default().into_iter().filter(|path| path.exists()).collect()
    }

    /// A store that outlives the process.
    pub(super) fn new(url: String, sealed: SealedStore, keys: Keys) -> Self {
        let sealed = Arc::new(sealed);
        Self { url, store: Arc::clone(&sealed) as Arc<dyn StateStore>, sealed: Some(sealed), keys }
    }

    /// Opens a state store, and creates it and its key if missing.
    pub(super) fn open_or_new(url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        if let Some(parts) = StateParts::parse(url)? {
            return open_shared(&parts, runtime);
        }
        let path = callgate_sqlite::file_path(url).map_err(|error| CommandError::new(error.to_string()))?;
        Self::open(url, path, runtime, OpenMode::Create)
    }

    /// Opens an existing state store.
    pub(super) fn open_existing(url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        if let Some(parts) = StateParts::parse(url)? {
            return open_shared(&parts, runtime);
        }
        let path = callgate_sqlite::file_path(url).map_err(|error| CommandError::new(error.to_string()))?;
        match path {
            Some(path) if !path.exists() && !sibling_path(path, ".anchor").exists() => {
                return Err(CommandError::new(format!(
                    "the state store `{}` does not exist; `callgate run --state` creates it",
                    path.display()
                )));
            }
            None if url == "memory:" => {
                return Err(CommandError::new(
                    "`memory:` ends with its process, so it has no pending approvals; use the `file:PATH` of a run",
                ));
            }
            _ => {}
        }
        Self::open(url, path, runtime, OpenMode::Existing)
    }

    pub(super) fn open(
        url: &str,
        path: Option<&Path>,
        runtime: &Runtime,
        opening: OpenMode,
    ) -> Result<Self, CommandError> {
        let anchor = path.map(|path| sibling_path(path, ".anchor"));
        if let (Some(path), Some(anchor), true) = (path, &anchor, opening != OpenMode::Accept)
            && anchor.exists()
            && !path.exists()
        {
            return Err(CommandError::new(integrity_message(url, &IntegrityError::Lost)));
        }
        let store = callgate_sqlite::open_store(url).map_err(command_error)?;
        let is_sealed = match &anchor {
            Some(anchor) => anchor.exists() || runtime.block_on(has_seals(&*store)).map_err(command_error)?,
            None => false,
        };
        let key = path.map(|path| sibling_path(path, ".key"));
        let (keys, from) = Self::load_keys(key.as_deref(), is_sealed, opening)?;
        let Some(anchor) = anchor else { return Ok(Self { url: url.to_owned(), store, sealed: None, keys }) };
        let opened = match opening {
            OpenMode::Accept => accept_store(store, &keys, &anchor, runtime)?,
            OpenMode::Create | OpenMode::Existing => {
                let anchor = SqliteStore::open_anchor(&anchor).map_err(command_error)?;
                let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), SystemClock);
                runtime.block_on(sealed.open()).map(|()| sealed)
            }
        };
        match opened {
            Ok(sealed) => Ok(Self::new(url.to_owned(), sealed, keys)),
            Err(IntegrityError::OtherKeys) => Err(CommandError::new(other_keys_message(url, &from))),
            Err(error) => Err(CommandError::new(integrity_message(url, &error))),
        }
    }

    /// The keys of a state store, and their source.
    fn load_keys(
        key: Option<&Path>,
        is_sealed: bool,
        opening: OpenMode,
    ) -> Result<(Keys, String), CommandError> {
        if let Some(keys) = keys_from_environment()? {
            return Ok((keys, KEYS_VARIABLE.to_owned()));
        }
        let Some(key) = key else {
            return Keys::random().map(|keys| (keys, "this process".to_owned())).map_err(command_error);
        };
        if (is_sealed || opening != OpenMode::Create) && !key.exists() {
            return Err(CommandError::new(format!(
                "the key of this state store is missing: restore `{}`, or set {KEYS_VARIABLE} to its content",
                key.display()
            )));
        }
        check_private_file(key).map_err(command_error)?;
        let keys = match opening {
            OpenMode::Create => Keys::from_file_or_new(key),
            OpenMode::Existing | OpenMode::Accept => Keys::from_file(key),
        };
        keys.map(|keys| (keys, format!("`{}`", key.display()))).map_err(command_error)
    }
}

/// Opens state that hosts share, with the keys of the environment.
fn open_shared(parts: &StateParts, runtime: &Runtime) -> Result<OpenStateStore, CommandError> {
    let shown = parts.without_passwords();
    let Some(keys) = keys_from_environment()? else {
        return Err(CommandError::new(format!(
            "every host that shares `{shown}` needs the same keys: set {KEYS_VARIABLE}, for example to the output of `openssl rand -hex 32`"
        )));
    };
    let sealed = SealedStore::new(Arc::new(parts.open_engines()?), keys.clone());
    match runtime.block_on(sealed.open()) {
        Ok(()) => Ok(OpenStateStore::new(shown, sealed, keys)),
        Err(IntegrityError::OtherKeys) => Err(CommandError::new(other_keys_message(&shown, KEYS_VARIABLE))),
        Err(error) => Err(CommandError::new(format!("the state store `{shown}` can't be opened: {error}"))),
    }
}

fn other_keys_message(url: &str, from: &str) -> String {
    format!(
        "`{url}` was created with another key than the one of {from}, so its content can't be verified; use the key that it was created \
         with, or another state store"
    )
}

/// The keys of the environment variable, if it is set.
pub(super) fn keys_from_environment() -> Result<Option<Keys>, CommandError> {
    Keys::from_environment()
        .map_err(|error| CommandError::new(format!("{KEYS_VARIABLE} can't be used: {error}")))
}

/// Creates a new anchor for a state store that was created with these keys.
fn accept_store(
    store: Arc<dyn StateStore>,
    keys: &Keys,
    anchor: &Path,
    runtime: &Runtime,
) -> Result<Result<SealedStore, IntegrityError>, CommandError> {
    if let Err(error) = runtime.block_on(SealedStore::new(Arc::clone(&store), keys.clone()).open()) {
        return Ok(Err(error));
    }
    for file in [anchor.to_owned(), sibling_path(anchor, "-wal"), sibling_path(anchor, "-shm")] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(CommandError::new(format!("`{}` can't be removed: {error}", file.display())));
            }
            _ => {}
        }
    }
    let anchor = SqliteStore::open_anchor(anchor).map_err(command_error)?;
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
