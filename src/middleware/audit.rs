//! `audit`: records selected fields of a call with its outcome, for the audit log.

use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::json::Value;
use crate::path::Path;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "audit",
    doc: "Records fields of matching calls in their outcomes, for the audit log. It applies to every outcome, denials included.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let nodes = node.get("fields").and_then(|fields| fields.items()).unwrap_or_default();
        let fields: Vec<Option<Path>> = nodes.iter().map(|node| reader.read_path(node)).collect();
        Some(PolicyKind::Audit(Audit { fields: fields.into_iter().collect::<Option<_>>()? }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "audit",
    doc: "The recorded fields.",
    fields: &[FieldShape::optional(
        "fields",
        Shape::NonEmptyList(&Shape::String("a JSONPath such as `$.input.amount`")),
        "The fields to record. Default: only that the policy matched.",
    )],
};

/// Settings of an `audit` policy.
#[derive(Debug)]
pub struct Audit {
    /// The paths of the recorded fields.
    pub fields: Vec<Path>,
}

impl Audit {
    /// Returns the recorded paths with their values, an array for a path with several values. Absent values are omitted.
    pub fn recorded_values<'a>(&'a self, view: CallView<'a>) -> impl Iterator<Item = (&'a Path, Value)> {
        self.fields.iter().filter_map(move |path| {
            let nodes = path.nodes(&view).ok()?;
            let value = if path.is_singular() {
                nodes.first()?.to_json()
            } else {
                nodes.iter().map(|node| node.to_json()).collect()
            };
            Some((path, value))
        })
    }
}
