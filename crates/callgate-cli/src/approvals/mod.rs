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
use super::async_runtime::new_runtime;
use super::exit::{CommandError, ExitStatus};
use super::output::{Output, print_error, quote_name};
use callgate::approval::{Inbox, InboxError, InboxItem, RequestStatus};
use callgate::card::call_digest;
use callgate::host::SystemClock;
use callgate::json as values;
use callgate::json::Value;
use callgate::message::{Approver, RequestPart, ResponsePart};
use callgate::principal::{Principal, PrincipalComparison};
use callgate_server::approval_document;
use callgate_state::OpenStateStore;

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
pub(super) struct ApprovalsArgs {
    #[command(subcommand)]
    command: ApprovalsCommand,
}

#[derive(Subcommand)]
enum ApprovalsCommand {
    /// List pending approval requests, with identical ones grouped
    List {
        /// Also list requests that are answered, expired, running or completed
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: StoreArgs,
    },
    /// Show one approval request with its card, answers and outcome
    Show {
        #[command(flatten)]
        one: ApprovalIdArgs,
    },
    /// Approve the call as it is
    Approve {
        #[command(flatten)]
        one: ApprovalIdArgs,
        #[command(flatten)]
        who: ApproverArgs,
    },
    /// Deny the call
    Deny {
        #[command(flatten)]
        one: ApprovalIdArgs,
        #[command(flatten)]
        who: ApproverArgs,
    },
    /// Approve the call with changed arguments, where its policy allows edits
    #[command(group = clap::ArgGroup::new("changes").required(true).args(["set", "input"]))]
    Edit {
        #[command(flatten)]
        one: ApprovalIdArgs,
        #[command(flatten)]
        who: ApproverArgs,
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
        one: ApprovalIdArgs,
        #[command(flatten)]
        who: ApproverArgs,
        /// The result, as JSON; `-` for stdin
        #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
        output: String,
    },
    /// Cancel the run: neither this call nor later ones run
    Cancel {
        #[command(flatten)]
        one: ApprovalIdArgs,
        #[command(flatten)]
        who: ApproverArgs,
    },
    /// List remembered approvals, which apply to later calls
    Grants {
        /// Also list revoked and expired ones
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        place: StoreArgs,
    },
    /// Revoke a remembered approval
    Revoke {
        /// Its id, or a prefix of it
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        place: StoreArgs,
    },
}

#[derive(clap::Args)]
struct StoreArgs {
    /// The state store, as in `--state` of the run, gateway or server: `file:PATH`, `postgres://…` or `rediss://…`
    #[arg(long, value_name = "URL")]
    state: String,
    /// Output format: text, or one JSON document for programs
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(clap::Args)]
struct ApprovalIdArgs {
    /// The approval's id, or CONVERSATION/ID
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: StoreArgs,
}

#[derive(clap::Args)]
struct ApproverArgs {
    /// The approver's name. Anonymous answers are rejected, unless the policy says `anonymous: allow`
    #[arg(long = "as", value_name = "PRINCIPAL", value_parser = parse_principal)]
    principal: Option<String>,
    /// A role of the approver; repeatable
    #[arg(long = "role", value_name = "ROLE", requires = "principal", value_parser = NonEmptyStringValueParser::new())]
    roles: Vec<String>,
    /// The reason, which the agent sees
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Validates the name of a principal, and returns it unchanged.
fn parse_principal(name: &str) -> Result<String, &'static str> {
    match Principal::parse(name, PrincipalComparison::Canonical) {
        Some(_) => Ok(name.to_owned()),
        None => Err("a name must not be blank or contain control characters"),
    }
}

impl ApproverArgs {
    fn approver(&self) -> Option<Approver> {
        let principal = self.principal.clone()?;
        Some(Approver { principal, roles: self.roles.clone() })
    }

    fn new_answer(&self, approved: bool) -> ResponsePart {
        ResponsePart { approved, reason: self.reason.clone(), ..ResponsePart::default() }
    }
}

pub(super) fn approvals(arguments: &ApprovalsArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let runtime = new_runtime()?;
    let open_context = |store_args: &StoreArgs| ApprovalsContext::open(store_args, &runtime);
    let ended = match &arguments.command {
        ApprovalsCommand::List { all, place } => open_context(place)?.list(*all, output),
        ApprovalsCommand::Show { one } => open_context(&one.place)?.show(&one.id, output),
        ApprovalsCommand::Approve { one, who } => {
            open_context(&one.place)?.answer(one, who, output, |_| Ok(who.new_answer(true)))
        }
        ApprovalsCommand::Deny { one, who } => {
            open_context(&one.place)?.answer(one, who, output, |_| Ok(who.new_answer(false)))
        }
        ApprovalsCommand::Edit { one, who, set, input } => {
            open_context(&one.place)?.answer(one, who, output, |item| {
                let edited = match input {
                    Some(path) => read_json(path)?,
                    None => argument_edits::apply_changes(&item.request.input, set)?,
                };
                Ok(ResponsePart { edited_input: Some(edited), ..who.new_answer(true) })
            })
        }
        ApprovalsCommand::Answer { one, who, output: text } => {
            open_context(&one.place)?.answer(one, who, output, |_| {
                let given =
                    if text == "-" { read_json(Path::new("-"))? } else { parse_json("--output", text)? };
                Ok(ResponsePart { output: Some(given), ..who.new_answer(true) })
            })
        }
        ApprovalsCommand::Cancel { one, who } => open_context(&one.place)?
            .answer(one, who, output, |_| Ok(ResponsePart { cancel: true, ..who.new_answer(false) })),
        ApprovalsCommand::Grants { all, place } => open_context(place)?.grants(*all, output),
        ApprovalsCommand::Revoke { id, place } => open_context(place)?.revoke(id, output),
    };
    match ended {
        Ok(()) => Ok(ExitStatus::Success),
        Err(ApprovalsError::Inbox(InboxError::Ledger(error))) => Err(CommandError::new(error.to_string())),
        Err(ApprovalsError::Inbox(InboxError::Anonymous)) => {
            print_error(
                "the answer needs the approver's name: add `--as NAME`, or allow anonymous answers with `anonymous: allow` in the \
                 `approval` policy",
            );
            Ok(ExitStatus::Failure)
        }
        Err(ApprovalsError::Inbox(error)) => {
            print_error(error);
            Ok(ExitStatus::Failure)
        }
        Err(ApprovalsError::Command(stop)) => Err(stop),
    }
}

/// Why a command failed.
enum ApprovalsError {
    Inbox(InboxError),
    Command(CommandError),
}

impl From<InboxError> for ApprovalsError {
    fn from(error: InboxError) -> Self {
        Self::Inbox(error)
    }
}

impl From<CommandError> for ApprovalsError {
    fn from(stop: CommandError) -> Self {
        Self::Command(stop)
    }
}

impl From<std::io::Error> for ApprovalsError {
    fn from(error: std::io::Error) -> Self {
        Self::Command(error.into())
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
    fn open(store_args: &StoreArgs, runtime: &'d Runtime) -> Result<Self, CommandError> {
        let OpenStateStore { url, store, keys, .. } =
            OpenStateStore::open_existing(&store_args.state, runtime)?;
        Ok(Self { inbox: Inbox::new(store, keys, SystemClock), runtime, url, format: store_args.format })
    }

    fn answer(
        &self,
        one: &ApprovalIdArgs,
        approver_args: &ApproverArgs,
        output: &mut Output,
        build_answer: impl FnOnce(&InboxItem) -> Result<ResponsePart, CommandError>,
    ) -> Result<(), ApprovalsError> {
        let item = self.runtime.block_on(self.inbox.find(&one.id))?;
        let answer = build_answer(&item)?;
        let word = answer_label(&answer);
        let after =
            self.runtime.block_on(self.inbox.answer_shown(&item, answer, approver_args.approver()))?;
        if self.format == OutputFormat::Json {
            return json_output::write_json(&approval_document(&after), output);
        }
        let by = approver_args
            .principal
            .as_deref()
            .map(|by| format!(" by {}", quote_name(by)))
            .unwrap_or_default();
        let by = format!("{by} (digest {})", call_digest(&RequestPart::from(&after.request)));
        match &after.status {
            RequestStatus::Pending { .. } => {
                Ok(writeln!(output, "{word}{by}; {}", show::format_missing_approvals(&after))?)
            }
            RequestStatus::Answered(tally) => {
                let suffix = if next_steps::is_runnable(tally) { "" } else { "; the call does not run" };
                writeln!(output, "{word}{by}{suffix}")?;
                self.print_next_step(&after, tally, output)
            }
            _ => Ok(writeln!(output, "{word}{by}; {}", show::format_progress(&after))?),
        }
    }
}

/// An answer in a few words.
fn answer_label(answer: &ResponsePart) -> &'static str {
    match answer {
        _ if answer.cancel => "cancelled",
        _ if !answer.approved => "denied",
        _ if answer.output.is_some() => "answered in place of the tool",
        _ if answer.edited_input.is_some() => "approved with changes",
        _ => "approved",
    }
}

/// Reads JSON from a file, or from stdin for `-`.
fn read_json(path: &Path) -> Result<Value, CommandError> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        ("stdin".to_owned(), std::io::stdin().read_to_string(&mut text).map(|_| text))
    } else {
        (path.display().to_string(), std::fs::read_to_string(path))
    };
    let text = text.map_err(|error| CommandError::new(format!("`{name}` can't be read: {error}")))?;
    parse_json(&name, &text)
}

fn parse_json(name: &str, text: &str) -> Result<Value, CommandError> {
    values::parse(text).map_err(|error| {
        let help = if name == "--output" { "; strings need quotes, as in '\"done\"'" } else { "" };
        CommandError::new(format!("{name}:{}:{}: {}{help}", error.line, error.column, error.kind))
    })
}
