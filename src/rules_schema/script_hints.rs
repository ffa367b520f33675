//! Error messages for scripts and expressions in a rules file.

use std::ops::Range;

use crate::script::ScriptCompileError;

/// A problem of a script, with its position.
#[derive(Debug)]
pub struct ScriptProblem {
    /// The range in the script.
    pub range: Range<usize>,
    /// The problem.
    pub message: String,
    /// The fix.
    pub help: String,
}

impl ScriptProblem {
    /// Converts a script error. `name` is the name of the string, `example` the help if nothing more specific is
    /// known.
    pub fn from_error(text: &str, error: ScriptCompileError, name: &str, example: &str) -> Self {
        let rest = error.offset.and_then(|offset| text.get(offset..)).unwrap_or_default();
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let range = match error.offset {
            Some(offset) => {
                offset..offset.saturating_add(word.max(rest.chars().next().map_or(1, char::len_utf8)))
            }
            None => 0..text.len(),
        };
        if let (Some(offset), Some(inside)) = (error.offset, rest.strip_prefix('\'')) {
            let end = inside.find('\'').map_or(rest.len(), |at| at + 2);
            let (message, help) = ("single quotes make no string", "write the string in double quotes");
            return Self { range: offset..offset + end, message: message.to_owned(), help: help.to_owned() };
        }
        let before = error.offset.and_then(|offset| text.get(..offset)).unwrap_or_default();
        let known = word_of_other_languages(before, rest.get(..word).unwrap_or_default());
        let help = known.map(str::to_owned).or(error.help).unwrap_or_else(|| match rest.chars().next() {
            Some('=') => "use `==` for equality".to_owned(),
            _ => example.to_owned(),
        });
        let message = match text.trim() {
            "" if name == "expression" => "the expression is empty".to_owned(),
            _ => match error.message.strip_prefix("script is") {
                Some(rest) => format!("the {name} is{rest}"),
                None => error.message.replace('\'', "`"),
            },
        };
        Self { range, message, help }
    }
}

/// Returns the fix if the error is at or behind a word that other languages have. `before` is the text before it.
fn word_of_other_languages(before: &str, word: &str) -> Option<&'static str> {
    let last = before.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    match word {
        "and" => Some("write `&&`"),
        "or" => Some("write `||`"),
        "null" | "nil" | "None" | "undefined" => {
            Some("write `is_null(x)`, or `!exists(x)` for a value that may be absent")
        }
        "not" => Some("write `!`"),
        _ if last == Some("not") => Some("write `!` in place of `not`"),
        _ => None,
    }
}
