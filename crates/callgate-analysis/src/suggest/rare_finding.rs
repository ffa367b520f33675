//! What was seen too rarely to be permitted, and what a draft does not limit: for a person to decide.

use callgate::json::Value;
use callgate::safe_text::{escape_controls, truncate};
use callgate_policy_tests::yaml_writer;

use super::support::{ExtremeValue, Support};
use crate::recording::CallOrigin;

/// The most findings of one kind at one path; further ones are counted.
pub(super) const MAX_FINDINGS: usize = 8;

/// Something that a person has to decide on. Its text is on one line, and free of confidential values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RareFinding {
    /// What was seen, and where in the call.
    pub text: String,
    /// The number of calls; 0 if that is not counted.
    pub calls: u64,
    /// The number of sessions; 0 if that is not counted.
    pub sessions: usize,
    /// Where the first one is recorded.
    pub example: Option<CallOrigin>,
}

impl RareFinding {
    pub(super) fn new(text: impl Into<String>, support: &Support) -> Self {
        Self {
            text: text.into(),
            calls: support.calls(),
            sessions: support.sessions().unwrap_or_default(),
            example: support.first().cloned(),
        }
    }

    /// A finding about a value beyond a bound.
    pub(super) fn beyond<T>(text: impl Into<String>, extreme: &ExtremeValue<T>) -> Self {
        Self { text: text.into(), calls: extreme.calls, sessions: 0, example: Some(extreme.first.clone()) }
    }

    /// The finding with its counts and its example: `$.input.amount: 9000: 1 call (log.jsonl:812)`.
    pub fn line(&self) -> String {
        let count = |number: u64, one: &str, several: &str| {
            format!("{number} {}", if number == 1 { one } else { several })
        };
        let mut line = self.text.clone();
        if self.calls > 0 {
            line.push_str(&format!(": {}", count(self.calls, "call", "calls")));
        }
        if self.calls > 1 && self.sessions > 0 {
            line.push_str(&format!(" in {}", count(self.sessions as u64, "session", "sessions")));
        }
        if let Some(example) = &self.example {
            line.push_str(&format!(" ({}:{})", shown_name(&example.file), example.line));
        }
        line
    }

    /// A finding about the draft as a whole.
    pub(super) fn note(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: 0, sessions: 0, example: None }
    }
}

/// The name of a file on one line.
fn shown_name(name: &str) -> String {
    escape_controls(name)
}

/// A value from a recording on one line, shortened.
pub(super) fn shown(value: &Value) -> String {
    truncate(&yaml_writer::flow(value))
}

/// A string from a recording on one line, shortened.
pub(super) fn shown_text(text: &str) -> String {
    shown(&Value::from(text))
}
