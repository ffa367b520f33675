//! Confusable names: notes on names and addresses that mix scripts or imitate Latin letters.

use std::collections::BTreeSet;

use super::model::{CardField, FieldKind};
use super::truncation::CardLimits;
use crate::json::{MAX_DEPTH, Value};
use crate::safe_text::{escape_non_ascii, find_imitated_latin, find_mixed_scripts};

/// Returns a note for each tool name, server, key and address that mixes scripts or imitates Latin letters. If there are more than
/// the limit, the last note says how many.
pub(super) fn confusable_notes<'a>(
    tool: Option<&'a str>,
    server: Option<&'a str>,
    inputs: &[&'a Value],
    limits: &CardLimits,
) -> Vec<CardField> {
    let mut found = ConfusableSearch { limits, mixed: BTreeSet::new(), notes: Vec::new() };
    found.check("the tool name", tool.unwrap_or_default());
    found.check("the server", server.unwrap_or_default());
    for input in inputs {
        found.search(input, 0);
    }
    let mut notes = found.notes;
    if let Some(more) = found.mixed.len().checked_sub(notes.len()).filter(|more| *more > 0) {
        notes.push(format!("{more} more names or addresses may not be what they look like"));
    }
    notes.into_iter().map(|text| CardField::with_text(FieldKind::Note, "Note", text)).collect()
}

struct ConfusableSearch<'a, 'l> {
    limits: &'l CardLimits,
    mixed: BTreeSet<&'a str>,
    /// Notes on the first of them.
    notes: Vec<String>,
}

impl<'a> ConfusableSearch<'a, '_> {
    fn search(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::String(text) => {
                words(text).filter(|word| is_address(word)).for_each(|word| self.check("the address", word));
            }
            Value::Array(items) if depth < MAX_DEPTH => {
                items.iter().for_each(|item| self.search(item, depth + 1));
            }
            Value::Object(map) if depth < MAX_DEPTH => {
                for (key, item) in map {
                    words(key).for_each(|word| self.check("the argument name", word));
                    self.search(item, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn check(&mut self, label: &str, text: &'a str) {
        let problem = find_mixed_scripts(text)
            .map(|scripts| format!("mixes {} letters", scripts.join(" and ")))
            .or_else(|| {
                find_imitated_latin(text)
                    .map(|script| format!("has {script} letters that look like Latin ones"))
            });
        let Some(problem) = problem else { return };
        if !self.mixed.insert(text) || self.notes.len() == self.limits.notes {
            return;
        }
        let spelled = escape_non_ascii(text, self.limits.name);
        self.notes.push(format!("{label} \"{spelled}\" {problem} and may not be what it looks like"));
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | ',' | ';' | '"' | '\''))
}

/// Whether a word may be an address: it has an at sign, a scheme, or a dot between letters.
fn is_address(word: &str) -> bool {
    word.contains('@')
        || word.contains("://")
        || word.split('.').filter(|label| label.chars().all(|c| c.is_alphanumeric() || c == '-')).count() > 1
            && word.split('.').all(|label| !label.is_empty())
}
