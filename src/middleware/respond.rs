//! `respond`: answers in the tool's place.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::json::Value;

pub(super) static KIND: KindEntry = KindEntry {
    name: "respond",
    doc: "Answers matching calls in the tool's place. What gate denies or suspends it does not answer.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, _| Some(Kind::Respond(Respond { output: node.get("output")?.to_json() })),
};

static RECORD: Record = Record {
    name: "respond",
    doc: "The answer.",
    fields: &[Field::required("output", Shape::Any, "The result that the agent gets.")],
};

/// A `respond` policy's own part.
#[derive(Debug)]
pub struct Respond {
    /// The result.
    pub output: Value,
}
