//! `recover`: turns a tool's error into a message that the model can act on.

use super::errors::{self, ErrorPatterns};
use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::call::CallView;
use crate::source::Node;
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "recover",
    doc: "Turns an error of the tool into a message for the model, so that it can try again.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    after_tool: |_| true,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| {
        let on = ErrorPatterns::read(node, reader);
        let message = match node.get("message") {
            Some(message) => Some(reader.template(message, &["suggestion"])?),
            None => None,
        };
        let attempts = node.get("attempts").and_then(Node::as_number).and_then(crate::json::Number::as_u64);
        Some(Kind::Recover(Recover { on, message, attempts: attempts.unwrap_or(3) }))
    },
};

static RECORD: Record = Record {
    name: "recover",
    doc: "Which errors, and what the model is told.",
    fields: &[
        errors::ON,
        Field::optional(
            "message",
            Shape::Text("a template"),
            "What the model is told; `{{ error }}` is the tool's error, `{{ suggestion }}` what may have been meant: values that the \
             tool's schema knows, and those that worked before in the session. Without it: the error, and that.",
        ),
        Field::optional(
            "attempts",
            Shape::Integer(1, 1000),
            "How often in one session the model is invited to try this tool again. Without it: 3.",
        ),
    ],
};

/// A `recover` policy's own part.
#[derive(Debug)]
pub struct Recover {
    /// Which errors.
    pub on: ErrorPatterns,
    /// What the model is told; without it, the error and what may have been meant.
    message: Option<Template>,
    /// How often in one session, for each tool.
    pub attempts: u64,
}

impl Recover {
    /// What the model is told of an error; `suggestion` may be empty.
    pub fn tell(&self, error: &str, suggestion: &str, view: &CallView<'_>) -> String {
        if let Some(message) = &self.message {
            return message.render(view, &[("suggestion", suggestion)]).text.trim_end().to_owned();
        }
        let end = if error.ends_with(['.', '!', '?']) { "" } else { "." };
        match suggestion {
            "" => format!("Error: {error}{end} Please try again."),
            suggestion => format!("Error: {error}{end} Did you mean to {suggestion}? Please try again."),
        }
    }
}
