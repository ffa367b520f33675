//! Which errors of a tool a policy is about: `on` of `retry` and `recover`.

use crate::authoring::{Field, Reader, Shape};
use crate::host::ToolError;
use crate::matcher::NamePattern;
use crate::source::Node;

pub(super) const ON: Field = Field::optional(
    "on",
    Shape::OneOrMany(&Shape::Text(
        "an error's kind or text: exact, a glob, or a regular expression such as `/invalid/`",
    )),
    "Which errors: the error's kind (such as `timeout`) or its text. Without it: every error.",
);

/// Patterns for the kind or the text of an error; every error, if there are none.
#[derive(Debug, Default)]
pub struct ErrorPatterns(Vec<NamePattern>);

impl ErrorPatterns {
    /// Reads `on` of a policy.
    pub(super) fn read(policy: &Node, reader: &mut Reader<'_>) -> Self {
        Self(policy.get("on").map(|node| NamePattern::read_many(node, reader)).unwrap_or_default())
    }

    /// Whether an error is one of these.
    pub fn concern(&self, error: &ToolError) -> bool {
        self.0.is_empty() || self.each_concerns(error).any(|concerns| concerns)
    }

    /// Of each pattern, in order, whether it fits an error.
    pub fn each_concerns(&self, error: &ToolError) -> impl Iterator<Item = bool> {
        let kind = error.kind.as_deref();
        self.0.iter().map(move |pattern| {
            pattern.matches(&error.message) || kind.is_some_and(|kind| pattern.matches(kind))
        })
    }
}
