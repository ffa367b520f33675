//! `timeout`: gives up a tool that takes too long.

use std::time::Duration;

use super::{Kind, KindEntry};
use crate::authoring::{Polarity, Shape};

pub(super) static KIND: KindEntry = KindEntry {
    name: "timeout",
    doc: "Cancels matching calls that take longer than this, such as `30s`. The agent is told that the tool may still have taken \
          effect; errors of kind `timeout` can be retried or recovered.",
    shape: Shape::Text("a span of time such as `30s`"),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| {
        Some(Kind::Timeout(Timeout { after: reader.duration(node)?, words: node.as_str()?.to_owned() }))
    },
};

/// A `timeout` policy's own part.
#[derive(Debug)]
pub struct Timeout {
    /// How long the call may take.
    pub after: Duration,
    /// The same as it is written.
    pub words: String,
}
