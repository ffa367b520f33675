//! What people who look at a tool's description do not see, and a model reads all the same.

use crate::json::{MAX_DEPTH, Value};
use crate::text::{inert, is_hidden, mixed_scripts};

/// Characters of context around a find.
const AROUND: usize = 20;

/// A text in a tool that is not what it seems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Where: the keys that lead to it, as `$.inputSchema.properties.path.description`.
    pub place: String,
    /// What is odd about it.
    pub what: &'static str,
    /// The text around it, with everything hidden spelled out.
    pub excerpt: String,
}

/// Everything odd in what a server says of a tool: invisible characters, those that turn the text around them, terminal escapes and
/// other control characters, names of mixed scripts.
pub fn flags(tool: &Value) -> Vec<Flag> {
    let mut found = Vec::new();
    look(tool, "$", 0, &mut found);
    found
}

fn look(value: &Value, place: &str, depth: usize, found: &mut Vec<Flag>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => look_at(text, place, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                look(item, &format!("{place}[{index}]"), depth + 1, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let place = format!("{place}.{}", inert(key));
                look_at(key, &place, found);
                look(member, &place, depth + 1, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn look_at(text: &str, place: &str, found: &mut Vec<Flag>) {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let what = match c {
            // An emoji is written with it.
            '\u{fe0f}' if before.is_some_and(|before| before > '\u{203b}') => None,
            '\u{1b}' => Some("a terminal escape"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                Some("a character that turns the text around it")
            }
            '\n' | '\t' | '\r' => None,
            c if c.is_control() => Some("a control character"),
            c if is_hidden(c) => Some("an invisible character"),
            _ => None,
        };
        if let Some(what) = what {
            let skipped = text.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(AROUND);
            let excerpt: String = text.chars().skip(skipped).take(2 * AROUND).collect();
            found.push(Flag { place: place.to_owned(), what, excerpt: inert(&excerpt) });
            // One is enough to look at the whole text.
            return;
        }
        before = Some(c);
    }
    if place.ends_with(".name") && mixed_scripts(text).is_some() {
        found.push(Flag {
            place: place.to_owned(),
            what: "letters of several scripts",
            excerpt: inert(text),
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    #[test]
    fn what_people_do_not_see_is_found_wherever_it_stands() {
        let cases = [
            (json!({ "description": "Reads.\u{200b}Sends." }), "$.description", "an invisible character"),
            (json!({ "description": "\u{1b}[8mhidden" }), "$.description", "a terminal escape"),
            (
                json!({ "inputSchema": { "properties": { "p": { "enum": ["a\u{202e}b"] } } } }),
                "$.inputSchema.properties.p.enum[0]",
                "a character that turns the text around it",
            ),
            (json!({ "title": "\u{e0041}\u{e0042}" }), "$.title", "an invisible character"),
            (json!({ "description": "a\u{8}b" }), "$.description", "a control character"),
        ];
        for (tool, place, what) in cases {
            let found = flags(&tool);
            assert_eq!(
                found.iter().map(|flag| (&*flag.place, flag.what)).collect::<Vec<_>>(),
                [(place, what)]
            );
        }
        assert_eq!(
            flags(&json!({ "name": "read_file", "description": "Reads ⚠️ a file.\n\tÜber — 文件" })),
            []
        );
    }
}
