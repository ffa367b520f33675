//! `callgate explain`: explains the decision on one call.

use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::OutputFormat;
use super::async_runtime::new_runtime;
use super::check;
use super::exit::{CommandError, ExitStatus};
use super::output::{Output, print_build_errors};
use super::rules_args::EvaluationArgs;
use super::run::line_reader::JsonLinesReader;
use super::run::open_sessions::{OpenSessions, SessionPersistence};
use super::run::{CallLine, CallLines, warn_about_invalid_schemas};
use super::start_time::{StartedClock, parse_time};
use callgate::diagnostic::{SourceMap, closest_match};
use callgate::engine::Engine;
use callgate::explain::{Explainer, Explanation, render};
use callgate::json::{self, Map, Value};
use callgate::policy;
use jiff::Timestamp;

/// Explain the decision on one call: which policies matched, which did not and because of which condition.
///
/// CALL is one call, {"tool": "…", "input": {…}}, in a file or as the argument itself, or a file with a session as JSON Lines, as for
/// `callgate run`. Of several calls the last one is explained. Those before it are evaluated first, with their recorded results, so that
/// limits, labels and facts are as they were. No tool is executed: "recorded": {"output": …} or {"error": "…"} supplies the result.
///
/// The explanation is redacted as the policies say.
///
/// Exit status: 0 explained, whatever the outcome of the call, 1 the rules have errors, 2 usage error, unknown policy or call, invalid
/// line, or a file can't be read.
#[derive(clap::Args)]
#[command(
    override_usage = "callgate explain [OPTIONS] --policies <PATH>... <CALL>",
    after_help = "Examples:\n  \
        callgate explain --policies policies call.json\n  \
        callgate explain --policies policies '{\"tool\": \"refund\", \"input\": {\"amount\": 250}}'\n  \
        callgate explain --policies policies --why-not large-refunds call.json\n  \
        callgate explain --policies policies --call c7 session.jsonl\n  \
        echo '{\"tool\": \"refund\", \"input\": {\"amount\": 250}}' | callgate explain --policies policies -"
)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    evaluation: EvaluationArgs,
    /// Explain only why this policy did not apply
    #[arg(long, value_name = "POLICY")]
    why_not: Option<String>,
    /// Explain the call with this id; if several have it, the last one
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Evaluate the calls at this time, such as 2026-03-01T12:00:00Z, instead of now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Timestamp>,
    /// Also show the policies for other tools and those that were not evaluated, each on its own line
    #[arg(long)]
    all: bool,
    /// Output format: text, or one JSON document for programs
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// A file with the call, or with several as JSON Lines; `-` for stdin; or the call itself
    #[arg(value_name = "CALL")]
    calls: Option<PathBuf>,
}

pub(super) fn explain(arguments: &ExplainArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let which = "no call given; add a file with the call, or `-` for stdin: `callgate explain --policies policies call.json`";
    let (policies, calls) = arguments.evaluation.split_rules_and_calls(arguments.calls.as_deref(), which)?;
    let context = arguments.evaluation.read_context()?;
    let mut built = policy::build(policies);
    let Some(compiled) = built.policies.take() else {
        print_build_errors(&built);
        return Ok(check::exit_status(&built.diagnostics));
    };
    if let Some(wanted) = &arguments.why_not {
        let known = compiled.policies().iter().map(|policy| policy.id.as_str());
        check_policy_exists(wanted, known.chain(compiled.disabled_ids().iter().map(String::as_str)))?;
    }
    let tools = arguments.evaluation.read_tools(&compiled)?;
    warn_about_invalid_schemas(&tools);
    let (calls, index) = select_calls(read_calls(calls, &context)?, arguments.call.as_deref(), calls)?;
    let compiled = Arc::new(compiled);
    let explanation = explain_call(calls, index, &built.sources, |explainer| {
        let engine = Engine::builder(compiled).tools(tools).listener(explainer);
        match arguments.now {
            Some(now) => engine.clock(StartedClock::new(now)).build(),
            None => engine.build(),
        }
    })?;
    write_explanation(&explanation, arguments, &built.sources, output)?;
    Ok(ExitStatus::Success)
}

/// Checks that a policy with this id exists.
///
/// # Errors
/// If it does not, with the closest match.
fn check_policy_exists<'k>(
    wanted: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Result<(), CommandError> {
    if known.clone().any(|id| id == wanted) {
        return Ok(());
    }
    Err(CommandError::new(match closest_match(wanted, known) {
        Some(near) => format!("there is no policy `{wanted}`; did you mean `{near}`?"),
        None => format!("there is no policy `{wanted}` below these paths"),
    }))
}

/// Reads the calls of a file: one call as a JSON document, or one call a line.
fn read_calls(path: &Path, context: &Map) -> Result<Vec<CallLine>, CommandError> {
    let (name, bytes) = read_input(path)?;
    let whole = std::str::from_utf8(&bytes).ok().map(|text| text.trim_start_matches('\u{feff}'));
    let document = whole.map(json::parse);
    match &document {
        Some(Ok(Value::Array(_))) => {
            return Err(CommandError::new(format!(
                "`{name}` is a JSON array; write one call as a JSON object, or several as JSON Lines, one object a line"
            )));
        }
        Some(Ok(_)) => {
            let call = CallLines::new(context).read(whole.unwrap_or_default(), 1);
            let no_call = || "it is an event of a log, and not the end of a call".to_owned();
            return call
                .and_then(|call| Ok(vec![call.ok_or_else(no_call)?]))
                .map_err(|problem| CommandError::new(format!("{name}: {problem}")));
        }
        Some(Err(_)) | None => {}
    }
    let mut lines = JsonLinesReader::new(name.clone(), Box::new(Cursor::new(bytes.clone())));
    let mut calls = Vec::new();
    let mut call_lines = CallLines::new(context);
    while let Some(line) = lines.next_line(|| Ok(()))? {
        let number = line.number;
        match line.text.and_then(|text| call_lines.read(text, number)) {
            Ok(call) => calls.extend(call),
            Err(problem) => {
                // For a document over several lines, the position in the whole document is reported.
                return Err(CommandError::new(match (&document, calls.is_empty()) {
                    (Some(Err(error)), true) if error.line > first_line_number(&bytes) => {
                        format!("{name}:{}:{}: invalid JSON: {}", error.line, error.column, error.kind)
                    }
                    _ => format!("{name}:{number}: {problem}"),
                }));
            }
        }
    }
    if calls.is_empty() {
        return Err(CommandError::new(format!("`{name}` contains no call")));
    }
    Ok(calls)
}

/// The number of the first line that is not blank.
fn first_line_number(bytes: &[u8]) -> usize {
    let blank =
        bytes.split(|byte| *byte == b'\n').take_while(|line| line.iter().all(u8::is_ascii_whitespace));
    blank.count() + 1
}

fn read_input(path: &Path) -> Result<(String, Vec<u8>), CommandError> {
    let unreadable =
        |error: io::Error| CommandError::new(format!("`{}` can't be read: {error}", path.display()));
    // The name of a file that exists is that file.
    let inline = path.to_str().filter(|text| text.trim_start().starts_with('{'));
    if let Some(text) = inline.filter(|_| !path.exists()) {
        return Ok(("the call".to_owned(), text.into()));
    }
    if path != Path::new("-") {
        return Ok((path.display().to_string(), fs::read(path).map_err(unreadable)?));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(("stdin".to_owned(), bytes))
}

/// Returns the calls up to the one to explain and the rest of its round, and that call's index.
fn select_calls(
    mut calls: Vec<CallLine>,
    wanted: Option<&str>,
    path: &Path,
) -> Result<(Vec<CallLine>, usize), CommandError> {
    let is_wanted = |line: &CallLine| wanted.is_none_or(|wanted| line.record.call.id == wanted);
    let Some(index) = calls.iter().rposition(is_wanted) else {
        let wanted = wanted.unwrap_or_default();
        let help = match closest_match(wanted, calls.iter().map(|line| line.record.call.id.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a call without an id is named after its line, as in `line_3`".to_owned(),
        };
        return Err(CommandError::new(format!("`{}` contains no call `{wanted}`; {help}", path.display())));
    };
    let mut end = index + 1;
    if let Some(target) = calls.get(index) {
        let later = calls.iter().enumerate().skip(index + 1);
        let of_session = later.filter(|(_, line)| line.record.session == target.record.session);
        let round = of_session.take_while(|(_, line)| line.continues_round_of(target));
        end = round.last().map_or(end, |(last, _)| last + 1);
    }
    calls.truncate(end);
    Ok((calls, index))
}

/// Evaluates the calls, and returns the explanation of the one at this index.
fn explain_call(
    calls: Vec<CallLine>,
    index: usize,
    sources: &SourceMap,
    engine: impl FnOnce(Arc<Explainer>) -> Engine,
) -> Result<Explanation, CommandError> {
    let lost = || CommandError::new("internal error: Callgate failed to explain this call");
    let target = &calls.get(index).ok_or_else(lost)?.record;
    let (id, session) = (target.call.id.clone(), target.session.clone());
    let alike = |line: &&CallLine| line.record.call.id == id && line.record.session == session;
    let number = calls.iter().take(index).filter(alike).count();
    let explainer = Arc::new(Explainer::new(sources).with_call_id(&id));
    let mut sessions =
        OpenSessions::new(engine(Arc::clone(&explainer)), new_runtime()?, SessionPersistence::Off);
    let mut seen = 0;
    let mut found = None;
    let mut inspect = |explained: Vec<Explanation>| {
        for explanation in explained.into_iter().filter(|explanation| explanation.call.session == session) {
            if seen == number {
                found = Some(explanation);
            }
            seen += 1;
        }
    };
    for call in calls {
        // The size is not counted: the calls are in memory already.
        sessions.add_call(call, 0, &mut |_| Ok(()))?;
        inspect(explainer.take_explanations());
    }
    sessions.finish(&mut |_| Ok(()))?;
    inspect(explainer.take_explanations());
    found.ok_or_else(lost)
}

fn write_explanation(
    explanation: &Explanation,
    arguments: &ExplainArgs,
    sources: &SourceMap,
    output: &mut Output,
) -> Result<(), CommandError> {
    let failed = |error: json::Error| CommandError::new(error.to_string());
    let why_not = arguments.why_not.as_deref().and_then(|policy| explanation.why_not(policy));
    match (arguments.format, why_not) {
        (OutputFormat::Json, Some(why_not)) => {
            writeln!(output, "{}", render::json(&why_not).map_err(failed)?)?
        }
        (OutputFormat::Json, None) => writeln!(output, "{}", render::json(explanation).map_err(failed)?)?,
        (OutputFormat::Text, Some(why_not)) => {
            write!(output, "{}", render::why_not(&why_not, Some(sources), output.colour))?;
        }
        (OutputFormat::Text, None) => {
            write!(output, "{}", render::text(explanation, Some(sources), output.colour, arguments.all))?;
        }
    }
    Ok(())
}
