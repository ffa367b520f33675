//! Renders a comparison as Markdown, the body of a comment on a pull request. The rules are written by the author of the pull request,
//! so everything from them is escaped.

use std::fmt::Write as _;

use super::phrases::{self, Phrase};
use crate::report::{BundleComparison, Change, ChangeSubject, Direction, Witness};
use callgate::safe_text::{escape_json, escape_markup_up_to};

/// By this line a workflow finds its comment, to update it.
const MARKER: &str = "<!-- callgate diff -->";
/// GitHub rejects a comment with more than 65,536 characters.
const MAX_BYTES: usize = 60_000;
/// The most characters of a call, and of a name.
const MAX_CALL: usize = 600;
const MAX_NAME: usize = 200;

/// Renders the body of a comment: the riskiest changes first, as many as fit.
pub fn github(compared: &BundleComparison) -> String {
    let mut body = format!("{MARKER}\n### Policy changes\n\n{}\n", phrases::summary(compared));
    let mut listed: Option<Direction> = None;
    for (index, change) in compared.changes.iter().enumerate() {
        let mut entry = String::new();
        if listed != Some(change.direction) {
            let _ = write!(entry, "\n#### {}\n\n", heading(change.direction));
        }
        write_change(&mut entry, change);
        if body.len() + entry.len() > MAX_BYTES {
            let left = compared.changes.len() - index;
            let _ = write!(body, "\n{left} more: run `callgate diff` for the whole list.\n");
            break;
        }
        listed = Some(change.direction);
        body.push_str(&entry);
    }
    body
}

fn heading(direction: Direction) -> &'static str {
    match direction {
        Direction::Looser => "Looser",
        Direction::Mixed => "Looser and stricter",
        Direction::MayBeLooser => "May be looser",
        Direction::Stricter => "Stricter",
        Direction::Equivalent => "Equivalent",
    }
}

/// A name as code.
fn code(name: &str) -> String {
    format!("`{}`", escape_markup_up_to(name, MAX_NAME))
}

/// A message of ours, with the names in it as code. A backtick in a name makes a part of it look like text of ours.
fn message(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " (),.;".contains(c);
    let escaped = phrases::message(text).into_iter().map(|phrase| match phrase {
        Phrase::Text(text) if text.chars().all(is_plain) => text,
        Phrase::Text(text) => escape_markup_up_to(&text, MAX_NAME).to_string(),
        Phrase::Name(name) => code(&name),
    });
    escaped.collect()
}

fn write_change(entry: &mut String, change: &Change) {
    let subject = match &change.subject {
        ChangeSubject::Policy { id, kind, old, new, .. } => {
            let location = new.as_ref().or(old.as_ref());
            let location = location
                .map(|location| format!(", {}", code(&format!("{}:{}", location.file, location.line))));
            format!("{} ({kind}{})", code(id), location.unwrap_or_default())
        }
        ChangeSubject::Setting { key, was, is } => {
            format!("{} was {} and is {}", code(key), code(was), code(is))
        }
        ChangeSubject::Bundle => "the changes together".to_owned(),
    };
    let changed = phrases::join(&phrases::change(&change.subject), code);
    let separator = if changed.is_empty() { "" } else { ": " };
    let _ = writeln!(entry, "- {subject}{separator}{changed}");
    if change.direction == Direction::MayBeLooser {
        for reason in &change.reasons {
            let _ = writeln!(entry, "  - {}: {}", message(&reason.change), reason.consequence);
        }
    }
    change.witnesses.iter().for_each(|witness| write_witness(entry, witness));
    if let Some(certainty) = phrases::certainty(change) {
        let _ = writeln!(entry, "  - {certainty}");
    }
}

fn write_witness(entry: &mut String, witness: &Witness) {
    let phrase = |phrases: &[Phrase]| phrases::join(phrases, code);
    let (before, after) =
        (phrase(&phrases::decision(&witness.before)), phrase(&phrases::decision(&witness.after)));
    let basis = phrases::basis(witness).map(|basis| format!("{basis}; ")).unwrap_or_default();
    let _ = writeln!(entry, "  - {basis}before: {before}, after: {after}\n");
    let _ = writeln!(entry, "    ```json\n    {}", escape_json(&witness.call, MAX_CALL));
    if let Some(session) = &witness.session {
        let _ = writeln!(entry, "    {{\"session\": {}}}", escape_json(session, MAX_CALL));
    }
    let _ = writeln!(entry, "    ```");
    let details = [
        witness.now.as_ref().map(|now| format!("at {now}")),
        witness.source.as_ref().map(|source| format!("from {}", code(source))),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    if !details.is_empty() {
        let _ = writeln!(entry, "\n    {}", details.join(", "));
    }
}
