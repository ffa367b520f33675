//! `callgate state`: numbers of a state store, removal of what has expired, copies into another store, and acceptance of a restored one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;
use tokio::runtime::Runtime;

use super::async_runtime::new_runtime;
use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use super::state_stats::{StatsFormat, StoreUsage};
use callgate::approval::Ledger;
use callgate::host::SystemClock;
use callgate::seal::KEYS_VARIABLE;
use callgate::state::CopyError;
use callgate_state::{OpenStateStore, keys_from_environment};

/// Manage a state store.
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(super) struct StateArgs {
    #[command(subcommand)]
    command: StateCommand,
}

#[derive(Subcommand)]
enum StateCommand {
    /// Print what a state store holds: records and their sizes by kind, and calls by how far they are
    ///
    /// Exit status: 0 done, 2 the state store can't be read or was created with other keys.
    Stats {
        /// The state store, as in `--state` of other commands
        #[arg(long, value_name = "URL")]
        state: String,
        /// Output format: text, one JSON document for programs, or metrics for Prometheus
        #[arg(long, value_enum, default_value_t = StatsFormat::Text)]
        format: StatsFormat,
    },
    /// Remove what has expired
    ///
    /// Stores do so by themselves while they are used.
    ///
    /// Exit status: 0 done, 2 the state store can't be read or written.
    Gc {
        /// The state store, as in `--state` of other commands
        #[arg(long, value_name = "URL")]
        state: String,
    },
    /// Copy calls, approvals and sessions into another state store, such as from a file to a database
    ///
    /// Pending approvals stay valid, so both stores must have the same keys: set CALLGATE_KEYS, for a file to the content of PATH.key. Stop
    /// every process that uses one of the stores first. All records are verified before the first is written, nothing in the target is
    /// replaced, the source stays as it is, and a copy that was interrupted can be repeated. Limits and cached results are not copied:
    /// limits start from zero.
    ///
    /// Exit status: 0 done, 2 a store can't be used, or the target has other records.
    Migrate {
        /// The state store to copy from
        #[arg(long, value_name = "URL")]
        from: String,
        /// The state store to copy to
        #[arg(long, value_name = "URL")]
        to: String,
    },
    /// Copy a state store into a new file, as a backup or to move it
    ///
    /// The file is a state store, too, with an anchor beside it. As `migrate` to `file:FILE`, which must not exist.
    Export {
        /// The state store to copy from
        #[arg(long, value_name = "URL")]
        state: String,
        /// The new file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Copy an exported file into a state store
    ///
    /// As `migrate` from `file:FILE`.
    Import {
        /// The state store to copy to
        #[arg(long, value_name = "URL")]
        state: String,
        /// The exported file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
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
    let runtime = new_runtime()?;
    match &arguments.command {
        StateCommand::Stats { state, format } => {
            StoreUsage::measure(state, &runtime)?.write(*format, output)?
        }
        StateCommand::Gc { state } => {
            let OpenStateStore { url, store, .. } = OpenStateStore::open_existing(state, &runtime)?;
            let removed = runtime.block_on(store.remove_expired(Timestamp::now())).map_err(command_error)?;
            writeln!(output, "`{url}`: {removed} expired records removed")?;
        }
        StateCommand::Migrate { from, to } => copy(from, to, &runtime, output)?,
        StateCommand::Export { state, file } => {
            if file.exists() {
                return Err(CommandError::new(format!("`{}` exists; name a new file", file.display())));
            }
            copy(state, &file_url(file), &runtime, output)?;
        }
        StateCommand::Import { state, file } => copy(&file_url(file), state, &runtime, output)?,
        StateCommand::Accept { state } => accept(state, &runtime, output)?,
    }
    Ok(ExitStatus::Success)
}

fn command_error(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(error.to_string())
}

fn file_url(file: &Path) -> String {
    format!("file:{}", file.display())
}

fn accept(url: &str, runtime: &Runtime, output: &mut Output) -> Result<(), CommandError> {
    let OpenStateStore { store, .. } = OpenStateStore::accept(url, runtime)?;
    let ledger = Ledger::new(store, &SystemClock);
    let calls = runtime.block_on(ledger.list()).map_err(command_error)?.len();
    let grants = runtime.block_on(ledger.grants()).map_err(command_error)?.len();
    writeln!(output, "`{url}` is accepted as it is: {calls} calls, {grants} remembered approvals")?;
    Ok(())
}

fn copy(from: &str, to: &str, runtime: &Runtime, output: &mut Output) -> Result<(), CommandError> {
    if keys_from_environment()?.is_none() {
        return Err(CommandError::new(format!(
            "both state stores need the same keys, so that pending approvals stay valid: set {KEYS_VARIABLE}, for a file to the content of \
             `PATH.key`"
        )));
    }
    let source = OpenStateStore::open_existing(from, runtime)?;
    let target = OpenStateStore::open_or_new(to, runtime)?;
    let (Some(records), Some(written)) = (&source.sealed, &target.sealed) else {
        return Err(CommandError::new("`memory:` ends with its process, so there is nothing to copy"));
    };
    let copied = runtime.block_on(records.copy_records(written, Timestamp::now()));
    let copied = copied.map_err(|error| match error {
        CopyError::Conflict { .. } => {
            CommandError::new(format!("{error}, so nothing of it is replaced; name an empty state store"))
        }
        other => CommandError::new(other.to_string()),
    })?;
    writeln!(
        output,
        "{} records copied from `{}` to `{}`; {} were there already, {} have expired. Limits start from zero",
        copied.copied, source.url, target.url, copied.unchanged, copied.expired
    )?;
    Ok(())
}
