//! `callgate hook`: one event of a coding agent on stdin → the agent's answer on stdout, stderr and in the exit status.
//!
//! Whatever fails denies in the way that this agent understands: invalid or huge input, broken rules, a store that can't be used, a panic, and
//! a decision that takes too long.

mod agent_environment;
mod decision;
mod default_state;
mod file_identity;
#[cfg(unix)]
mod helper;
mod hook_engine;
mod records;

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::ValueEnum;

use agent_environment::AgentEnvironment;
use decision::HookRequest;
pub(super) use decision::REFUSALS;
#[cfg(unix)]
use helper::HelperReply;
use hook_engine::{HookEngine, undecided};

use super::async_runtime::new_runtime;
use super::exit::{CommandError, ExitStatus};
use super::log_args::LogArgs;
use callgate::{durations, json};
use callgate_hooks::{Agent, Answer, HookEvent};

/// The longest event that is read.
const MAX_EVENT: u64 = 16 << 20;

/// Decide an event of a coding agent: the command that agents run as their hook; see `callgate install`.
///
/// Reads one event from stdin. Before a tool runs, its call is evaluated against the policies; afterwards its result is. Labels, facts, limits,
/// approvals and the user's messages are kept in the state store, by the agent's session. Whatever fails denies.
///
/// Exit status: 0 the agent reads its answer on stdout, 2 the event is blocked, with the reason on stderr.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate hook claude-code --policies ~/rules < event.json\n  \
    callgate hook codex --policies ~/rules --state file:$HOME/hooks.db --log audit:$HOME/hooks.jsonl")]
pub(super) struct HookArgs {
    /// The agent
    #[arg(value_enum)]
    agent: HookAgent,
    /// Rules files, or directories to search for them
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    policies: Vec<PathBuf>,
    /// The state store: `file:PATH`, created if missing, `postgres://…` or `rediss://…` [default: hooks.db in the user's state directory]
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// A JSON object, the context of every call; `agent`, `cwd`, `workspace` and `permission_mode` are set by the hook
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Deny what is not decided after this time. Shorter than the agent's own timeout, after which most agents run the tool
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = parse_timeout)]
    timeout: Duration,
    /// Decide in this process. Without it, a helper process keeps rules and state open between events, and ends after 15 minutes without one
    #[arg(long)]
    in_process: bool,
    /// Be the helper that listens here
    #[arg(long, value_name = "PATH", hide = true, conflicts_with = "in_process")]
    helper_socket: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
}

/// A coding agent with hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HookAgent {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Gemini CLI
    GeminiCli,
    /// Cursor
    Cursor,
    /// Cline
    Cline,
}

impl From<HookAgent> for Agent {
    fn from(agent: HookAgent) -> Self {
        match agent {
            HookAgent::ClaudeCode => Self::ClaudeCode,
            HookAgent::Codex => Self::Codex,
            HookAgent::GeminiCli => Self::GeminiCli,
            HookAgent::Cursor => Self::Cursor,
            HookAgent::Cline => Self::Cline,
        }
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let duration = durations::parse(text).filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "write a duration such as `20s` or `1m`".to_owned())
}

pub(super) fn hook(arguments: &HookArgs) -> Result<ExitStatus, CommandError> {
    #[cfg(unix)]
    if let Some(path) = &arguments.helper_socket {
        return helper::serve(&helper::HelperSocket::new(path.clone()), arguments);
    }
    let agent = Agent::from(arguments.agent);
    let output = Arc::new(Mutex::new(AnswerOutput::default()));
    start_watchdog(agent, arguments.timeout, Arc::clone(&output));
    let answer = catch_unwind(AssertUnwindSafe(|| match read_event(agent) {
        Ok((event, text)) => {
            lock(&output).event = Some(event.clone());
            let request = HookRequest::new(agent, event, AgentEnvironment::read(agent));
            answer(arguments, &request, &text)
        }
        Err(reason) => agent.refuse(&format!("Callgate can't use the event: {reason}")),
    }));
    let mut output = lock(&output);
    let answer = answer.unwrap_or_else(|_| output.failure(agent, "Callgate failed to decide this event"));
    let status = output.write(&answer);
    Ok(if status == 0 { ExitStatus::Success } else { ExitStatus::Error })
}

/// The answer to an event: the helper's, or this process's where no helper runs.
fn answer(arguments: &HookArgs, request: &HookRequest, text: &str) -> Answer {
    #[cfg(unix)]
    if !arguments.in_process
        && let Some(socket) = helper::HelperSocket::find()
    {
        match helper::ask(&socket, &request.environment, text) {
            HelperReply::Answer(answer) => return answer,
            HelperReply::NotRunning => helper::start(&socket),
            // To decide again could count the call twice.
            HelperReply::Lost(reason) => return undecided(request, &CommandError::Message(reason)),
        }
    }
    match new_runtime().and_then(|runtime| HookEngine::open(arguments, runtime)) {
        Ok(engine) => engine.answer(request),
        Err(error) => undecided(request, &error),
    }
}

/// Reads the event, with a limit of its size.
fn read_event(agent: Agent) -> Result<(HookEvent, String), String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(MAX_EVENT + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("stdin can't be read: {error}"))?;
    parse_event(agent, bytes)
}

fn parse_event(agent: Agent, bytes: Vec<u8>) -> Result<(HookEvent, String), String> {
    if bytes.len() as u64 > MAX_EVENT {
        return Err("it is longer than 16 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let event = json::parse(&text).map_err(|error| format!("it is invalid JSON: {error}"))?;
    let event = agent.read_event(&event).map_err(|error| error.to_string())?;
    Ok((event, text))
}

fn lock(output: &Mutex<AnswerOutput>) -> MutexGuard<'_, AnswerOutput> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Denies when the time is over, whatever the main thread waits for.
fn start_watchdog(agent: Agent, timeout: Duration, output: Arc<Mutex<AnswerOutput>>) {
    let watchdog = move || {
        std::thread::sleep(timeout);
        let mut output = lock(&output);
        if !output.is_written {
            let answer = output.failure(agent, "Callgate did not decide this event in time");
            let status = output.write(&answer);
            std::process::exit(i32::from(status));
        }
    };
    // Without the thread, a decision that hangs ends with the agent's timeout.
    let _ = std::thread::Builder::new().spawn(watchdog);
}

/// The output of the process: one answer.
#[derive(Default)]
struct AnswerOutput {
    is_written: bool,
    /// The event, once it is known.
    event: Option<HookEvent>,
}

impl AnswerOutput {
    /// The answer if no decision is made.
    fn failure(&self, agent: Agent, reason: &str) -> Answer {
        match &self.event {
            Some(event) => decision::failure(agent, event, reason),
            None => agent.refuse(reason),
        }
    }

    /// Writes an answer, and returns its exit status. An answer that can't be written blocks.
    fn write(&mut self, answer: &Answer) -> u8 {
        self.is_written = true;
        let mut stdout = std::io::stdout().lock();
        let written = match answer.stdout.as_str() {
            "" => Ok(()),
            text => writeln!(stdout, "{text}").and_then(|()| stdout.flush()),
        };
        if !answer.stderr.is_empty() {
            let _ = writeln!(std::io::stderr(), "{}", answer.stderr);
        }
        if written.is_ok() { answer.status } else { 2 }
    }
}
