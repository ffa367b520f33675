//! `--state`: the store that outlives a run, with the keys that its records are sealed with, and `callgate state`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use tokio::runtime::Runtime;

use super::exit::{Exit, Stop};
use super::output::Output;
use crate::approval::Ledger;
use crate::files::check_private;
use crate::host::{StateStore, SystemClock};
use crate::seal::{KEYS_VARIABLE, Keys};
use crate::state::{self, FileStore, IntegrityError, SealedStore};

/// Take care of a state.
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(super) struct StateCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Accept a state as it is now, after a backup was restored or its anchor was lost
    ///
    /// A state is refused if it is older than what this machine saw last, if it was emptied, or if its anchor (`PATH.anchor`) is
    /// missing. This command makes a new anchor for the state as it is. Calls that ran after a backup was made can run again
    /// then, and limits count from nothing: end every process that uses the state first, and see what it lists.
    ///
    /// Exit status: 0 done, 2 the state can't be read or was made with other keys.
    Accept {
        /// The state, as `--state` of other commands names it: `file:PATH`
        #[arg(long, value_name = "URL")]
        state: String,
    },
}

pub(super) fn state(arguments: &StateCommand, output: &mut Output) -> Result<Exit, Stop> {
    let Command::Accept { state: url } = &arguments.command;
    let runtime = runtime()?;
    let Some(path) = state::file_of(url).map_err(trouble)? else {
        return Err(Stop::trouble(format!("`{url}` ends with its process; name a `file:PATH`")));
    };
    let State { store, .. } = State::open(url, Some(path), &runtime, Opening::Accepting)?;
    let ledger = Ledger::new(store, &SystemClock);
    let calls = runtime.block_on(ledger.list()).map_err(trouble)?.len();
    let grants = runtime.block_on(ledger.grants()).map_err(trouble)?.len();
    writeln!(output, "`{url}` is accepted as it is: {calls} calls, {grants} remembered approvals")?;
    Ok(Exit::Done)
}

/// A state store and its keys.
pub(super) struct State {
    /// As it was named.
    pub(super) url: String,
    pub(super) store: Arc<dyn StateStore>,
    /// Those of CALLGATE_KEYS, or of the file beside the state; for a state that ends with the process, one that does, too.
    pub(super) keys: Keys,
}

/// How a state is opened.
#[derive(Clone, Copy, PartialEq)]
enum Opening {
    /// One that is new gets a key.
    Making,
    /// It has a key.
    Existing,
    /// It is believed as it is, and gets a new anchor.
    Accepting,
}

/// What waits for stores.
pub(super) fn runtime() -> Result<Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Stop::trouble(format!("no runtime for the tools: {error}")))
}

fn trouble(error: impl std::fmt::Display) -> Stop {
    Stop::trouble(error.to_string())
}

impl State {
    /// Opens a state, and makes it, and its key, where there is none.
    pub(super) fn open_or_new(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let path = state::file_of(url).map_err(|error| Stop::trouble(error.to_string()))?;
        Self::open(url, path, runtime, Opening::Making)
    }

    /// Opens a state that a run has left.
    pub(super) fn of_others(url: &str, runtime: &Runtime) -> Result<Self, Stop> {
        let path = state::file_of(url).map_err(|error| Stop::trouble(error.to_string()))?;
        match path {
            Some(path) if !path.exists() && !beside(path, ".anchor").exists() => {
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
        Self::open(url, path, runtime, Opening::Existing)
    }

    fn open(url: &str, path: Option<&Path>, runtime: &Runtime, opening: Opening) -> Result<Self, Stop> {
        let anchor = path.map(|path| beside(path, ".anchor"));
        if let (Some(path), Some(anchor), true) = (path, &anchor, opening != Opening::Accepting)
            && anchor.exists()
            && !path.exists()
        {
            return Err(Stop::trouble(refused(url, &IntegrityError::Lost)));
        }
        let store = state::open(url).map_err(trouble)?;
        let is_sealed = match &anchor {
            Some(anchor) => {
                anchor.exists() || runtime.block_on(state::was_sealed(&*store)).map_err(trouble)?
            }
            None => false,
        };
        let key = path.map(|path| beside(path, ".key"));
        let (keys, from) = Self::keys(key.as_deref(), is_sealed, opening)?;
        let Some(anchor) = anchor else { return Ok(Self { url: url.to_owned(), store, keys }) };
        let opened = match opening {
            Opening::Accepting => accept(store, &keys, &anchor, runtime)?,
            Opening::Making | Opening::Existing => {
                let anchor = FileStore::open_anchor(&anchor).map_err(trouble)?;
                let sealed = SealedStore::anchored(store, keys.clone(), Arc::new(anchor), SystemClock);
                runtime.block_on(sealed.open()).map(|()| sealed)
            }
        };
        match opened {
            Ok(sealed) => Ok(Self { url: url.to_owned(), store: Arc::new(sealed), keys }),
            Err(IntegrityError::OtherKeys) => Err(Stop::trouble(format!(
                "`{url}` was made with another key than the one of {from}, so what it says can't be believed: give the key that \
                 it was made with, or name another state"
            ))),
            Err(error) => Err(Stop::trouble(refused(url, &error))),
        }
    }

    /// The keys of a state, and where they are from.
    fn keys(key: Option<&Path>, is_sealed: bool, opening: Opening) -> Result<(Keys, String), Stop> {
        if let Some(keys) = keys_given()? {
            return Ok((keys, KEYS_VARIABLE.to_owned()));
        }
        let Some(key) = key else {
            return Keys::random().map(|keys| (keys, "this process".to_owned())).map_err(trouble);
        };
        if (is_sealed || opening != Opening::Making) && !key.exists() {
            return Err(Stop::trouble(format!(
                "the key of this state is missing: bring `{}` back, or set {KEYS_VARIABLE} to what it held",
                key.display()
            )));
        }
        check_private(key).map_err(trouble)?;
        let keys = match opening {
            Opening::Making => Keys::from_file_or_new(key),
            Opening::Existing | Opening::Accepting => Keys::from_file(key),
        };
        keys.map(|keys| (keys, format!("`{}`", key.display()))).map_err(trouble)
    }
}

/// The keys of the environment, if it has any.
pub(super) fn keys_given() -> Result<Option<Keys>, Stop> {
    Keys::from_environment().map_err(|error| Stop::trouble(format!("{KEYS_VARIABLE} can't be used: {error}")))
}

/// Makes a new anchor for a state whose keys these are.
fn accept(
    store: Arc<dyn StateStore>,
    keys: &Keys,
    anchor: &Path,
    runtime: &Runtime,
) -> Result<Result<SealedStore, IntegrityError>, Stop> {
    if let Err(error) = runtime.block_on(SealedStore::new(Arc::clone(&store), keys.clone()).open()) {
        return Ok(Err(error));
    }
    for file in [anchor.to_owned(), beside(anchor, "-wal"), beside(anchor, "-shm")] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Stop::trouble(format!("`{}` can't be removed: {error}", file.display())));
            }
            _ => {}
        }
    }
    let anchor = FileStore::open_anchor(anchor).map_err(trouble)?;
    let sealed = SealedStore::anchored(store, keys.clone(), Arc::new(anchor), SystemClock);
    Ok(runtime.block_on(sealed.accept()).map(|()| sealed))
}

/// Why a state is not opened, and what to do.
fn refused(url: &str, error: &IntegrityError) -> String {
    let accept = format!("run `callgate state accept --state {url}`");
    match error {
        IntegrityError::Lost => format!(
            "the state `{url}` is empty or missing, although it was in use: bring the file back. To begin again with an empty \
             state, which knows neither approvals nor what ran, {accept}"
        ),
        IntegrityError::OtherAnchor => format!(
            "the state `{url}` is not the one that its anchor (`PATH.anchor`) knows, or the anchor was lost: bring both files back \
             from one copy. To accept the state as it is, whatever ran since, {accept}"
        ),
        IntegrityError::Unsealed => format!(
            "the state `{url}` was used without a key, or by an earlier version, so what it says can't be believed: name another \
             state"
        ),
        other => format!("the state `{url}` can't be opened: {other}"),
    }
}

/// A file beside the state.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
