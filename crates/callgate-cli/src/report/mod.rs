//! `callgate report`: what decision logs say of calls and policies, those in shadow mode above all.

mod html;
mod log_summary;
mod page_style;
mod plot;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::Timestamp;

use super::exit::{CommandError, ExitStatus};
use super::output::{Output, print_note, print_warning};
use super::progress::Progress;
use super::rules_args;
use super::run::JsonLinesReader;
use callgate::durations;
use callgate::json;
use callgate::policy::Mode;
use callgate_log::LogEntry;
use log_summary::{LogSummary, UnusedPolicy};

/// The number of lines that can't be read of which each is reported.
const MAX_REPORTED_LINES: u64 = 5;

/// Summarize decision logs: what policies in shadow mode would have stopped, what was denied, which policies never took part.
///
/// For each policy in shadow mode: how many calls it would have stopped, of whom and of which tools, with examples. A log with content
/// (`--log-content redacted`) shows the arguments of the examples. With --policies, policies of these rules that took part in no call
/// are listed.
///
/// Lines that can't be read are reported, and the rest is summarized.
///
/// Exit status: 0 done, 1 the rules have errors, 2 usage error, a line or a file can't be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    callgate report decisions.jsonl\n  \
    callgate report --policies my-rules --since 7d decisions.jsonl.1 decisions.jsonl\n  \
    callgate report --format html decisions.jsonl > report.html")]
pub(super) struct ReportArgs {
    /// Also list the policies of these rules that took part in no call
    #[arg(long, value_name = "PATH", num_args = 1)]
    policies: Vec<PathBuf>,
    /// Only events from this time on: RFC 3339, or a duration before now such as `7d`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Timestamp>,
    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Decision logs, the oldest first; `-` for stdin
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Human-readable text
    Text,
    /// JSON for programs, stable
    Json,
    /// A page with plots, in one file
    Html,
}

/// Reads a time, or a duration before now.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let ago = durations::parse(text)
        .ok_or_else(|| "write a time such as 2026-11-20T08:00:00Z, or a duration such as 7d".to_owned())?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

pub(super) fn report(arguments: &ReportArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let known = match arguments.policies.as_slice() {
        [] => None,
        paths => match rules_args::load(paths) {
            Ok(rules) => Some(rules),
            Err(exit) => return Ok(exit),
        },
    };
    let mut summary = LogSummary::default();
    let mut progress = Progress::new("lines", true);
    let mut unreadable = 0;
    for path in &arguments.logs {
        let mut lines = JsonLinesReader::open(path)?;
        let mut incomplete: Option<String> = None;
        while let Some(line) = lines.next_line(|| Ok(()))? {
            progress.increment();
            let entry = line.text.and_then(|text| LogEntry::parse(text).map_err(|error| error.to_string()));
            match entry {
                Ok(entry) => {
                    // A line that a crash cut short is announced by the next one, and no error.
                    let is_announced = entry.members.contains_key("incomplete_line_before");
                    if let Some(problem) = incomplete.take().filter(|_| !is_announced) {
                        progress.clear();
                        report_line(&problem, &mut unreadable);
                    }
                    if arguments.since.is_none_or(|since| entry.time >= since)
                        && arguments.until.is_none_or(|until| entry.time < until)
                    {
                        summary.add(&entry);
                    }
                }
                Err(problem) => {
                    let problem = format!("{}:{}: {problem}", path.display(), line.number);
                    if let Some(earlier) = incomplete.replace(problem) {
                        report_line(&earlier, &mut unreadable);
                    }
                }
            }
        }
        // The end of a log that is being written.
        if let Some(problem) = incomplete {
            progress.clear();
            print_note(format!("the last line is incomplete: {problem}"));
        }
    }
    progress.clear();
    if unreadable > MAX_REPORTED_LINES {
        print_warning(format!("{unreadable} lines can't be read"));
    }
    if summary.has_further_policies {
        print_warning("the logs name more policies than are counted, so unused ones are not listed");
    } else if let Some(rules) = &known {
        let took_part: BTreeSet<&str> = summary.policies.keys().map(String::as_str).collect();
        let unused = rules
            .policies()
            .iter()
            .filter(|policy| policy.mode != Mode::Off && !took_part.contains(policy.id.as_str()));
        summary.unused = Some(
            unused
                .map(|policy| UnusedPolicy {
                    id: policy.id.clone(),
                    kind: policy.kind.definition().name,
                    shadow: policy.mode == Mode::Shadow,
                })
                .collect(),
        );
    }
    match arguments.format {
        ReportFormat::Text => text::write(&summary, output)?,
        ReportFormat::Json => {
            use std::io::Write as _;
            writeln!(output, "{:#}", json::to_value(summary.document()).unwrap_or_default())?;
        }
        ReportFormat::Html => html::write(&summary, output)?,
    }
    Ok(if unreadable > 0 { ExitStatus::Error } else { ExitStatus::Success })
}

fn report_line(problem: &str, unreadable: &mut u64) {
    *unreadable += 1;
    if *unreadable <= MAX_REPORTED_LINES {
        print_warning(problem);
    }
}
