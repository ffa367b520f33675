//! `--state`: the store that outlives a run, with the keys that its questions are sealed with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::exit::Stop;
use crate::approval::{Ledger, is_owned};
use crate::host::{StateStore, SystemClock};
use crate::seal::{KEYS_VARIABLE, Keys};
use crate::state::{self, EncryptedStore};

/// A state store and its keys.
pub(super) struct State {
    /// As it was named.
    pub(super) url: String,
    pub(super) store: Arc<dyn StateStore>,
    /// Those of CALLGATE_KEYS, or of the file beside the state; for a state that ends with the process, one that does, too.
    pub(super) keys: Keys,
}

/// What waits for stores.
pub(super) fn runtime() -> Result<Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Stop::trouble(format!("no runtime for the tools: {error}")))
}

impl State {
    /// Opens a state, and makes it, and its key, where there is none.
    pub(super) fn open_or_new(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let path = state::file_of(url).map_err(|error| Stop::trouble(error.to_string()))?;
        Self::open(url, path, runtime, true)
    }

    /// Opens a state that a run has left.
    pub(super) fn of_others(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let path = state::file_of(url).map_err(|error| Stop::trouble(error.to_string()))?;
        match path {
            Some(path) if !path.exists() => {
                return Err(Stop::trouble(format!(
                    "there is no state `{}`; `callgate run --state` makes it",
                    path.display()
                )));
            }
            None if url == "memory:" => {
                return Err(Stop::trouble(
                    "`memory:` ends with its process, so nothing waits there; name the `file:PATH` of a run",
                ));
            }
            _ => {}
        }
        Self::open(url, path, runtime, false)
    }

    /// `makes_key`: whether a state that has no key yet gets one.
    fn open(url: &str, path: Option<&Path>, runtime: &Runtime, makes_key: bool) -> Result<Self, Stop> {
        let trouble = |error: String| Stop::Trouble(error);
        let store = state::open(url).map_err(|error| trouble(error.to_string()))?;
        let given = keys_given()?;
        let beside = path.map(key_file);
        let keys = match (given, &beside) {
            (Some(keys), _) => Ok(keys),
            (None, None) => Keys::random(),
            (None, Some(beside)) => {
                let owned = runtime.block_on(is_owned(&*store, &SystemClock));
                let owned = owned.map_err(|error| trouble(error.to_string()))?;
                if (owned || !makes_key) && !beside.exists() {
                    return Err(trouble(format!(
                        "the key of this state is missing: bring `{}` back, or set {KEYS_VARIABLE} to what it held",
                        beside.display()
                    )));
                }
                match makes_key {
                    true => Keys::from_file_or_new(beside),
                    false => Keys::from_file(beside),
                }
            }
        };
        let keys = keys.map_err(|error| trouble(error.to_string()))?;
        let protected = Arc::new(EncryptedStore::new(Arc::clone(&store), Some(keys.clone())));
        let ours = runtime.block_on(Ledger::new(protected, &SystemClock).belongs_to(&keys));
        if !ours.map_err(|error| trouble(error.to_string()))? {
            let here = match beside.filter(|_| std::env::var_os(KEYS_VARIABLE).is_none()) {
                Some(beside) => format!("`{}`", beside.display()),
                None => KEYS_VARIABLE.to_owned(),
            };
            return Err(trouble(format!(
                "`{url}` was made with another key than the one of {here}, so what it says can't be believed: give the \
                 key that it was made with, or name another state"
            )));
        }
        Ok(Self { url: url.to_owned(), store, keys })
    }
}

/// The keys of the environment, if it has any.
pub(super) fn keys_given() -> Result<Option<Keys>, Stop> {
    Keys::from_environment().map_err(|error| Stop::trouble(format!("{KEYS_VARIABLE} can't be used: {error}")))
}

/// The key of a state lies beside it.
fn key_file(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".key");
    name.into()
}
