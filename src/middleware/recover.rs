//! `recover`: converts a tool's error to a message that the model can act on.

use super::error_patterns::{self, ErrorPatterns};
use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};
use crate::source::YamlNode;
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "recover",
    doc: "Converts an error of the tool to a message for the model, so that it can try again.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let on = ErrorPatterns::read(node, reader);
        let message = match node.get("message") {
            Some(message) => Some(reader.read_template(message, &["suggestion"])?),
            None => None,
        };
        let attempts =
            node.get("attempts").and_then(YamlNode::as_number).and_then(crate::json::Number::as_u64);
        Some(PolicyKind::Recover(Box::new(Recover { on, message, attempts: attempts.unwrap_or(3) })))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "recover",
    doc: "The errors, and the message to the model.",
    fields: &[
        error_patterns::ON,
        FieldShape::optional(
            "message",
            Shape::String("a template"),
            "The message to the model. `{{ error }}` is the tool's error; `{{ suggestion }}` suggests arguments, from the values in the \
             tool's schema and those of earlier successful calls of the session. Default: the error and the suggestion.",
        ),
        FieldShape::optional(
            "attempts",
            Shape::Integer(1, 1000),
            "How often per session the model is asked to try this tool again. Default: 3.",
        ),
    ],
};

/// Settings of a `recover` policy.
#[derive(Debug)]
pub struct Recover {
    /// The errors that it applies to.
    pub on: ErrorPatterns,
    /// The message to the model. `None` for the error and the suggestion.
    message: Option<Template>,
    /// How often per session and tool the model is asked to try again.
    pub attempts: u64,
}

impl Recover {
    /// Returns the message to the model. `suggestion` may be empty.
    pub fn message_for(&self, error: &str, suggestion: &str, view: &CallView<'_>) -> String {
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
