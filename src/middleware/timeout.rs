//! `timeout`: cancels calls that take too long.

use std::time::Duration;

use super::{KindDefinition, PolicyKind};
use crate::rules_schema::{Polarity, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "timeout",
    doc: "Cancels matching calls that take longer than this duration, such as `30s`. The agent gets an error that says that the tool may \
          still have taken effect. `retry` and `recover` can handle it as an error of kind `timeout`.",
    shape: Shape::String("a duration such as `30s`"),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        Some(PolicyKind::Timeout(Timeout {
            after: reader.read_duration(node)?,
            source: node.as_str()?.to_owned(),
        }))
    },
};

/// Settings of a `timeout` policy.
#[derive(Debug)]
pub struct Timeout {
    /// The maximum duration of a call.
    pub after: Duration,
    /// The duration as written.
    pub source: String,
}
