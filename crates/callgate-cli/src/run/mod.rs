//! `callgate run`: evaluates recorded or piped calls against the policies and prints the outcomes.

pub(super) mod call_lines;
pub(super) mod line_reader;
mod report;
pub(super) mod outcome_row;
pub(super) mod open_sessions;
mod summary;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::OutputFormat;
use super::async_runtime::new_runtime;
use super::candidate_args::CandidateArgs;
use super::exit::{CommandError, ExitStatus};
use super::log_args::LogArgs;
use super::observability::Observability;
use super::open_logs::OpenLogs;
use super::output::{Output, print_error, print_warning};
use super::progress::Progress;
use super::rules_args::{self, EvaluationArgs};
use super::start_time::{StartedClock, parse_time};
use call_lines::line_id;
pub(super) use call_lines::{CallLine, CallLines};
use callgate::argument_schema::ArgumentSchema;
use callgate::call::{Outcome, OutcomeKind, Reason, reason_code};
use callgate::engine::{Engine, EngineBuilder};
use callgate::json::Value;
use callgate::tools::ToolDescriptor;
use callgate_state::{OpenStateStore, keys_from_environment};
use jiff::Timestamp;
pub(super) use line_reader::JsonLinesReader;
use open_sessions::{OpenSessions, SessionPersistence};
use report::RunReport;

/// The name of the rules of a run among those of an observer.
const RUN_BUNDLE: &str = "main";

/// Evaluate recorded or piped calls against the policies and print the outcomes.
///
/// CALLS can also be a decision log with content (`--log FILE --log-content redacted`): each of its calls is evaluated again.
/// Otherwise it has one JSON object a line: {"tool": "…", "input": {…}}, and optionally "id", "server", "context", "session",
/// "round" and "recorded". "recorded": {"output": …} or {"error": "…"} replays the tool's result; without it the output is
/// null and the outcome is marked as dry. A call without an id is named after its line (line_12).
///
/// Each line is decided as it arrives, also from a pipe that stays open. Calls of one session with the same "round" are
/// decided together: when a call of that session with another round or none arrives, at the end of input, or when the
/// round has 1000 calls. Outcomes are in the order of the lines, except for lines that wait for their round.
///
/// With --watch, rules are reloaded when their files change (hot reload); new rules apply to calls and rounds that begin
/// afterwards. A reload with errors is rejected, and the last good rules stay active. If the rules say
/// `reload: { tests: require }`, the new rules must have policy tests, and pass them. If the rules say
/// `reload: { widening: confirm }`, new rules that may allow more are not applied until the run is restarted.
///
/// Calls without "session" are one session. At most 10000 sessions are open at once; then the one idle for longest is
/// closed, and a later call of it begins a new, empty session, or with --state resumes it.
///
/// With --state, every call is recorded before and after it runs, and the state of its session is persisted. A session that
/// is already in the state store is rejected, unless --resume is set: then the same calls can be given any number of times,
/// and each runs at most once (idempotent). A call is identified by its session, id, tool, server and arguments; one with
/// other arguments is a new call. A call that began and never completed is indeterminate, as it may have taken effect, and is
/// not run again. Calls without "session" belong to the session "default".
///
/// With --as-recorded, a recording is judged without changing its course: each call is evaluated and its outcome reported, but a
/// call that is stopped counts as having run with its recorded result. Later calls see the session as it was when it was
/// recorded: facts, labels, counts and limits; a halt stops no later call. Without it, a call that is stopped has not run.
///
/// An invalid line has an outcome, too: denied, with the code invalid_call. The run continues after it.
///
/// Exit status: 0 done (a denied call is a result, not a failure), 1 the rules have errors or an outcome is one of
/// --fail-on, 2 usage error, an invalid line, or a file can't be read.
#[derive(clap::Args)]
#[command(
    override_usage = "callgate run [OPTIONS] --policies <PATH>... <CALLS>",
    after_help = "Examples:\n  \
        callgate run --policies policies calls.jsonl\n  \
        callgate run --policies policies --tools tools.json --format json calls.jsonl > outcomes.jsonl\n  \
        callgate run --policies policies --fail-on denied,suspended calls.jsonl\n  \
        callgate run --policies policies --as-recorded session.jsonl\n  \
        callgate run --policies policies --state file:state.db --resume calls.jsonl\n  \
        my-agent --log-calls | callgate run --policies policies -"
)]
pub(super) struct RunArgs {
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// Reload rules when their files change, for calls from a pipe. Each outcome has the revision of the rules that decided it;
    /// reloads are reported on stderr
    #[arg(long)]
    watch: bool,
    /// Record calls and sessions in a state store: `file:PATH`, created if missing, `postgres://…`, `rediss://…`, or `memory:`. `callgate approvals` answers pending
    /// approvals there. Records are sealed with the keys in CALLGATE_KEYS, or else with the key file PATH.key, created with access for
    /// its owner only
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// Resume sessions of the state store: completed calls are not run again but return their recorded outcome; answered approvals are
    /// applied
    #[arg(long, requires = "state")]
    resume: bool,
    /// Keep the course of the recording: a call that is stopped counts as having run with its recorded result
    #[arg(long, conflicts_with = "state")]
    as_recorded: bool,
    /// Evaluate the calls as if the first one were made at this time, such as 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "state")]
    now: Option<Timestamp>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    candidate: CandidateArgs,
    /// Output format: a table, or JSON Lines for programs
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Exit with status 1 if a call has one of these outcomes
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',', value_parser = outcome_kind())]
    fail_on: Vec<OutcomeKind>,
    /// The calls, as JSON Lines; `-` for stdin
    #[arg(value_name = "CALLS")]
    calls: Option<PathBuf>,
}

fn outcome_kind() -> impl TypedValueParser<Value = OutcomeKind> {
    PossibleValuesParser::new(OutcomeKind::ALL.map(OutcomeKind::name)).try_map(|word| {
        OutcomeKind::ALL.into_iter().find(|kind| kind.name() == word).ok_or("no such outcome")
    })
}

pub(super) fn run(arguments: &RunArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let which = "no calls given; add a file of JSON Lines, or `-` for stdin: `callgate run --policies policies calls.jsonl`";
    let (policies, calls) = arguments.evaluation.split_rules_and_calls(arguments.calls.as_deref(), which)?;
    let context = arguments.evaluation.read_context()?;
    let compiled = match rules_args::load(policies) {
        Ok(compiled) => compiled,
        Err(exit) => return Ok(exit),
    };
    let candidate = match arguments.candidate.load() {
        Ok(candidate) => candidate,
        Err(exit) => return Ok(exit),
    };
    let tools = arguments.evaluation.read_tools(&compiled)?;
    warn_about_invalid_schemas(&tools);
    let mut lines = JsonLinesReader::open(calls)?;
    let runtime = new_runtime()?;
    let state =
        arguments.state.as_deref().map(|url| OpenStateStore::open_or_new(url, &runtime)).transpose()?;
    let mut engine = Engine::builder(compiled.clone()).tools(tools);
    if let Some(now) = arguments.now {
        engine = engine.clock(StartedClock::new(now));
    }
    let persistence = match (&state, arguments.resume) {
        (None, _) => SessionPersistence::Off,
        (Some(_), false) => SessionPersistence::NewSessions,
        (Some(_), true) => SessionPersistence::Resume,
    };
    let keys;
    (engine, keys) = match state {
        Some(OpenStateStore { store, keys, .. }) => (engine.store(store), Some(keys)),
        None => (engine, keys_from_environment()?),
    };
    let observability =
        Observability::new(OpenLogs::open(&arguments.log.settings()?, keys.as_ref())?, None, candidate);
    engine = observability.observe(keys.into_iter().fold(engine, EngineBuilder::keys), RUN_BUNDLE);
    let engine = engine.build();
    let _watchers = match arguments.watch {
        true => {
            (Some(super::reload_output::start_watcher(&engine, policies)?), observability.watch_candidate()?)
        }
        false => (None, None),
    };
    let mut report = match arguments.format {
        OutputFormat::Json => RunReport::json(),
        OutputFormat::Text => RunReport::text(&compiled, arguments.state.clone()),
    };
    let mut seen = OutcomeHandler {
        fail_on: &arguments.fail_on,
        has_failed: false,
        progress: Progress::new("calls", output.width.is_none()),
    };
    let sessions = OpenSessions::new(engine.clone(), runtime, persistence);
    let mut sessions = sessions.with_recorded_course(arguments.as_recorded);
    let mut unreadable_lines = false;
    let mut call_lines = CallLines::new(&context);
    let ended = loop {
        let line = match lines.next_line(|| report.flush(output)) {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            // Calls read before the error are still completed.
            Err(stop @ CommandError::Message(_)) => break Err(stop),
            Err(stop) => return Err(stop),
        };
        match line.text.and_then(|text| call_lines.read(text, line.number)) {
            Ok(None) => {}
            Ok(Some(mut call)) => {
                if let Err(stop) = sessions.prepare_session(&mut call.record) {
                    break Err(stop);
                }
                sessions
                    .add_call(call, line.bytes, &mut |outcome| seen.handle(&outcome, &mut report, output))?
            }
            Err(problem) => {
                unreadable_lines = true;
                let number = line.number;
                print_error(format!("{}:{number}: {problem}", lines.name()));
                let outcome = invalid_line_outcome(number, &problem, engine.revision());
                seen.handle(&outcome, &mut report, output)?;
            }
        }
    };
    sessions.finish(&mut |outcome| seen.handle(&outcome, &mut report, output))?;
    seen.progress.clear();
    observability.finish_candidate();
    if ended.is_ok() || sessions.opened_count() > 0 {
        report.finish(sessions.opened_count(), output)?;
    }
    ended?;
    Ok(match (unreadable_lines, seen.has_failed) {
        (true, _) => ExitStatus::Error,
        (false, true) => ExitStatus::Failure,
        (false, false) => ExitStatus::Success,
    })
}

/// Handles every outcome: `--fail-on`, progress and the report.
struct OutcomeHandler<'a> {
    fail_on: &'a [OutcomeKind],
    has_failed: bool,
    progress: Progress,
}

impl OutcomeHandler<'_> {
    fn handle(
        &mut self,
        outcome: &Outcome,
        report: &mut RunReport,
        output: &mut Output,
    ) -> Result<(), CommandError> {
        self.has_failed |= self.fail_on.contains(&outcome.outcome);
        self.progress.increment();
        report.add(outcome, output)
    }
}

/// The outcome of an invalid line.
fn invalid_line_outcome(number: u64, problem: &str, revision: String) -> Outcome {
    let reason = Reason {
        policy: None,
        code: reason_code::INVALID_CALL.to_owned(),
        message: format!("line {number} is not a valid call: {problem}"),
    };
    Outcome::new((&line_id(number), ""), OutcomeKind::Denied, Value::Null, reason, revision)
}

pub(super) fn warn_about_invalid_schemas(tools: &[ToolDescriptor]) {
    for tool in tools {
        if let Some(Err(error)) = tool.input_schema.as_ref().map(ArgumentSchema::compile) {
            print_warning(format!("the schema of the tool `{}` can't be used: {error}", tool.name));
        }
    }
}
