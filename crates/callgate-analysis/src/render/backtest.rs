//! Renders a backtest: the changed calls by cause, then a summary; or a JSON document.

use std::fmt::Write as _;

use serde::Serialize;

use super::text::{BOLD, DIM, GREEN, PLAIN, RED, YELLOW, escape_line};
use crate::backtest::{BACKTEST_REPORT_VERSION, BacktestReport, ChangedCallExample, ChangedCalls};
use crate::recording::{CallDecision, DecisionDirection};
use callgate::Effect;
use callgate::reason_code;

/// The most principals of a cause that are named.
const MAX_PRINCIPALS: usize = 5;

/// Renders the changes, the looser ones first, and a summary. `colour`: with ANSI escapes, which never come from a value.
pub fn backtest_text(report: &BacktestReport, colour: bool) -> String {
    let mut page = BacktestWriter { text: String::new(), colour };
    report.changes.iter().for_each(|change| page.change(change));
    page.summary(report);
    page.text
}

/// Renders the stable JSON document; `schemas/backtest.schema.json` describes it.
///
/// # Errors
/// Returns an error if serialization fails, which strings and numbers do not cause.
pub fn backtest_json(report: &BacktestReport) -> callgate::json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        version: u32,
        #[serde(flatten)]
        report: &'a BacktestReport,
    }
    callgate::json::to_string_pretty(&Document { version: BACKTEST_REPORT_VERSION, report })
}

struct BacktestWriter {
    text: String,
    colour: bool,
}

impl BacktestWriter {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn change(&mut self, change: &ChangedCalls) {
        let (mark, style) = match change.direction {
            DecisionDirection::Looser => ("✗ looser", RED),
            DecisionDirection::Different => ("± different", YELLOW),
            DecisionDirection::Stricter => ("✓ stricter", GREEN),
        };
        let tool = match &change.server {
            Some(server) => format!("{} of {}", escape_line(&change.tool), escape_line(server)),
            None => escape_line(&change.tool),
        };
        let head = format!(
            "{}  {}  {}",
            self.paint(style, mark),
            self.paint(BOLD, &tool),
            count(change.calls, "call", "calls")
        );
        self.line(0, &head);
        self.line(4, &format!("before: {}", phrase(&change.before)));
        self.line(4, &format!("after:  {}", phrase(&change.after)));
        if !change.principals.is_empty() {
            self.line(4, &format!("principals: {}", principals(change)));
        }
        if change.redacted > 0 {
            self.line(4, &format!("redacted: {}; the change may be due to that alone", of_calls(change)));
        }
        for example in &change.examples {
            let example = self.paint(DIM, &location(example));
            self.line(4, &example);
        }
        self.line(0, "");
    }

    fn summary(&mut self, report: &BacktestReport) {
        let summary = &report.summary;
        let counts = [
            (summary.looser, "looser"),
            (summary.different, "different"),
            (summary.stricter, "stricter"),
            (summary.unchanged, "unchanged"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        let separator = if counts.is_empty() { "" } else { ": " };
        let text =
            format!("{} compared{separator}{}", count(summary.compared, "call", "calls"), counts.join(", "));
        let text = self.paint(if report.has_looser_calls() { RED } else { GREEN }, &text);
        self.line(0, &text);
        if summary.unlisted > 0 {
            self.line(
                0,
                &format!(
                    "{} have other causes than the listed ones",
                    count(summary.unlisted, "changed call", "changed calls")
                ),
            );
        }
        if summary.other_policy > 0 {
            self.line(
                0,
                &format!(
                    "{} decided as before by another policy",
                    count(summary.other_policy, "call is", "calls are")
                ),
            );
        }
        if summary.redacted > 0 {
            self.line(
                0,
                &format!(
                    "{} redacted values: what policies read there is not known",
                    count(summary.redacted, "compared call has", "compared calls have")
                ),
            );
        }
        for (code, number) in &summary.not_compared {
            let why = match code.as_str() {
                "unknown" => "neither an outcome nor a result is recorded".to_owned(),
                code => {
                    format!("the recorded outcome depended on more than the rules: {}", escape_line(code))
                }
            };
            self.line(0, &format!("{} not compared: {why}", count(*number, "call is", "calls are")));
        }
    }
}

/// The decision in words.
fn phrase(decision: &CallDecision) -> String {
    let undecided = match decision.code == reason_code::UNDECIDED {
        true => "; its condition cannot be evaluated",
        false => "",
    };
    let policy = decision.policy.as_deref().map(|policy| format!("`{}`", escape_line(policy)));
    let by = |effect: &str| match &policy {
        Some(policy) => format!("{effect} by {policy}{undecided}"),
        None => format!("{effect} [{}]", escape_line(&decision.code)),
    };
    match (decision.effect, &policy) {
        (Effect::Run, _) => "runs".to_owned(),
        (Effect::Answer, _) => by("answered"),
        (Effect::Suspend, Some(policy)) => format!("{policy} requires approval{undecided}"),
        (Effect::Suspend, None) => format!("requires approval [{}]", escape_line(&decision.code)),
        (Effect::Invalid, _) => by("rejected"),
        (Effect::Deny, _) => by("denied"),
        (Effect::Halt, _) => by("halted"),
    }
}

fn principals(change: &ChangedCalls) -> String {
    let mut counts: Vec<_> = change.principals.iter().collect();
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let more = counts.len().saturating_sub(MAX_PRINCIPALS);
    counts.truncate(MAX_PRINCIPALS);
    let mut names: Vec<String> =
        counts.iter().map(|(name, number)| format!("{} ({number})", escape_line(name))).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn of_calls(change: &ChangedCalls) -> String {
    match change.redacted == change.calls {
        true => "all".to_owned(),
        false => format!("{} of them", change.redacted),
    }
}

fn location(example: &ChangedCallExample) -> String {
    let session = example.session.as_deref().map(|session| format!("session {}, ", escape_line(session)));
    let time = example.time.as_deref().map(|time| format!("  {time}")).unwrap_or_default();
    format!(
        "{}:{}  {}call {}{time}",
        escape_line(&example.file),
        example.line,
        session.unwrap_or_default(),
        escape_line(&example.id)
    )
}

fn count(number: u64, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}
