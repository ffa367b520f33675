//! `callgate run`: puts recorded or piped calls through the engine and shows what becomes of each.

pub(super) mod lines;
mod player;
mod report;
mod row;
pub(super) mod sessions;
mod summary;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Format;
use super::exit::{Exit, Stop};
use super::files::{read_context, read_tools};
use super::output::{Output, complain, warn};
use super::progress::Progress;
use super::rules;
use super::state::{State, keys_given, runtime};
use crate::call::{CallRecord, Outcome, OutcomeKind, Reason, RecordError, reason_code};
use crate::engine::{Engine, EngineBuilder};
use crate::json::{Map, Value};
use crate::schema::ArgumentSchema;
use crate::tools::ToolDescriptor;
pub(super) use lines::Lines;
use report::Report;
use sessions::{Keeping, Sessions};

/// Put recorded or piped calls through the policies and show what becomes of each.
///
/// CALLS has one JSON object a line: {"tool": "…", "input": {…}}, and as needed "id", "server", "context", "session",
/// "round" and "recorded". "recorded": {"output": …} or {"error": "…"} plays the tool; without it the output is null and
/// the outcome is marked as dry. A call without id is named after its line (line_12).
///
/// Each line is decided as it arrives, also from a pipe that stays open. Calls of one session with the same "round" are
/// decided together: once a call of that session with another round or none arrives, at the end of the calls, or when
/// the round has 1000 calls. Outcomes come in the order of the lines, but for lines that wait for their round.
///
/// With --watch, changed rules decide the calls and rounds that begin after they were taken in. Rules that hold errors
/// are refused and the last good ones stay; so are, where the rules say `reload: { tests: require }`, those that have no
/// policy tests, or whose own fail. Where they say `reload: { widening: confirm }`, rules that may allow more wait until the run is
/// started anew.
///
/// Calls without "session" are one session. At most 10000 sessions are open at once; then the idlest is closed, and a
/// later call of it begins a new session that has seen nothing, or with --state takes it up again.
///
/// With --state, every call is noted before and after it runs, and what its session has seen is kept. A session that the state knows
/// already is refused, unless --resume says that it goes on: then the same calls can be given any number of times, and each runs
/// at most once. A call is known again by its session, id, tool, server and arguments; one with other arguments is a new one. Of
/// a call that began and never ended nobody knows whether it took effect: it is indeterminate, and not run again. Calls
/// without "session" are the session "default".
///
/// A line that is no call is an outcome, too: denied, with the code invalid_call. The rest goes on.
///
/// Exit status: 0 done (a denied call is a result, no failure), 1 the rules hold errors or an outcome is one of
/// --fail-on, 2 wrong usage, a line that is no call, or a file that can't be read.
#[derive(clap::Args)]
#[command(
    override_usage = "callgate run [OPTIONS] --policies <PATH>... <CALLS>",
    after_help = "Examples:\n  \
        callgate run --policies policies calls.jsonl\n  \
        callgate run --policies policies --tools tools.json --format json calls.jsonl > outcomes.jsonl\n  \
        callgate run --policies policies --fail-on denied,suspended calls.jsonl\n  \
        callgate run --policies policies --state file:state.db --resume calls.jsonl\n  \
        my-agent --log-calls | callgate run --policies policies -"
)]
pub(super) struct Run {
    /// Rules files, and directories to search for them
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    policies: Vec<PathBuf>,
    /// The tools behind the calls: a JSON list of {name, description?, input_schema?, annotations?, server?}, or the result
    /// of an MCP tools/list
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// A JSON object that is the context of every call; members of a call's own context stand before those of the same name
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// Take in rules that change while calls are read, for calls that come from a pipe. Each outcome names the revision that
    /// it was decided under; what becomes of changed rules is said on stderr
    #[arg(long)]
    watch: bool,
    /// Keep what becomes of each call in a state: `file:PATH`, made if it is not there, or `memory:`. Questions to people wait there
    /// for `callgate approvals`. The key that they are sealed with is in CALLGATE_KEYS, or else in the file PATH.key, which is made
    /// for its owner alone
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// Take sessions further that the state knows: calls that are settled are told again and not run, those that people have answered
    /// go on
    #[arg(long, requires = "state")]
    resume: bool,
    /// How outcomes are written: as a table for people, or as JSON Lines for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 if a call comes to one of these outcomes
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

pub(super) fn run(arguments: &Run, output: &mut Output) -> Result<Exit, Stop> {
    let which = "which calls? name a file of JSON Lines, or `-` for stdin: `callgate run --policies policies calls.jsonl`";
    let (policies, calls) = rules::and_calls(&arguments.policies, arguments.calls.as_deref(), which)?;
    let tools = arguments.tools.as_deref().map(read_tools).transpose()?.unwrap_or_default();
    let context = arguments.context.as_deref().map(read_context).transpose()?.unwrap_or_default();
    let chains = match rules::load(policies) {
        Ok(chains) => chains,
        Err(exit) => return Ok(exit),
    };
    warn_of_schemas(&tools);
    let mut lines = Lines::open(calls)?;
    let runtime = runtime()?;
    let state = arguments.state.as_deref().map(|url| State::open_or_new(url, &runtime)).transpose()?;
    let mut engine = Engine::builder(chains.clone()).tools(tools);
    let keeping = match (&state, arguments.resume) {
        (None, _) => Keeping::Nowhere,
        (Some(_), false) => Keeping::Anew,
        (Some(_), true) => Keeping::Resumed,
    };
    engine = match state {
        Some(State { store, keys, .. }) => engine.store(store).keys(keys),
        None => keys_given()?.into_iter().fold(engine, EngineBuilder::keys),
    };
    let engine = engine.build();
    let _watch = if arguments.watch { Some(super::watching::begin(&engine, policies)?) } else { None };
    let mut report = match arguments.format {
        Format::Json => Report::json(),
        Format::Text => Report::text(&chains, arguments.state.clone()),
    };
    let mut seen = Seen {
        fail_on: &arguments.fail_on,
        failing: false,
        progress: Progress::new("calls", output.width.is_none()),
    };
    let mut sessions = Sessions::new(engine.clone(), runtime, keeping);
    let mut unreadable_lines = false;
    let ended = loop {
        let line = match lines.next(|| report.catch_up(output)) {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            // What was read before it counts all the same.
            Err(stop @ Stop::Trouble(_)) => break Err(stop),
            Err(stop) => return Err(stop),
        };
        match line.text.and_then(|text| record(text, line.number, &context)) {
            Ok(mut record) => {
                if let Err(stop) = sessions.admit(&mut record) {
                    break Err(stop);
                }
                sessions.take(record, line.bytes, &mut |outcome| seen.show(&outcome, &mut report, output))?
            }
            Err(problem) => {
                unreadable_lines = true;
                let number = line.number;
                complain(format!("{}:{number}: {problem}", lines.name()));
                let outcome = no_call(number, &problem, engine.revision());
                seen.show(&outcome, &mut report, output)?;
            }
        }
    };
    sessions.end(&mut |outcome| seen.show(&outcome, &mut report, output))?;
    seen.progress.end();
    if ended.is_ok() || sessions.opened() > 0 {
        report.end(sessions.opened(), output)?;
    }
    ended?;
    Ok(match (unreadable_lines, seen.failing) {
        (true, _) => Exit::Trouble,
        (false, true) => Exit::Fails,
        (false, false) => Exit::Done,
    })
}

/// What all outcomes pass through.
struct Seen<'a> {
    fail_on: &'a [OutcomeKind],
    failing: bool,
    progress: Progress,
}

impl Seen<'_> {
    fn show(&mut self, outcome: &Outcome, report: &mut Report, output: &mut Output) -> Result<(), Stop> {
        self.failing |= self.fail_on.contains(&outcome.outcome);
        self.progress.step();
        report.show(outcome, output)
    }
}

/// The call of a line, in its context.
pub(super) fn record(text: &str, number: u64, context: &Map) -> Result<CallRecord, String> {
    let mut record = CallRecord::parse(text).map_err(|error| match error {
        RecordError::Json(error) => format!("not JSON: {} (column {})", error.kind, error.column),
        error => error.to_string(),
    })?;
    if record.call.id.is_empty() {
        record.call.id = line_id(number);
    }
    if !context.is_empty() {
        let mut merged = context.clone();
        if let Value::Object(own) = record.call.context {
            merged.extend(own);
        }
        record.call.context = merged.into();
    }
    Ok(record)
}

fn line_id(number: u64) -> String {
    format!("line_{number}")
}

/// The outcome of a line that is no call.
fn no_call(number: u64, problem: &str, revision: String) -> Outcome {
    let reason = Reason {
        policy: None,
        code: reason_code::INVALID_CALL.to_owned(),
        message: format!("line {number} is no call: {problem}"),
    };
    Outcome::new((&line_id(number), ""), OutcomeKind::Denied, Value::Null, reason, revision)
}

pub(super) fn warn_of_schemas(tools: &[ToolDescriptor]) {
    for tool in tools {
        if let Some(Err(error)) = tool.input_schema.as_ref().map(ArgumentSchema::compile) {
            warn(format!("the schema of the tool `{}` can't be used: {error}", tool.name));
        }
    }
}
