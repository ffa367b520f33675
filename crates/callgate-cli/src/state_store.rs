//! `--state`: opens a state store with the keys that seal its records; and `callgate state`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use tokio::runtime::Runtime;

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use callgate::approval::Ledger;
use callgate::file_access::check_private_file;
use callgate::host::{StateStore, SystemClock};
use callgate::seal::{KEYS_VARIABLE, Keys};
use callgate::state::{IntegrityError, SealedStore, has_seals};
use callgate_postgres::{PostgresSettings, PostgresStore};
use callgate_sqlite::SqliteStore;

/// Manage a state store.
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(super) struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Subcommand)]
enum StateCommand {
    /// Accept a state store as it is now, after a backup was restored or its anchor was lost
    ///
    /// A state store is rejected if it is older than this machine last saw it (rollback), if it was emptied, or if its anchor
    /// (`PATH.anchor`) is missing. This command creates a new anchor for the store as it is. Calls that ran after the backup can then
    /// run again, and limits start from zero: stop every process that uses the store first, and check the numbers printed.
    ///
    /// Exit status: 0 done, 2 the state store can't be read or was created with other keys.
    Accept {
        /// The state store, as in `--state` of other commands: `file:PATH`
        #[arg(long, value_name = "URL")]
        state: String,
    },
}

pub(super) fn state(arguments: &StateArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let StateCommand::Accept { state: url } = &arguments.command;
    let runtime = new_runtime()?;
    if is_database(url) {
        let shown = without_password(url);
        return Err(CommandError::new(format!(
            "`{shown}` is a database, which has no anchor; only files have one"
        )));
    }
    let Some(path) = callgate_sqlite::file_path(url).map_err(command_error)? else {
        return Err(CommandError::new(format!("`{url}` ends with its process; use `file:PATH`")));
    };
    let OpenStateStore { store, .. } = OpenStateStore::open(url, Some(path), &runtime, OpenMode::Accept)?;
    let ledger = Ledger::new(store, &SystemClock);
    let calls = runtime.block_on(ledger.list()).map_err(command_error)?.len();
    let grants = runtime.block_on(ledger.grants()).map_err(command_error)?.len();
    writeln!(output, "`{url}` is accepted as it is: {calls} calls, {grants} remembered approvals")?;
    Ok(ExitStatus::Success)
}

/// A state store and its keys.
pub(super) struct OpenStateStore {
    /// The URL as given, without a password.
    pub(super) url: String,
    pub(super) store: Arc<dyn StateStore>,
    /// From CALLGATE_KEYS, or else from the key file next to the store; for an in-memory store, a random key.
    pub(super) keys: Keys,
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

    /// Opens a state store, and creates it and its key if missing.
    pub(super) fn open_or_new(url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        if is_database(url) {
            return open_database(url, runtime);
        }
        let path = callgate_sqlite::file_path(url).map_err(|error| CommandError::new(error.to_string()))?;
        Self::open(url, path, runtime, OpenMode::Create)
    }

    /// Opens an existing state store.
    pub(super) fn open_existing(url: &str, runtime: &Runtime) -> Result<Self, CommandError> {
        if is_database(url) {
            return open_database(url, runtime);
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

    fn open(
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
        let Some(anchor) = anchor else { return Ok(Self { url: url.to_owned(), store, keys }) };
        let opened = match opening {
            OpenMode::Accept => accept_store(store, &keys, &anchor, runtime)?,
            OpenMode::Create | OpenMode::Existing => {
                let anchor = SqliteStore::open_anchor(&anchor).map_err(command_error)?;
                let sealed = SealedStore::with_anchor(store, keys.clone(), Arc::new(anchor), SystemClock);
                runtime.block_on(sealed.open()).map(|()| sealed)
            }
        };
        match opened {
            Ok(sealed) => Ok(Self { url: url.to_owned(), store: Arc::new(sealed), keys }),
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

/// Whether a URL names a database rather than a file.
fn is_database(url: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
}

/// A URL for people: without its password.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Opens a state store in PostgreSQL, which several hosts share.
fn open_database(url: &str, runtime: &Runtime) -> Result<OpenStateStore, CommandError> {
    let shown = without_password(url);
    let Some(keys) = keys_from_environment()? else {
        return Err(CommandError::new(format!(
            "every host that shares `{shown}` needs the same keys: set {KEYS_VARIABLE}, for example to the output of `openssl rand -hex 32`"
        )));
    };
    let password = std::env::var("PGPASSWORD").ok();
    let settings = PostgresSettings::parse(url, password.as_deref()).map_err(command_error)?;
    let store =
        PostgresStore::open(settings).map_err(|error| CommandError::new(format!("`{shown}`: {error}")))?;
    let sealed = SealedStore::new(Arc::new(store), keys.clone());
    match runtime.block_on(sealed.open()) {
        Ok(()) => Ok(OpenStateStore { url: shown, store: Arc::new(sealed), keys }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("postgres://u:secret@h/x", "postgres://u@h/x"),
            ("postgres://u:sec@ret@h:5432/x?schema=s", "postgres://u@h:5432/x?schema=s"),
            ("postgres://u@h", "postgres://u@h"),
            ("postgres://h/x?a=b:c@d", "postgres://h/x?a=b:c@d"),
            ("file:state.db", "file:state.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
