//! `callgate backtest`: which recorded calls the rules would decide otherwise.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use clap::ValueEnum;
use jiff::Timestamp;

use super::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::json_inputs::read_tools;
use super::output::{Output, group_digits, print_note, print_warning};
use super::progress::Progress;
use super::recording_source::{RecordingSource, SourceItem};
use super::report::parse_time;
use super::rules_args;
use super::run::warn_about_invalid_schemas;
use callgate::policy::CompiledPolicies;
use callgate_analysis::backtest::{BacktestReport, Replay};
use callgate_analysis::recording::{CallDecision, RecordedCall, RecordedDecision, RoundAssembler};
use callgate_analysis::render;

/// The number of lines that can't be read of which each is reported.
const MAX_REPORTED_LINES: u64 = 5;

/// Evaluate recorded calls again, and report every decision that the rules would change, grouped by cause.
///
/// LOG is a decision log with content (`--log FILE --log-content redacted`), or a file of calls as `callgate run` reads it, with
/// recorded results. Calls are replayed in order, at the time at which they were decided, and keep the course of the recording: a call
/// that ran counts as having run with its recorded result, whatever the rules decide now. So labels, facts, limits and budgets are as
/// they were. Approvals that were given count as given. No tool is executed.
///
/// The decisions are compared with the recorded ones, or with those of other rules: --against.
///
/// Exit status: 0 compared, 1 changes that --fail-on names, or the rules have errors, 2 usage error, a line or a file can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate backtest --policies policies decisions.jsonl\n  \
    callgate backtest --policies policies --since 7d --fail-on looser decisions.jsonl.1 decisions.jsonl\n  \
    callgate backtest --policies policies --against main/policies calls.jsonl")]
pub(super) struct BacktestArgs {
    /// The rules to evaluate the calls with: rules files, or directories to search for them. Repeatable
    #[arg(long, value_name = "PATH", required = true, num_args = 1)]
    policies: Vec<PathBuf>,
    /// Compare with the decisions of these rules in place of the recorded ones. Repeatable
    #[arg(long, value_name = "PATH", num_args = 1)]
    against: Vec<PathBuf>,
    /// The tool descriptors: a JSON array, or the result of an MCP tools/list [default: the tools that the rules declare]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Only compare calls from this time on: RFC 3339, or a duration before now such as `7d`. Earlier calls are replayed, because later
    /// ones may depend on them
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Replay only this part of the sessions, such as `0.1`, chosen by their names. Limits across sessions then count less
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction, default_value_t = 1.0)]
    sample: f64,
    /// The changes for which the exit status is 1
    #[arg(long, value_enum)]
    fail_on: Option<FailingChanges>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Decision logs with content, or files of calls, the oldest first; `-` for stdin
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

/// Changes for which the exit status is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailingChanges {
    /// Calls that are treated less strictly
    Looser,
    /// All changed calls
    Any,
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|fraction| *fraction > 0.0 && *fraction <= 1.0)
        .ok_or_else(|| "a number above 0 and up to 1 is expected, such as 0.1".to_owned())
}

pub(super) fn backtest(arguments: &BacktestArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let rules = match rules_args::load(&arguments.policies) {
        Ok(rules) => rules,
        Err(exit) => return Ok(exit),
    };
    let old_rules = match &*arguments.against {
        [] => None,
        paths => match rules_args::load(paths) {
            Ok(rules) => Some(rules),
            Err(exit) => return Ok(exit),
        },
    };
    let mut backtest = Backtest::new(arguments, &rules, old_rules.as_ref())?;
    let ended = backtest.read_all(arguments);
    backtest.progress.clear();
    ended?;
    backtest.report.finish();
    backtest.print_notes();
    match arguments.format {
        OutputFormat::Text => write!(output, "{}", render::backtest_text(&backtest.report, output.colour))?,
        OutputFormat::Json => {
            let document = render::backtest_json(&backtest.report)
                .map_err(|error| CommandError::new(error.to_string()))?;
            writeln!(output, "{document}")?;
        }
    }
    let fails = match arguments.fail_on {
        Some(FailingChanges::Looser) => backtest.report.has_looser_calls(),
        Some(FailingChanges::Any) => backtest.report.has_changes(),
        None => false,
    };
    Ok(match (backtest.unreadable > 0, fails) {
        (true, _) => ExitStatus::Error,
        (false, true) => ExitStatus::Failure,
        (false, false) => ExitStatus::Success,
    })
}

/// A running backtest.
struct Backtest {
    new: Replay,
    /// The rules to compare with, if those are not the recorded ones.
    old: Option<Replay>,
    rounds: RoundAssembler,
    report: BacktestReport,
    since: Option<Timestamp>,
    progress: Progress,
    unreadable: u64,
    lost_events: u64,
}

impl Backtest {
    fn new(
        arguments: &BacktestArgs,
        rules: &Arc<CompiledPolicies>,
        old_rules: Option<&Arc<CompiledPolicies>>,
    ) -> Result<Self, CommandError> {
        let given = arguments.tools.as_deref().map(read_tools).transpose()?;
        let start = Timestamp::now();
        let replay = |rules: &Arc<CompiledPolicies>| {
            let tools = given.as_deref().unwrap_or_else(|| rules.tools());
            warn_about_invalid_schemas(tools);
            Replay::new(Arc::clone(rules), tools, start)
        };
        Ok(Self {
            new: replay(rules),
            old: old_rules.map(replay),
            rounds: RoundAssembler::default(),
            report: BacktestReport::default(),
            since: arguments.since,
            progress: Progress::new("calls", true),
            unreadable: 0,
            lost_events: 0,
        })
    }

    /// Reads and replays all calls.
    fn read_all(&mut self, arguments: &BacktestArgs) -> Result<(), CommandError> {
        let source = RecordingSource::new(arguments.logs.clone(), arguments.sample);
        source.for_each_batch(|batch| self.add_batch(batch))?;
        let rest = self.rounds.finish();
        self.replay(&rest).map_err(CommandError::new)
    }

    fn add_batch(&mut self, batch: Vec<SourceItem>) -> Result<(), String> {
        let mut rounds = Vec::with_capacity(batch.len());
        for item in batch {
            match item {
                SourceItem::Call(call) => rounds.extend(self.rounds.add(*call)),
                SourceItem::EventsLost(count) => self.lost_events = self.lost_events.saturating_add(count),
                SourceItem::Unreadable(problem) => {
                    self.unreadable += 1;
                    if self.unreadable <= MAX_REPORTED_LINES {
                        self.progress.clear();
                        print_warning(problem);
                    }
                }
                SourceItem::IncompleteEnd(problem) => {
                    self.progress.clear();
                    print_note(format!("the last line is incomplete: {problem}"));
                }
            }
        }
        self.replay(&rounds)
    }

    /// Replays rounds under all rules, each on a thread of its own.
    fn replay(&mut self, rounds: &[Vec<RecordedCall>]) -> Result<(), String> {
        let compares_rules = self.old.is_some();
        let (replayed, skipped): (Vec<&Vec<RecordedCall>>, Vec<_>) =
            rounds.iter().partition(|round| compares_rules || !is_irreproducible(round));
        let since = self.since;
        let is_compared =
            |call: &RecordedCall| since.is_none_or(|since| call.time.is_none_or(|time| time >= since));
        for call in skipped.into_iter().flatten().filter(|call| is_compared(call)) {
            self.report.add_incomparable(call);
        }
        let decide = |replay: &mut Replay| -> Vec<Vec<CallDecision>> {
            replayed.iter().map(|round| replay.decide(round)).collect()
        };
        let (new, old) = (&mut self.new, self.old.as_mut());
        let (after, before) = thread::scope(|scope| {
            let old = old.map(|old| scope.spawn(|| decide(old)));
            let after = decide(new);
            (after, old.map(ScopedJoinHandle::join))
        });
        let before = before
            .transpose()
            .map_err(|_| "the calls could not be evaluated with the rules of `--against`")?;
        let mut before = before.unwrap_or_default().into_iter();
        for (round, after) in replayed.iter().zip(after) {
            let mut before = before.next().unwrap_or_default().into_iter();
            for (call, after) in round.iter().zip(after) {
                self.progress.increment();
                let before = before.next();
                match before {
                    _ if !is_compared(call) => {}
                    Some(before) => self.report.add_pair(call, &before, after),
                    None => self.report.add(call, after),
                }
            }
        }
        Ok(())
    }

    fn print_notes(&self) {
        if self.unreadable > MAX_REPORTED_LINES {
            print_warning(format!("{} lines can't be read", self.unreadable));
        }
        if self.lost_events > 0 {
            print_warning(format!(
                "the logs lost {} events: sessions and limits may differ from the recorded ones",
                self.lost_events
            ));
        }
        let closed = self.new.closed_sessions();
        if closed > 0 {
            print_note(format!(
                "{} sessions were closed because too many were open; a later call of one began a new, empty session",
                group_digits(usize::try_from(closed).unwrap_or(usize::MAX))
            ));
        }
    }
}

/// Whether no call of a round can be compared, nor changes anything.
fn is_irreproducible(round: &[RecordedCall]) -> bool {
    round.iter().all(|call| matches!(call.decision, RecordedDecision::NotReproducible(_)) && !call.has_run())
}
