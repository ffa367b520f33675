//! `retry`: retries failed calls of idempotent tools, with exponential backoff.

use std::time::Duration;

use super::error_patterns::{self, ErrorPatterns};
use super::{KindDefinition, PolicyKind};
use crate::diagnostic::{Diagnostic, OUT_OF_RANGE};
use crate::rules_schema::{FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;
use crate::tools::KnownTool;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "retry",
    doc: "Retries failed calls with exponential backoff. It retries only tools whose hints declare them idempotent or read-only, unless \
          the policy sets `idempotent`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| Retry::read(node, reader).map(|retry| PolicyKind::Retry(Box::new(retry))),
};

static RECORD: RecordShape = RecordShape {
    name: "retry",
    doc: "The number of attempts, the backoff, and the errors that are retried.",
    fields: &[
        FieldShape::required(
            "attempts",
            Shape::Integer(2, 100),
            "Maximum number of attempts, the first one included.",
        ),
        FieldShape::optional(
            "backoff",
            Shape::Record(&BACKOFF),
            "The pauses between attempts. Default: 200ms, doubled each time, at most 10s.",
        ),
        error_patterns::ON,
        FieldShape::optional(
            "idempotent",
            Shape::Bool,
            "Whether the tool is idempotent, so that a retry is safe. Default: the tool's hints (`idempotentHint`, `readOnlyHint`); a tool \
             without hints is not retried.",
        ),
    ],
};

static BACKOFF: RecordShape = RecordShape {
    name: "backoff",
    doc: "The pauses between attempts.",
    fields: &[
        FieldShape::optional(
            "initial",
            Shape::String("a duration such as `200ms`"),
            "The first pause. Default: 200ms.",
        ),
        FieldShape::optional(
            "factor",
            Shape::Number,
            "The factor by which each pause grows, from 1 to 100. Default: 2.",
        ),
        FieldShape::optional(
            "max",
            Shape::String("a duration such as `5s`"),
            "The maximum pause. Default: 10s.",
        ),
        FieldShape::optional(
            "jitter",
            Shape::Bool,
            "Whether each pause is shortened at random, by up to half, so that clients do not retry all at once. Default: `true`.",
        ),
    ],
};

/// Settings of a `retry` policy.
#[derive(Debug)]
pub struct Retry {
    /// The maximum number of attempts, the first one included.
    pub attempts: u32,
    /// The errors that are retried.
    pub on: ErrorPatterns,
    backoff: Backoff,
    idempotent: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Backoff {
    initial: Duration,
    factor: f64,
    max: Duration,
    jitter: bool,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(200), factor: 2.0, max: Duration::from_secs(10), jitter: true }
    }
}

impl Retry {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let attempts =
            node.get("attempts").and_then(YamlNode::as_number).and_then(crate::json::Number::as_u64);
        let on = ErrorPatterns::read(node, reader);
        let backoff = node.get("backoff").map_or_else(Backoff::default, |node| Backoff::read(node, reader));
        let idempotent = node.get("idempotent").and_then(YamlNode::as_bool);
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok())?;
        (reader.problem_count() == reported).then_some(Self { attempts, on, backoff, idempotent })
    }

    /// Whether a retry of this tool is safe, by the policy or else by the tool's hints.
    pub fn is_safe_for(&self, tool: Option<&KnownTool>) -> bool {
        let hint = |name: &str| {
            let annotations = tool.and_then(|tool| tool.descriptor.annotations.as_ref());
            annotations.and_then(|annotations| annotations.get(name)?.as_bool()) == Some(true)
        };
        let is_idempotent = tool.is_some_and(|tool| tool.descriptor.idempotent);
        self.idempotent.unwrap_or_else(|| is_idempotent || hint("idempotentHint") || hint("readOnlyHint"))
    }

    /// Returns the pause after an attempt (the first is 1). `random` is from 0 to 1.
    pub fn pause(&self, attempt: u32, random: f64) -> Duration {
        let Backoff { initial, factor, max, jitter } = self.backoff;
        let steps = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = (initial.as_secs_f64() * factor.powi(steps)).min(max.as_secs_f64());
        let share = if jitter { 1.0 - random.clamp(0.0, 1.0) / 2.0 } else { 1.0 };
        Duration::try_from_secs_f64(seconds * share).unwrap_or(max)
    }
}

impl Backoff {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Self {
        let default = Self::default();
        let initial =
            node.get("initial").and_then(|node| reader.read_duration(node)).unwrap_or(default.initial);
        let max = node.get("max").and_then(|node| reader.read_duration(node));
        let factor = node.get("factor").and_then(|node| {
            let factor = node.as_number()?.as_f64()?;
            if !(1.0..=100.0).contains(&factor) {
                reader.report(
                    Diagnostic::new(
                        &OUT_OF_RANGE,
                        node.span,
                        format!("`factor` must be from 1 to 100; this is {factor}"),
                    )
                    .with_help("1 keeps the pause constant, 2 doubles it each time"),
                );
            }
            Some(factor)
        });
        if let (Some(max), Some(max_node)) = (max, node.get("max"))
            && max < initial
        {
            reader.report(
                Diagnostic::new(&OUT_OF_RANGE, max_node.span, "`max` is shorter than `initial`")
                    .with_help("make `max` longer, or `initial` shorter"),
            );
        }
        Self {
            initial,
            factor: factor.unwrap_or(default.factor),
            max: max.unwrap_or(default.max.max(initial)),
            jitter: node.get("jitter").and_then(YamlNode::as_bool).unwrap_or(default.jitter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_maximum_and_jitter_only_shortens_them() {
        let backoff = Backoff {
            initial: Duration::from_millis(100),
            factor: 3.0,
            max: Duration::from_secs(2),
            jitter: true,
        };
        let retry = Retry { attempts: 9, on: ErrorPatterns::default(), backoff, idempotent: None };
        let pauses =
            |random| [1, 2, 3, 4, 100, u32::MAX].map(|attempt| retry.pause(attempt, random).as_millis());
        assert_eq!(pauses(0.0), [100, 300, 900, 2000, 2000, 2000]);
        assert_eq!(pauses(1.0), [50, 150, 450, 1000, 1000, 1000]);
    }
}
