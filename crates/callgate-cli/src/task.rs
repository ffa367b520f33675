//! `callgate task seal`: text or messages of the user + key → the header `Callgate-Task` for the gateway over HTTP.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use jiff::Timestamp;

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use callgate::file_access::check_private_file;
use callgate::{KEYS_VARIABLE, Keys, Task};
use callgate::{durations, json};
use callgate_state::keys_from_environment;

/// The longest input that is read: a task of 256 KiB in JSON, with escapes.
const MAX_INPUT: u64 = 2 << 20;

/// Seal what the user asked for, for the gateway over HTTP.
///
/// Policies read the task as `$.task`. Run this only in the host of the agent: whoever has the key decides what the user asked for, so
/// neither the agent nor its tools may read it.
///
/// Exit status: 0 sealed; 2 the input or the key can't be used.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        printf 'Pay ana@example.com.' | callgate task seal --session 'chat 7' --keys callgate.key\n  \
        callgate task seal --session 'chat 7' --json < messages.json"
)]
pub(super) struct TaskArgs {
    #[command(subcommand)]
    command: TaskCommand,
}

#[derive(Subcommand)]
enum TaskCommand {
    /// Read a task from stdin, and print the value of the header `Callgate-Task`. Empty input is no task
    Seal {
        /// The session of the requests: the name that `--session-from` reads, otherwise the Mcp-Session-Id
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        session: String,
        /// The file with the keys of the gateway, readable only by its owner [default: the variable CALLGATE_KEYS]
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
        /// How long the header is valid
        #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_lifetime)]
        expires_in: Duration,
        /// The input is JSON: a string, or a list of strings and `{ text, at }`
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn task(arguments: &TaskArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let TaskCommand::Seal { session, keys, expires_in, json } = &arguments.command;
    let keys = match keys {
        Some(path) => check_private_file(path)
            .map_err(|error| CommandError::new(error.to_string()))
            .and_then(|()| Keys::from_file(path).map_err(|error| CommandError::new(error.to_string())))?,
        None => keys_from_environment()?.ok_or_else(|| {
            CommandError::new(format!("no keys: name a file with --keys, or set {KEYS_VARIABLE}"))
        })?,
    };
    let task = read_task(*json)?;
    let expires = Timestamp::now()
        .checked_add(*expires_in)
        .map_err(|_| CommandError::new("--expires-in is too long".to_owned()))?;
    writeln!(output, "{}", task.seal(session, expires, &keys))?;
    Ok(ExitStatus::Success)
}

/// Reads the task from stdin. A task that policies could not use is an error, because its header would say that there is none.
fn read_task(is_json: bool) -> Result<Task, CommandError> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_INPUT + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::new(format!("stdin can't be read: {error}")))?;
    let invalid = |why: &str| CommandError::new(format!("the task can't be sealed: {why}"));
    if text.len() as u64 > MAX_INPUT {
        return Err(invalid("it is longer than 2 MiB"));
    }
    let task = match (text.trim().is_empty(), is_json) {
        (true, _) => Task::NONE,
        (false, false) => Task::from_text(text.trim_end_matches(['\r', '\n'])),
        (false, true) => {
            let turns = json::parse(&text)
                .map_err(|error| invalid(&format!("the input is invalid JSON: {error}")))?;
            Task::from_json(&turns).map_err(|wanted| invalid(&format!("the input must be {wanted}")))?
        }
    };
    match task.unknown_reason() {
        Some(why) => Err(invalid(why)),
        None => Ok(task),
    }
}

fn parse_lifetime(text: &str) -> Result<Duration, String> {
    let duration = durations::parse(text).filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "write a duration such as `30s`, `5m` or `1h`".to_owned())
}
