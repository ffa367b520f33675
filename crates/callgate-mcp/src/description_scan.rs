//! Scans tool descriptions for hidden text, a carrier of prompt injection: people who review them don't see it, but a model reads it.

use callgate::json::{MAX_DEPTH, Value};
use callgate::safe_text::{escape_controls, find_mixed_scripts, is_hidden};

/// Characters of context around a finding.
const CONTEXT_LENGTH: usize = 20;

/// Suspicious text in a tool's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionFinding {
    /// Its path, such as `$.inputSchema.properties.path.description`.
    pub path: String,
    /// What is suspicious.
    pub problem: &'static str,
    /// The text around it, with hidden characters escaped.
    pub excerpt: String,
}

/// Finds suspicious text in a tool's description: invisible characters, bidirectional controls, terminal escapes and other control
/// characters, names of mixed scripts.
pub fn scan_description(tool: &Value) -> Vec<DescriptionFinding> {
    let mut found = Vec::new();
    scan_value(tool, "$", 0, &mut found);
    found
}

fn scan_value(value: &Value, path: &str, depth: usize, found: &mut Vec<DescriptionFinding>) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => scan_text(text, path, found),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                scan_value(item, &format!("{path}[{index}]"), depth + 1, found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{path}.{}", escape_controls(key));
                scan_text(key, &path, found);
                scan_value(member, &path, depth + 1, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn scan_text(text: &str, path: &str, found: &mut Vec<DescriptionFinding>) {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let problem = match c {
            // The variation selector of an emoji.
            '\u{fe0f}' if before.is_some_and(|before| before > '\u{203b}') => None,
            '\u{1b}' => Some("a terminal escape"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                Some("a bidirectional control character")
            }
            '\n' | '\t' | '\r' => None,
            c if c.is_control() => Some("a control character"),
            c if is_hidden(c) => Some("an invisible character"),
            _ => None,
        };
        if let Some(problem) = problem {
            let skipped =
                text.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(CONTEXT_LENGTH);
            let excerpt: String = text.chars().skip(skipped).take(2 * CONTEXT_LENGTH).collect();
            found.push(DescriptionFinding {
                path: path.to_owned(),
                problem,
                excerpt: escape_controls(&excerpt),
            });
            // One finding per string is enough for a review.
            return;
        }
        before = Some(c);
    }
    if path.ends_with(".name") && find_mixed_scripts(text).is_some() {
        found.push(DescriptionFinding {
            path: path.to_owned(),
            problem: "letters of several scripts",
            excerpt: escape_controls(text),
        });
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn finds_hidden_text_at_any_depth() {
        let cases = [
            (json!({ "description": "Reads.\u{200b}Sends." }), "$.description", "an invisible character"),
            (json!({ "description": "\u{1b}[8mhidden" }), "$.description", "a terminal escape"),
            (
                json!({ "inputSchema": { "properties": { "p": { "enum": ["a\u{202e}b"] } } } }),
                "$.inputSchema.properties.p.enum[0]",
                "a bidirectional control character",
            ),
            (json!({ "title": "\u{e0041}\u{e0042}" }), "$.title", "an invisible character"),
            (json!({ "description": "a\u{8}b" }), "$.description", "a control character"),
        ];
        for (tool, path, problem) in cases {
            let found = scan_description(&tool);
            assert_eq!(
                found.iter().map(|flag| (&*flag.path, flag.problem)).collect::<Vec<_>>(),
                [(path, problem)]
            );
        }
        assert_eq!(
            scan_description(
                &json!({ "name": "read_file", "description": "Reads ⚠️ a file.\n\tÜber — 文件" })
            ),
            []
        );
    }
}
