//! `respond`: returns a fixed result instead of calling the tool.

use super::{KindDefinition, PolicyKind};
use crate::json::Value;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "respond",
    doc: "Returns a fixed result for matching calls instead of calling the tool. Calls that are denied or suspended in the gate phase stay \
          denied or suspended.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Permitting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, _| Some(PolicyKind::Respond(Respond { output: node.get("output")?.to_json() })),
};

static RECORD: RecordShape = RecordShape {
    name: "respond",
    doc: "The result.",
    fields: &[FieldShape::required("output", Shape::Any, "The result that the agent gets.")],
};

/// Settings of a `respond` policy.
#[derive(Debug)]
pub struct Respond {
    /// The result.
    pub output: Value,
}
