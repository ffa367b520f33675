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
        let help = error.help.unwrap_or_else(|| match rest.chars().next() {
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
