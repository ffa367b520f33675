//! `callgate approvals`: lists and answers the approval requests of a state store (human in the loop).

mod argument_edits;
mod next_steps;
mod grants;
mod json_output;
mod list;
mod show;

use std::io::{Read, Write};
use std::path::Path;

use clap::Subcommand;
use clap::builder::NonEmptyStringValueParser;
use tokio::runtime::Runtime;

use super::OutputFormat;
use super::exit::{ExitStatus, Stop};
use super::output::{Output, name, print_error};
use super::state_store::{State, runtime};
use crate::approval::{Inbox, InboxError, Item, Progress};
use crate::card::call_digest;
use crate::host::SystemClock;
use crate::json as values;
use crate::json::Value;
use crate::message::{Approver, RequestPart, ResponsePart};
use crate::principal::{Comparison, Principal};

/// List and answer the approval requests of a run or a gateway (human in the loop).
///
/// Answers are recorded in the state store. The calls of a run resume with `callgate run --resume`, a call through `callgate proxy` when
/// its client repeats it. An answer that would not count is rejected, and not recorded. Anyone who can read the state store's key file
/// can answer: `--as` and `--role` are not verified, but sealed into the answer. Keep the state store and its key where agents can't
/// read them: an agent with both could approve its own calls in anyone's name.
///
/// ID is an approval's id (`approval_c3`), or CONVERSATION/ID if several conversations have that id.
///
/// Exit status: 0 done, 1 the approval request does not exist or the answer is rejected, 2 usage error, or the state store can't be read.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        callgate approvals list --state file:state.db\n  \
        callgate approvals approve approval_c3 --state file:state.db --as ana --role finance-lead\n  \
        callgate approvals edit approval_c3 --state file:state.db --as ana --set '$.input.note=\"late\"'\n  \
        callgate run --resume --state file:state.db --policies policies calls.jsonl"
)]
pub(super) struct Approvals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List pending approval requests, with identical ones grouped
    List {
        /// Also list requests that are answered, expired, running or completed
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show one approval request with its card, answers and outcome
    Show {
        #[command(flatten)]
        one: One,
    },
    /// Approve the call as it is
    Approve {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        who: Who,
    },
    /// Deny the call
    Deny {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        who: Who,
    },
    /// Approve the call with changed arguments, where its policy allows edits
    #[command(group = clap::ArgGroup::new("changes").required(true).args(["set", "input"]))]
    Edit {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        who: Who,
        /// Set one value in the shown arguments, as in `$.input.note="late"` or `note="late"`; repeatable
        #[arg(long, value_name = "PATH=JSON")]
        set: Vec<String>,
        /// A JSON file with all shown arguments, including the changes; `-` for stdin
        #[arg(long, value_name = "FILE")]
        input: Option<std::path::PathBuf>,
    },
    /// Give a result in place of the tool
    Answer {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        who: Who,
        /// The result, as JSON; `-` for stdin
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        output: String,
    },
    /// Cancel the run: neither this call nor later ones run
    Cancel {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        who: Who,
    },
    /// List remembered approvals, which apply to later calls
    Grants {
        /// Also list revoked and expired ones
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Revoke a remembered approval
    Revoke {
        /// Its id, or a prefix of it
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(clap::Args)]
struct Place {
    /// The state store, as in `--state` of the run or gateway: `file:PATH`
    #[arg(long, value_name = "URL")]
    state: String,
    /// Output format: text, or one JSON document for programs
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(clap::Args)]
struct One {
    /// The approval's id, or CONVERSATION/ID
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
struct Who {
    /// The approver's name. Anonymous answers are rejected, unless the policy says `anonymous: allow`
    #[arg(long = "as", value_name = "PRINCIPAL", value_parser = principal)]
    principal: Option<String>,
    /// A role of the approver; repeatable
    #[arg(long = "role", value_name = "ROLE", requires = "principal", value_parser = NonEmptyStringValueParser::new())]
    roles: Vec<String>,
    /// The reason, which the agent sees
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Validates the name of a principal, and returns it unchanged.
fn principal(name: &str) -> Result<String, &'static str> {
    match Principal::parse(name, Comparison::Canonical) {
        Some(_) => Ok(name.to_owned()),
        None => Err("a name must not be blank or contain control characters"),
    }
}

impl Who {
    fn approver(&self) -> Option<Approver> {
        let principal = self.principal.clone()?;
        Some(Approver { principal, roles: self.roles.clone() })
    }

    fn saying(&self, approved: bool) -> ResponsePart {
        ResponsePart { approved, reason: self.reason.clone(), ..ResponsePart::default() }
    }
}

pub(super) fn approvals(arguments: &Approvals, output: &mut Output) -> Result<ExitStatus, Stop> {
    let runtime = runtime()?;
    let desk = |place: &Place| ApprovalsContext::open(place, &runtime);
    let ended = match &arguments.command {
        Command::List { all, place } => desk(place)?.list(*all, output),
        Command::Show { one } => desk(&one.place)?.show(&one.id, output),
        Command::Approve { one, who } => desk(&one.place)?.answer(one, who, output, |_| Ok(who.saying(true))),
        Command::Deny { one, who } => desk(&one.place)?.answer(one, who, output, |_| Ok(who.saying(false))),
        Command::Edit { one, who, set, input } => desk(&one.place)?.answer(one, who, output, |item| {
            let edited = match input {
                Some(path) => read(path)?,
                None => argument_edits::apply(&item.request.input, set)?,
            };
            Ok(ResponsePart { edited_input: Some(edited), ..who.saying(true) })
        }),
        Command::Answer { one, who, output: text } => desk(&one.place)?.answer(one, who, output, |_| {
            let given = if text == "-" { read(Path::new("-"))? } else { parse("--output", text)? };
            Ok(ResponsePart { output: Some(given), ..who.saying(true) })
        }),
        Command::Cancel { one, who } => desk(&one.place)?
            .answer(one, who, output, |_| Ok(ResponsePart { cancel: true, ..who.saying(false) })),
        Command::Grants { all, place } => desk(place)?.grants(*all, output),
        Command::Revoke { id, place } => desk(place)?.revoke(id, output),
    };
    match ended {
        Ok(()) => Ok(ExitStatus::Done),
        Err(Refusal::Inbox(InboxError::Ledger(error))) => Err(Stop::trouble(error.to_string())),
        Err(Refusal::Inbox(InboxError::Anonymous)) => {
            print_error(
                "the answer needs the approver's name: add `--as NAME`, or allow anonymous answers with `anonymous: allow` in the \
                 `approval` policy",
            );
            Ok(ExitStatus::Fails)
        }
        Err(Refusal::Inbox(error)) => {
            print_error(error);
            Ok(ExitStatus::Fails)
        }
        Err(Refusal::Stop(stop)) => Err(stop),
    }
}

/// Why a command failed.
enum Refusal {
    Inbox(InboxError),
    Stop(Stop),
}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        Self::Inbox(error)
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::Stop(error.into())
    }
}

/// The approval inbox of a state store, and the output format.
struct ApprovalsContext<'d> {
    inbox: Inbox,
    runtime: &'d Runtime,
    url: String,
    format: OutputFormat,
}

impl<'d> ApprovalsContext<'d> {
    fn open(place: &Place, runtime: &'d Runtime) -> Result<Self, Stop> {
        let State { url, store, keys } = State::of_others(&place.state, runtime)?;
        Ok(Self { inbox: Inbox::new(store, keys, SystemClock), runtime, url, format: place.format })
    }

    fn answer(
        &self,
        one: &One,
        who: &Who,
        output: &mut Output,
        say: impl FnOnce(&Item) -> Result<ResponsePart, Stop>,
    ) -> Result<(), Refusal> {
        let item = self.runtime.block_on(self.inbox.find(&one.id))?;
        let said = say(&item)?;
        let word = word(&said);
        let after = self.runtime.block_on(self.inbox.answer(&item.name, said, who.approver()))?;
        if self.format == OutputFormat::Json {
            return json_output::write(&json_output::item(&after), output);
        }
        let by = who.principal.as_deref().map(|by| format!(" by {}", name(by))).unwrap_or_default();
        let by = format!("{by} (digest {})", call_digest(&RequestPart::from(&after.request)));
        match &after.progress {
            Progress::Waiting { .. } => Ok(writeln!(output, "{word}{by}; {}", show::missing(&after))?),
            Progress::Answered(standing) => {
                let said = if next_steps::runs(standing) { "" } else { "; the call does not run" };
                writeln!(output, "{word}{by}{said}")?;
                self.print_next_step(&after, standing, output)
            }
            _ => Ok(writeln!(output, "{word}{by}; {}", show::progress(&after))?),
        }
    }
}

/// An answer in a few words.
fn word(said: &ResponsePart) -> &'static str {
    match said {
        _ if said.cancel => "cancelled",
        _ if !said.approved => "denied",
        _ if said.output.is_some() => "answered in place of the tool",
        _ if said.edited_input.is_some() => "approved with changes",
        _ => "approved",
    }
}

/// Reads JSON from a file, or from stdin for `-`.
fn read(path: &Path) -> Result<Value, Stop> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        ("stdin".to_owned(), std::io::stdin().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), std::fs::read_to_string(path))
    };
    let text = text.map_err(|error| Stop::trouble(format!("`{name}` can't be read: {error}")))?;
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Value, Stop> {
    values::parse(text).map_err(|error| {
        let help = if name == "--output" { "; strings need quotes, as in '\"done\"'" } else { "" };
        Stop::trouble(format!("{name}:{}:{}: {}{help}", error.line, error.column, error.kind))
    })
}
