//! `callgate suggest`: drafts rules from recorded calls.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::json_inputs::read_tools;
use super::new_files::NewFiles;
use super::output::{BOLD, Output, print_note, print_warning, quote_shell_word};
use super::progress::Progress;
use super::recording_source::{RecordingSource, SourceItem};
use callgate::json;
use callgate::tools::ToolDescriptor;
use callgate_analysis::recording::RecordedCall;
use callgate_analysis::render::DraftReport;
use callgate_analysis::suggest::{DraftReplay, SessionNumbers, TrainingSplit, UsageProfile};

/// The number of lines that can't be read of which each is reported.
const MAX_REPORTED_LINES: u64 = 5;
/// The most sessions that can be required.
const MAX_SESSIONS: i64 = 1_000;

/// Draft least-privilege rules from recorded calls, for a person to review.
///
/// LOG is a decision log or an audit log with content (`--log-content redacted`), a file of calls as `callgate run` reads it, or a
/// message history of a provider. The draft permits the tools, arguments, values, principals and rates that are usual, and denies
/// everything else. What was seen in few sessions is not permitted: the draft lists it in comments, for a person to decide. Each rule
/// has what was seen as a comment, and tests with values that are made up.
///
/// The later sessions are held out, and show how many calls the draft would have stopped. Values that look personal or secret are
/// never written. Recordings are not trusted, but what an attacker did in many sessions looks usual: review the draft.
///
/// Exit status: 0 drafted, 2 usage error, a line or a file can't be read or written.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate suggest decisions.jsonl\n  \
    callgate suggest decisions.jsonl.1 decisions.jsonl --tools tools.json --output draft\n  \
    callgate suggest calls.jsonl --min-sessions 5 --hold-out 0.3 --output draft")]
pub(super) struct SuggestArgs {
    /// The known tools: a JSON array, or the result of an MCP tools/list. Others are not permitted
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// The directory to write rules.yaml, rules.test.yaml and tools.json to; existing files are never overwritten [default: the rules
    /// are printed]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The number of sessions that make something usual
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(i64).range(1..=MAX_SESSIONS))]
    min_sessions: i64,
    /// The part of the sessions, the latest ones, that the draft is not learned from, but tested on
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2, value_parser = parse_part)]
    hold_out: f64,
    /// Output format: text, or one JSON document with the rules, their tests and the report
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Recordings, the oldest first
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

fn parse_part(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|part| (0.0..1.0).contains(part))
        .ok_or_else(|| "a number from 0 and below 1 is expected, such as 0.2".to_owned())
}

pub(super) fn suggest(arguments: &SuggestArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    if arguments.logs.iter().any(|log| log == Path::new("-")) {
        return Err(CommandError::new(
            "recordings are read several times, which stdin can't be; write it to a file first",
        ));
    }
    let tools = arguments.tools.as_deref().map(read_tools).transpose()?;
    let files = arguments
        .output
        .as_deref()
        .map(|directory| NewFiles::new(directory, &["rules.yaml", "rules.test.yaml", "tools.json"]))
        .transpose()?;
    let mut recordings = Recordings::new(arguments);
    let split = recordings.split(arguments.hold_out)?;
    let required = usize::try_from(arguments.min_sessions).unwrap_or(usize::MAX);
    let mut usage = UsageProfile::new(required);
    recordings.for_each_call(|call, session| {
        if split.is_learned(session) {
            usage.add(call, session);
        }
        Ok(())
    })?;
    let draft = usage.draft(tools.as_deref());
    let mut replay = DraftReplay::new(&draft, tools.as_deref().unwrap_or_default(), split)
        .map_err(|error| CommandError::new(error.to_string()))?;
    recordings.for_each_call(|call, session| {
        replay.add(call, session);
        Ok(())
    })?;
    let (learned, held_out) = replay.finish();
    recordings.progress.clear();
    let report = DraftReport {
        draft: &draft,
        learned: &learned,
        held_out: &held_out,
        skipped: usage.skipped(),
        min_sessions: required,
    };
    let header: String = report.header().iter().map(|line| format!("# {line}\n")).collect();
    let rules = format!("{header}{}", draft.rules);
    let document = match arguments.format {
        OutputFormat::Json => {
            Some(report.json(&rules).map_err(|error| CommandError::new(error.to_string()))?)
        }
        OutputFormat::Text => None,
    };
    match (files, arguments.output.as_deref()) {
        (Some(files), Some(directory)) => {
            let tools = tools.map(|tools| tools_text(&tools)).transpose()?;
            let mut texts = vec![("rules.yaml", rules.as_str()), ("rules.test.yaml", draft.tests.as_str())];
            texts.extend(tools.as_deref().map(|tools| ("tools.json", tools)));
            let written = files.write(&texts)?;
            match &document {
                Some(document) => writeln!(output, "{document}")?,
                None => {
                    write!(output, "{}", report.text(output.colour))?;
                    write_next_steps(output, directory, &written)?;
                }
            }
        }
        _ if let Some(document) = &document => writeln!(output, "{document}")?,
        _ => {
            write!(output, "{rules}")?;
            output.flush()?;
            for line in report.text(false).lines().filter(|line| !line.is_empty()) {
                print_note(line);
            }
            print_note("the tests are written with `--output DIR`");
        }
    }
    Ok(if recordings.unreadable > 0 { ExitStatus::Error } else { ExitStatus::Success })
}

/// The recordings, which are read several times.
struct Recordings {
    source: RecordingSource,
    progress: Progress,
    unreadable: u64,
}

impl Recordings {
    fn new(arguments: &SuggestArgs) -> Self {
        Self {
            source: RecordingSource::new(arguments.logs.clone(), 1.0),
            progress: Progress::new("calls read", true),
            unreadable: 0,
        }
    }

    /// Reads all calls, and divides their sessions. Warns about what can't be read.
    fn split(&mut self, held_out: f64) -> Result<TrainingSplit, CommandError> {
        let mut numbers = SessionNumbers::default();
        let mut calls: u64 = 0;
        let mut lost: u64 = 0;
        let (progress, unreadable) = (&mut self.progress, &mut self.unreadable);
        self.source.for_each_batch(|batch| {
            for item in batch {
                match item {
                    SourceItem::Call(call) => {
                        progress.increment();
                        numbers.number(&call);
                        calls += 1;
                    }
                    SourceItem::EventsLost(count) => lost = lost.saturating_add(count),
                    SourceItem::Unreadable(problem) => {
                        *unreadable += 1;
                        if *unreadable <= MAX_REPORTED_LINES {
                            progress.clear();
                            print_warning(problem);
                        }
                    }
                    SourceItem::IncompleteEnd(problem) => {
                        progress.clear();
                        print_note(format!("the last line is incomplete: {problem}"));
                    }
                }
            }
            Ok(())
        })?;
        self.progress.clear();
        if self.unreadable > MAX_REPORTED_LINES {
            print_warning(format!("{} lines can't be read", self.unreadable));
        }
        if lost > 0 {
            print_warning(format!("the logs lost {lost} events: sessions and rates may be incomplete"));
        }
        match calls {
            0 => Err(CommandError::new(
                "the recordings contain no calls; record them with `--log FILE --log-content redacted`",
            )),
            _ => Ok(numbers.split(held_out)),
        }
    }

    /// Calls `handle` with each call and the number of its session.
    fn for_each_call(
        &mut self,
        mut handle: impl FnMut(&RecordedCall, u32) -> Result<(), String>,
    ) -> Result<(), CommandError> {
        let mut numbers = SessionNumbers::default();
        let progress = &mut self.progress;
        self.source.for_each_batch(|batch| {
            for item in batch {
                if let SourceItem::Call(call) = item {
                    progress.increment();
                    let session = numbers.number(&call);
                    handle(&call, session)?;
                }
            }
            Ok(())
        })
    }
}

fn tools_text(tools: &[ToolDescriptor]) -> Result<String, CommandError> {
    let text = json::to_string_pretty(tools).map_err(|error| CommandError::new(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn write_next_steps(output: &mut Output, directory: &Path, written: &[PathBuf]) -> Result<(), CommandError> {
    let names: Vec<String> = written.iter().map(|path| format!("`{}`", path.display())).collect();
    writeln!(output, "\nWritten: {}. Decide on the comments in the rules, then:", names.join(", "))?;
    let word = quote_shell_word(&directory.display().to_string());
    for command in [format!("callgate check {word}"), format!("callgate test {word}")] {
        let command = output.paint(BOLD, &command).into_owned();
        writeln!(output, "  {command}")?;
    }
    Ok(())
}
