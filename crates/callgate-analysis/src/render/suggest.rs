//! Renders what was learned from recordings: the comment at the top of drafted rules, and the report of the draft.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::text::{BOLD, DIM, GREEN, PLAIN, RED, YELLOW, escape_line};
use crate::suggest::{Draft, DraftEvaluation, StoppedCalls, ToolName};

/// The most causes of stopped calls that are listed.
const MAX_CAUSES: usize = 12;

/// A draft with what it decides on the recordings.
#[derive(Debug)]
pub struct DraftReport<'a> {
    /// The draft.
    pub draft: &'a Draft,
    /// What it decides on the calls that it was learned from.
    pub learned: &'a DraftEvaluation,
    /// What it decides on later calls.
    pub held_out: &'a DraftEvaluation,
    /// Calls that were not learned from, by what was decided on them.
    pub skipped: &'a BTreeMap<&'static str, u64>,
    /// The number of sessions that make something usual.
    pub min_sessions: usize,
}

impl DraftReport<'_> {
    /// The comment at the top of the rules, as lines without their `# `.
    pub fn header(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "Drafted by `callgate suggest` from {} in {}: review it before you use it.",
                count(self.learned.ran, "call", "calls"),
                count(self.learned.sessions.len() as u64, "session", "sessions")
            ),
            format!(
                "What was seen in fewer than {} is not permitted, and listed to decide.",
                count(self.min_sessions as u64, "session", "sessions")
            ),
            format!(
                "Permits {} of the {} that it was learned from.",
                self.learned.permitted,
                count(self.learned.ran, "call", "calls")
            ),
        ];
        if self.held_out.ran > 0 {
            lines.push(format!("Of later sessions, held out to test it: {}.", stopped(self.held_out)));
        }
        lines
    }

    /// The report. `colour`: with ANSI escapes, which never come from a value.
    pub fn text(&self, colour: bool) -> String {
        let mut page = ReportWriter { text: String::new(), colour };
        for (name, findings) in &self.draft.tools {
            let decide = match findings {
                0 => String::new(),
                number => format!("  {number} to decide"),
            };
            let line = format!(
                "{} {}{}",
                page.paint(GREEN, "✓"),
                page.paint(BOLD, &tool(name)),
                page.paint(YELLOW, &decide)
            );
            page.line(0, &line);
        }
        for finding in &self.draft.findings {
            let line = format!("{} {}", page.paint(YELLOW, "?"), escape_line(&finding.line()));
            page.line(0, &line);
        }
        if !(self.draft.tools.is_empty() && self.draft.findings.is_empty()) {
            page.line(0, "");
        }
        page.evaluation("learned from", self.learned);
        if self.held_out.ran > 0 {
            page.evaluation("held out", self.held_out);
        } else {
            page.line(0, "held out: no calls, so the rate of false positives is unknown");
        }
        for (what, calls) in self.skipped {
            page.line(0, &format!("not learned from: {} {what}", count(*calls, "call", "calls")));
        }
        page.newly_permitted(self.learned);
        page.newly_permitted(self.held_out);
        page.text
    }
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

    fn evaluation(&mut self, name: &str, evaluation: &DraftEvaluation) {
        self.line(0, &format!("{name}: {}", stopped(evaluation)));
        let mut causes: Vec<_> = evaluation.stopped.iter().collect();
        causes.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.calls));
        let more = causes.len().saturating_sub(MAX_CAUSES);
        for ((name, code), calls) in causes.into_iter().take(MAX_CAUSES) {
            let line = format!(
                "{}  [{}]  {}  {}",
                tool(name),
                escape_line(code),
                count(calls.calls, "call", "calls"),
                self.paint(DIM, &examples(calls))
            );
            self.line(4, &line);
        }
        if more > 0 {
            self.line(4, &format!("and {}", count(more as u64, "more cause", "more causes")));
        }
    }

    fn newly_permitted(&mut self, evaluation: &DraftEvaluation) {
        for (name, calls) in &evaluation.newly_permitted {
            let text = format!(
                "{}: {} denied when they were recorded, and {} permitted now  {}",
                tool(name),
                count(calls.calls, "call was", "calls were"),
                if calls.calls == 1 { "is" } else { "are" },
                examples(calls)
            );
            let line = format!("{} {text}", self.paint(RED, "!"));
            self.line(0, &line);
        }
    }
}

/// `1,004 calls, of which the draft stops 7 (0.7 %), in 5 of 160 sessions`
fn stopped(evaluation: &DraftEvaluation) -> String {
    let calls = count(evaluation.ran, "call", "calls");
    if evaluation.stopped_calls() == 0 {
        return format!("{calls}, all permitted");
    }
    let rate = evaluation.stopped_calls() as f64 / evaluation.ran.max(1) as f64 * 100.0;
    let approval = match evaluation.need_approval {
        0 => String::new(),
        number => format!("; {number} of them until they are approved"),
    };
    format!(
        "{calls}, of which the draft stops {} ({rate:.1} %), in {} of {}{approval}",
        evaluation.stopped_calls(),
        evaluation.stopped_sessions.len(),
        count(evaluation.sessions.len() as u64, "session", "sessions")
    )
}

fn tool(name: &ToolName) -> String {
    match &name.server {
        Some(server) => format!("{} of {}", escape_line(&name.tool), escape_line(server)),
        None => escape_line(&name.tool),
    }
}

fn examples(calls: &StoppedCalls) -> String {
    let examples: Vec<String> = calls
        .examples
        .iter()
        .map(|origin| format!("{}:{}", escape_line(&origin.file), origin.line))
        .collect();
    examples.join(", ")
}

fn count(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
