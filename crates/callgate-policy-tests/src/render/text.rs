//! Renders a report as text: the failed cases, each with the expected and actual values and the preceding calls.

use std::fmt::Write as _;

use super::diff::{self, DiffLine, DiffSide};
use crate::report::{CallReport, CaseReport, Failure, FileReport, SuiteReport};
use callgate::json::Value;
use callgate::safe_text::is_hidden;

/// The maximum length of a displayed value, in characters.
const MAX_VALUE: usize = 400;
/// The maximum length of a line about a preceding call, in characters.
const MAX_CALL_LINE: usize = 160;

/// The maximum number of calls shown before a failure, including its own.
const MAX_PRECEDING_CALLS: usize = 10;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// Renders one line for each file, with its failed cases below it. `colour`: with ANSI escapes, which never come from a value.
pub fn text(report: &SuiteReport, colour: bool) -> String {
    let mut page = ReportWriter { text: String::new(), colour };
    report.files.iter().for_each(|file| page.file(file));
    page.text
}

/// The failures of one case and the preceding calls, without the case's name.
pub(super) fn case_text(case: &CaseReport) -> String {
    let mut page = ReportWriter { text: String::new(), colour: false };
    page.failures_and_calls(case);
    let lines = page.text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The summary line: `12 cases in 2 files: 11 passed, 1 failed`.
pub fn summary(report: &SuiteReport) -> String {
    let amount = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let failed = report.cases().filter(|case| !case.passed).count();
    let all = report.cases().count();
    let counts = match failed {
        0 => "all passed".to_owned(),
        failed => format!("{} passed, {failed} failed", all - failed),
    };
    format!("{} in {}: {counts}", amount(all, "case"), amount(report.files.len(), "file"))
}

struct ReportWriter {
    text: String,
    colour: bool,
}

impl ReportWriter {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn file(&mut self, file: &FileReport) {
        let failed: Vec<&CaseReport> = file.cases.iter().filter(|case| !case.passed).collect();
        let passed = file.cases.len() - failed.len();
        let mark = if failed.is_empty() { self.paint(GREEN, "✓") } else { self.paint(RED, "✗") };
        let name = escape_invisible(&file.file);
        let count = self.paint(DIM, &format!("{passed} of {} passed", file.cases.len()));
        self.line(0, &format!("{mark} {name}  {count}"));
        for case in &failed {
            self.case(case);
        }
        if !failed.is_empty() {
            self.line(0, "");
        }
    }

    fn case(&mut self, case: &CaseReport) {
        let name = self.paint(BOLD, &escape_invisible(&case.full_name()));
        let mark = self.paint(RED, "✗");
        self.line(0, "");
        self.line(2, &format!("{mark} {name}"));
        self.failures_and_calls(case);
    }

    fn failures_and_calls(&mut self, case: &CaseReport) {
        for failure in &case.failures {
            self.failure(failure, case);
        }
        // The calls up to the last one that failed.
        let whole = case.failures.iter().any(|failure| failure.call.is_none());
        let last = case.failures.iter().filter_map(|failure| failure.call).max().filter(|_| !whole);
        let last = last.unwrap_or(case.calls.len());
        let left_out = last.saturating_sub(MAX_PRECEDING_CALLS);
        if left_out > 0 {
            let line = self.paint(DIM, &format!("… {left_out} earlier calls"));
            self.line(4, &line);
        }
        for (number, call) in (1..=last).zip(&case.calls).skip(left_out) {
            let line = format!("call {number}, {}", call_summary(call));
            let line = self.paint(DIM, &line);
            self.line(4, &line);
        }
    }

    fn failure(&mut self, failure: &Failure, case: &CaseReport) {
        let location = &failure.place;
        let location = format!("{}:{}:{}", escape_invisible(&location.file), location.line, location.column);
        let call = failure.call.and_then(|number| Some((number, case.calls.get(number.checked_sub(1)?)?)));
        let subject = match call {
            Some((number, call)) => format!("`{}` of call {number}, {}", failure.field, call_label(call)),
            None => failure.note.as_deref().map_or_else(String::new, escape_invisible),
        };
        self.line(4, &format!("{}: {subject}", self.paint(CYAN, &location)));
        if call.is_none() {
            return;
        }
        if failure.differences.is_empty() {
            let (expected, actual) = diff::truncate_pair(&expected_text(failure), &actual_text(failure));
            let (expected, actual) = (
                self.paint(GREEN, &escape_invisible(&expected)),
                self.paint(RED, &escape_invisible(&actual)),
            );
            self.line(6, &format!("expected: {expected}"));
            self.line(6, &format!("actual:   {actual}"));
        } else {
            let legend = format!("{}  {}", self.paint(GREEN, "- expected"), self.paint(RED, "+ actual"));
            self.line(6, &legend);
            diff::diff(&failure.expected, &failure.actual).iter().for_each(|line| self.diff_line(line));
        }
        if let Some(note) = &failure.note {
            self.line(6, &truncated_value(note));
        }
    }

    fn diff_line(&mut self, line: &DiffLine) {
        let indent = line.indent;
        let text = format!("{:indent$}{}", "", escape_invisible(&line.text));
        let text = match line.side {
            DiffSide::Both => format!("  {text}"),
            DiffSide::Expected => self.paint(GREEN, &format!("- {text}")),
            DiffSide::Actual => self.paint(RED, &format!("+ {text}")),
            DiffSide::Note => self.paint(DIM, &format!("  {text}")),
        };
        self.line(6, &text);
    }
}

/// The expected and the actual value, each on one line.
pub(super) fn expected_and_actual(failure: &Failure) -> (String, String) {
    let (expected, actual) = match failure.differences.first() {
        Some(_) => (diff::format_short(&failure.expected), diff::format_short(&failure.actual)),
        None => diff::truncate_pair(&expected_text(failure), &actual_text(failure)),
    };
    (escape_invisible(&expected), escape_invisible(&actual))
}

fn expected_text(failure: &Failure) -> String {
    let named = |verb: &str| format!("{} {verb}", plain_text(&failure.expected));
    match (failure.field.as_str(), &failure.expected) {
        ("policies", _) => named("takes part"),
        ("not_policies", _) => named("takes no part"),
        ("message" | "question" | "error" | "ignored", Value::Object(tests)) => {
            let tests = tests.iter().map(|(test, text)| format!("a string that {test} {text}"));
            tests.collect::<Vec<_>>().join(", ")
        }
        _ => plain_text(&failure.expected),
    }
}

fn actual_text(failure: &Failure) -> String {
    match (failure.field.as_str(), &failure.actual) {
        ("policies" | "not_policies", Value::Array(ids)) if ids.is_empty() => {
            "no policy took part".to_owned()
        }
        ("policies" | "not_policies", Value::Array(ids)) => {
            format!("{} took part", ids.iter().map(plain_text).collect::<Vec<_>>().join(", "))
        }
        (_, Value::Null) => "nothing".to_owned(),
        _ => plain_text(&failure.actual),
    }
}

/// The call's tool, and the answer to its approval request.
fn call_label(call: &CallReport) -> String {
    let reply_note = call.reply.as_ref().map_or_else(String::new, |reply| {
        let action = match reply.said.as_str() {
            "approve" => "approved",
            "deny" => "denied",
            "edit" => "approved with changes",
            "answer" => "answered",
            "cancel" => "cancelled",
            _ => "resumed",
        };
        let by = reply.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        let counts = if reply.ignored.is_some() { ", which does not count" } else { "" };
        format!(" ({action}{by}{counts})")
    });
    escape_invisible(&format!("{}{reply_note}", call.tool))
}

/// A call's outcome and reason, on one line.
fn call_summary(call: &CallReport) -> String {
    let by = call.policy.as_ref().map_or_else(String::new, |policy| format!(" by {policy}"));
    let line = format!("{}: {}{by} ({}): {}", call_label(call), call.outcome, call.code, call.message);
    truncate(&line, MAX_CALL_LINE)
}

/// A string without quotes, or any other value as JSON.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The string on one line, with control characters escaped, truncated if very long.
fn truncated_value(text: &str) -> String {
    truncate(text, MAX_VALUE)
}

fn truncate(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", escape_invisible(text.get(..end).unwrap_or_default())),
        None => escape_invisible(text),
    }
}

/// The string on one line, with control characters escaped.
pub(crate) fn escape_invisible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        if c.is_control() || is_hidden(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
        line
    })
}
