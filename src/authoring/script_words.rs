//! What is wrong with a script or an expression, in the terms of a rules file.

use std::ops::Range;

use crate::script::ScriptError;

/// A problem of a script, with the words it is about.
#[derive(Debug)]
pub struct ScriptProblem {
    /// Where in the text.
    pub range: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl ScriptProblem {
    /// Puts an error into the terms of a rules file. `what` is what the text is called, `example` what helps if nothing better
    /// is known.
    pub fn of(text: &str, error: ScriptError, what: &str, example: &str) -> Self {
        let rest = error.offset.and_then(|offset| text.get(offset..)).unwrap_or_default();
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let range = match error.offset {
            Some(offset) => {
                offset..offset.saturating_add(word.max(rest.chars().next().map_or(1, char::len_utf8)))
            }
            None => 0..text.len(),
        };
        let help = error.help.unwrap_or_else(|| match rest.chars().next() {
            Some('=') => "equality is `==`".to_owned(),
            _ => example.to_owned(),
        });
        let message = match text.trim() {
            "" if what == "expression" => "the expression is empty".to_owned(),
            _ => match error.message.strip_prefix("script is") {
                Some(rest) => format!("the {what} is{rest}"),
                None => error.message.replace('\'', "`"),
            },
        };
        Self { range, message, help }
    }
}
