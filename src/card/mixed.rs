//! Notes on names and addresses that mix scripts, and so may not be what they look like.

use serde_json::Value;

use super::model::{Field, FieldKind};
use super::shown::{MAX_NAME, MAX_NOTES};
use crate::json::MAX_DEPTH;
use crate::text::{mixed_scripts, spelled_out};

/// A note for each tool name, server, key and address that mixes scripts, at most [`MAX_NOTES`] and one that says how many
/// more there are.
pub(super) fn notes(tool: Option<&str>, server: Option<&str>, inputs: &[&Value]) -> Vec<Field> {
    let mut found: Vec<String> = Vec::new();
    note("the tool name", tool.unwrap_or_default(), &mut found);
    note("the server", server.unwrap_or_default(), &mut found);
    for input in inputs {
        search(input, 0, &mut found);
    }
    let more = found.len().saturating_sub(MAX_NOTES);
    found.truncate(MAX_NOTES);
    if more > 0 {
        found.push(format!("{more} more names or addresses mix scripts"));
    }
    found.into_iter().map(|text| Field::told(FieldKind::Note, "Note", text)).collect()
}

fn search(value: &Value, depth: usize, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            words(text).filter(|word| is_address(word)).for_each(|word| note("the address", word, found));
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().for_each(|item| search(item, depth + 1, found));
        }
        Value::Object(map) if depth < MAX_DEPTH => {
            for (key, item) in map {
                words(key).for_each(|word| note("the argument name", word, found));
                search(item, depth + 1, found);
            }
        }
        _ => {}
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

fn note(what: &str, text: &str, found: &mut Vec<String>) {
    let Some(scripts) = mixed_scripts(text) else { return };
    let spelled = spelled_out(text, MAX_NAME);
    let more = if spelled.left_out > 0 { "…" } else { "" };
    let note = format!(
        "{what} {}{more} mixes {} letters and may not be what it looks like",
        spelled.text,
        scripts.join(" and ")
    );
    if !found.contains(&note) {
        found.push(note);
    }
}
