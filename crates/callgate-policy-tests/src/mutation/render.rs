//! Renders the result of mutation testing as text, with a summary line, and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::{MutationReport, Survivor};
use crate::render::escape_invisible;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The version of the document.
const VERSION: u32 = 1;

/// Renders the survivors, each with its location, the line before and after, and the case that would notice it; then the
/// accepted ones. `colour`: with ANSI escapes, which never come from a value.
pub fn text(mutated: &MutationReport, colour: bool) -> String {
    let mut page = SurvivorWriter { text: String::new(), colour };
    let (accepted, open): (Vec<_>, Vec<_>) =
        mutated.survivors.iter().partition(|survivor| survivor.accepted.is_some());
    open.into_iter().for_each(|survivor| page.survivor(survivor));
    accepted.into_iter().for_each(|survivor| page.accepted(survivor));
    for unused in &mutated.unused {
        let mark = page.paint(YELLOW, "!");
        let location = format!("{}:{}:{}", escape_invisible(&unused.file), unused.line, unused.column);
        page.line(&format!("{mark} {location}: {}", escape_invisible(&unused.message)));
    }
    page.text
}

/// The summary line: `120 changes: 116 noticed, 2 survived, 1 accepted, 1 not compiled`.
pub fn summary(mutated: &MutationReport) -> String {
    let changes =
        if mutated.changes == 1 { "1 change".to_owned() } else { format!("{} changes", mutated.changes) };
    let mut text = format!("{changes}: {} noticed, {} survived", mutated.noticed, mutated.survived);
    for (count, label) in [(mutated.accepted, "accepted"), (mutated.invalid, "not compiled")] {
        if count > 0 {
            let _ = write!(text, ", {count} {label}");
        }
    }
    text
}

/// Renders the stable JSON document.
///
/// # Errors
/// Returns an error if serialization fails, which strings and numbers do not cause.
pub fn json(mutated: &MutationReport) -> callgate::json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        version: u32,
        mutations: &'a MutationReport,
    }
    callgate::json::to_string_pretty(&Document { version: VERSION, mutations: mutated })
}

struct SurvivorWriter {
    text: String,
    colour: bool,
}

impl SurvivorWriter {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn place(&self, survivor: &Survivor) -> String {
        let location = format!("{}:{}:{}", escape_invisible(&survivor.file), survivor.line, survivor.column);
        let owner = survivor.policy.as_deref().or(survivor.definition.as_deref()).unwrap_or("defaults");
        format!("{location}: {}: {}", self.paint(BOLD, &escape_invisible(owner)), survivor.mutation)
    }

    fn survivor(&mut self, survivor: &Survivor) {
        let mark = self.paint(RED, "✗");
        let location = self.place(survivor);
        self.line(&format!("{mark} {location}: {}", survivor.change));
        let before = self.paint(RED, &format!("-  {}", escape_invisible(&survivor.before)));
        self.line(&format!("    {before}"));
        if let Some(after) = &survivor.after {
            let after = self.paint(GREEN, &format!("+  {}", escape_invisible(after)));
            self.line(&format!("    {after}"));
        }
        let advice =
            self.paint(DIM, &format!("would be noticed by {}", escape_invisible(&survivor.noticed_by)));
        self.line(&format!("    {advice}\n"));
    }

    fn accepted(&mut self, survivor: &Survivor) {
        let mark = self.paint(DIM, "·");
        let reason = survivor.accepted.as_deref().unwrap_or_default();
        let location = self.place(survivor);
        self.line(&format!("{mark} {location}: accepted because {}", escape_invisible(reason)));
    }
}
