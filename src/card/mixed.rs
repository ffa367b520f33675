//! Notes on names and addresses that mix scripts, and so may not be what they look like.

use std::collections::BTreeSet;

use super::model::{Field, FieldKind};
use super::shown::{MAX_NAME, MAX_NOTES};
use crate::json::{MAX_DEPTH, Value};
use crate::text::{mixed_scripts, spelled_out};

/// A note for each tool name, server, key and address that mixes scripts, at most [`MAX_NOTES`] and one that says how many
/// more there are.
pub(super) fn notes<'a>(tool: Option<&'a str>, server: Option<&'a str>, inputs: &[&'a Value]) -> Vec<Field> {
    let mut found = Found::default();
    found.look_at("the tool name", tool.unwrap_or_default());
    found.look_at("the server", server.unwrap_or_default());
    for input in inputs {
        found.search(input, 0);
    }
    let mut notes = found.notes;
    if let Some(more) = found.mixed.len().checked_sub(notes.len()).filter(|more| *more > 0) {
        notes.push(format!("{more} more names or addresses mix scripts"));
    }
    notes.into_iter().map(|text| Field::told(FieldKind::Note, "Note", text)).collect()
}

#[derive(Default)]
struct Found<'a> {
    mixed: BTreeSet<&'a str>,
    /// Of the first of them.
    notes: Vec<String>,
}

impl<'a> Found<'a> {
    fn search(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::String(text) => {
                words(text)
                    .filter(|word| is_address(word))
                    .for_each(|word| self.look_at("the address", word));
            }
            Value::Array(items) if depth < MAX_DEPTH => {
                items.iter().for_each(|item| self.search(item, depth + 1));
            }
            Value::Object(map) if depth < MAX_DEPTH => {
                for (key, item) in map {
                    words(key).for_each(|word| self.look_at("the argument name", word));
                    self.search(item, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn look_at(&mut self, what: &str, text: &'a str) {
        let Some(scripts) = mixed_scripts(text) else { return };
        if !self.mixed.insert(text) || self.notes.len() == MAX_NOTES {
            return;
        }
        let spelled = spelled_out(text, MAX_NAME);
        let more = if spelled.left_out > 0 { "…" } else { "" };
        self.notes.push(format!(
            "{what} {}{more} mixes {} letters and may not be what it looks like",
            spelled.text,
            scripts.join(" and ")
        ));
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | ',' | ';' | '"' | '\''))
}

/// Whether a word can be an address: it has an at sign, a scheme or a dot between letters.
fn is_address(word: &str) -> bool {
    word.contains('@')
        || word.contains("://")
        || word.split('.').filter(|label| label.chars().all(|c| c.is_alphanumeric() || c == '-')).count() > 1
            && word.split('.').all(|label| !label.is_empty())
}
