//! `--state`: the store that outlives a run, with the keys that its questions are sealed with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::exit::Stop;
use crate::approval::Ledger;
use crate::host::{StateStore, SystemClock};
use crate::seal::{KEYS_VARIABLE, Keys};
use crate::state;

/// A state store and its keys.
pub(super) struct State {
    /// As it was named.
    pub(super) url: String,
    pub(super) store: Arc<dyn StateStore>,
    /// None for a state that ends with the process, and for one that was made without.
    pub(super) keys: Option<Keys>,
}

/// What waits for stores.
pub(super) fn runtime() -> Result<Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Stop::trouble(format!("no runtime for the tools: {error}")))
}

impl State {
    /// Opens the state of a run, which makes it, and its key, where there is none.
    pub(super) fn of_run(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let path = state::file_of(url).map_err(|error| Stop::trouble(error.to_string()))?;
        Self::open(url, path, runtime, true)
    }

    /// Opens the state of a gateway, which makes it, and a key, where there is none: clients hold sealed questions also of a state that
    /// ends with the process.
    pub(super) fn of_gateway(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let state = Self::of_run(url, runtime)?;
        let keys = match state.keys {
            Some(keys) => keys,
            None => Keys::random().map_err(|error| Stop::trouble(error.to_string()))?,
        };
        Ok(Self { keys: Some(keys), ..state })
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
        let ledger = Ledger::new(Arc::clone(&store), &SystemClock);
        let given = Keys::from_environment()
            .map_err(|error| trouble(format!("{KEYS_VARIABLE} can't be used: {error}")))?;
        let beside = path.map(key_file);
        let keys = match (given, &beside) {
            (Some(keys), _) => Some(keys),
            (None, None) => None,
            (None, Some(beside)) => {
                let sealed =
                    runtime.block_on(ledger.is_sealed()).map_err(|error| trouble(error.to_string()))?;
                if sealed && !beside.exists() {
                    return Err(trouble(format!(
                        "the key of this state is missing: bring `{}` back, or set {KEYS_VARIABLE} to what it held",
                        beside.display()
                    )));
                }
                let keys = match (makes_key, beside.exists()) {
                    (true, _) => Some(Keys::from_file_or_new(beside)),
                    (false, true) => Some(Keys::from_file(beside)),
                    (false, false) => None,
                };
                keys.transpose().map_err(|error| trouble(error.to_string()))?
            }
        };
        if let Some(keys) = &keys {
            let ours =
                runtime.block_on(ledger.belongs_to(keys)).map_err(|error| trouble(error.to_string()))?;
            if !ours {
                let here = match beside.filter(|_| std::env::var_os(KEYS_VARIABLE).is_none()) {
                    Some(beside) => format!("`{}`", beside.display()),
                    None => KEYS_VARIABLE.to_owned(),
                };
                return Err(trouble(format!(
                    "`{url}` was made with another key than the one of {here}, so what it says can't be believed: give the \
                     key that it was made with, or name another state"
                )));
            }
        }
        Ok(Self { url: url.to_owned(), store, keys })
    }
}

/// The key of a state lies beside it.
fn key_file(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".key");
    name.into()
}
