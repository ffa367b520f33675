//! Error patterns: `on` of `retry` and `recover`, which selects errors of a tool.

use crate::host::ToolError;
use crate::matcher::{NamePattern, read_patterns};
use crate::rules_schema::{FieldShape, PolicyReader, Shape};
use crate::source::YamlNode;

pub(super) const ON: FieldShape = FieldShape::optional(
    "on",
    Shape::OneOrMany(&Shape::String(
        "an error's kind or message: exact, a glob, or a regular expression such as `/invalid/`",
    )),
    "The errors that it applies to, by kind (such as `timeout`) or message. Default: every error.",
);

/// Patterns for the kind or the message of an error. Without patterns every error matches.
#[derive(Debug, Default)]
pub struct ErrorPatterns(Vec<NamePattern>);

impl ErrorPatterns {
    /// Reads `on`.
    pub(super) fn read(policy: &YamlNode, reader: &mut PolicyReader<'_>) -> Self {
        Self(policy.get("on").map(|node| read_patterns(node, reader)).unwrap_or_default())
    }

    /// Whether an error matches.
    pub fn matches(&self, error: &ToolError) -> bool {
        self.0.is_empty() || self.matches_each(error).any(|matches| matches)
    }

    /// Returns for each pattern, in order, whether it matches an error.
    pub fn matches_each(&self, error: &ToolError) -> impl Iterator<Item = bool> {
        let kind = error.kind.as_deref();
        self.0.iter().map(move |pattern| {
            pattern.matches(&error.message) || kind.is_some_and(|kind| pattern.matches(kind))
        })
    }
}
