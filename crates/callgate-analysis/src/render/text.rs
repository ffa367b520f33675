//! Renders a comparison as text: each change with its meaning and example calls, then a summary.

use std::fmt::Write as _;

use super::phrases::{self, Phrase};
use crate::report::{BundleComparison, Change, ChangeSubject, Direction, Witness};
use callgate::diagnostic::Location;
use callgate::json::Value;
use callgate::safe_text::{escape_controls, is_hidden};

pub(super) const RED: &str = "\u{1b}[31m";
pub(super) const GREEN: &str = "\u{1b}[32m";
pub(super) const YELLOW: &str = "\u{1b}[33m";
pub(super) const BOLD: &str = "\u{1b}[1m";
pub(super) const DIM: &str = "\u{1b}[2m";
pub(super) const PLAIN: &str = "\u{1b}[0m";

/// The most characters of a call.
const MAX_CALL_CHARS: usize = 1_000;

/// Renders the changes, the riskiest first. `colour`: with ANSI escapes, which never come from a value.
pub fn text(compared: &BundleComparison, colour: bool) -> String {
    let mut page = ChangeWriter { text: String::new(), colour };
    compared.changes.iter().for_each(|change| page.change(change));
    page.text
}

/// The summary line: `2 changes: 1 looser, 1 stricter; 12 policies unchanged`.
pub fn summary(compared: &BundleComparison) -> String {
    phrases::summary(compared)
}

struct ChangeWriter {
    text: String,
    colour: bool,
}

impl ChangeWriter {
    fn line(&mut self, indent: usize, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }

    fn change(&mut self, change: &Change) {
        let (mark, style) = match change.direction {
            Direction::Looser => ("✗", RED),
            Direction::Mixed => ("±", RED),
            Direction::MayBeLooser => ("?", YELLOW),
            Direction::Stricter => ("✓", GREEN),
            Direction::Equivalent => ("=", DIM),
        };
        let head = self.paint(style, &format!("{mark} {}", change.direction.phrase()));
        let subject = self.subject(&change.subject);
        self.line(0, &format!("{head}  {subject}"));
        let changed = phrases::change(&change.subject);
        if !changed.is_empty() {
            let changed = phrases::join(&changed, escape_controls);
            self.line(4, &changed);
        }
        if change.direction == Direction::MayBeLooser {
            for reason in &change.reasons {
                self.line(4, &format!("{}: {}", escape_line(&reason.change), reason.consequence));
            }
        }
        change.witnesses.iter().for_each(|witness| self.witness(witness));
        if let Some(certainty) = phrases::certainty(change) {
            let certainty = self.paint(DIM, &certainty);
            self.line(4, &certainty);
        }
        self.line(0, "");
    }

    fn subject(&self, subject: &ChangeSubject) -> String {
        match subject {
            ChangeSubject::Policy { id, kind, old, new, .. } => {
                let location = new.as_ref().or(old.as_ref()).map(format_location).unwrap_or_default();
                let (id, location) = (self.paint(BOLD, &escape_controls(id)), self.paint(DIM, &location));
                format!("{id}  {kind}  {location}").trim_end().to_owned()
            }
            ChangeSubject::Setting { key, was, is } => {
                format!("{}  was `{}` and is `{}`", self.paint(BOLD, key), escape_line(was), escape_line(is))
            }
            ChangeSubject::Bundle => self.paint(BOLD, "the changes together"),
        }
    }

    fn witness(&mut self, witness: &Witness) {
        let call = json_line(&witness.call);
        self.line(4, &call);
        if let Some(session) = &witness.session {
            self.line(6, &format!("session: {}", json_line(session)));
        }
        if let Some(now) = &witness.now {
            self.line(6, &format!("time: {now}"));
        }
        if let Some(source) = &witness.source {
            let source = self.paint(DIM, &format!("from {}", escape_line(source)));
            self.line(6, &source);
        }
        if let Some(basis) = phrases::basis(witness) {
            self.line(6, basis);
        }
        let phrase =
            |phrases: &[Phrase]| phrases::join(phrases, |name| format!("`{}`", escape_controls(name)));
        let arguments = |input: &Option<Value>| {
            input.as_ref().map(|input| format!(" with {}", json_line(input))).unwrap_or_default()
        };
        let before =
            format!("{}{}", phrase(&phrases::decision(&witness.before)), arguments(&witness.before.input));
        let after =
            format!("{}{}", phrase(&phrases::decision(&witness.after)), arguments(&witness.after.input));
        self.line(6, &format!("before: {before}"));
        self.line(6, &format!("after:  {after}"));
    }
}

fn format_location(location: &Location) -> String {
    format!("{}:{}:{}", escape_line(&location.file), location.line, location.column)
}

/// A string on one line, with control and hidden characters escaped.
pub(super) fn escape_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        if c.is_control() || is_hidden(c) {
            line.extend(c.escape_unicode())
        } else {
            line.push(c)
        }
        line
    })
}

/// A value as JSON on one line, with control and hidden characters as JSON escapes. A long one is cut.
fn json_line(value: &Value) -> String {
    let mut line = String::new();
    for (count, c) in value.to_string().chars().enumerate() {
        if count == MAX_CALL_CHARS {
            line.push('…');
            break;
        }
        if c.is_control() || is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line
}
