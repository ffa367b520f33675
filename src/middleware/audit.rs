//! `audit`: records selected fields of a call with its outcome, for the audit log.

use super::{KindDefinition, PolicyKind};
use crate::call::CallView;
use crate::json::Value;
use crate::matcher::ValueSource;
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
        let fields: Vec<Option<ValueSource>> =
            nodes.iter().map(|node| ValueSource::read(node, reader)).collect();
        Some(PolicyKind::Audit(Audit { fields: fields.into_iter().collect::<Option<_>>()? }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "audit",
    doc: "The recorded fields.",
    fields: &[FieldShape::optional(
        "fields",
        Shape::NonEmptyList(&Shape::String("a JSONPath such as `$.input.amount`, or an expression")),
        "The fields to record. Default: only that the policy matched.",
    )],
};

/// Settings of an `audit` policy.
#[derive(Debug)]
pub struct Audit {
    /// The recorded fields.
    pub fields: Vec<ValueSource>,
}

impl Audit {
    /// Returns the recorded fields with their values, an array for a path with several values. Absent values are omitted.
    pub fn recorded_values<'a>(
        &'a self,
        view: CallView<'a>,
    ) -> impl Iterator<Item = (&'a ValueSource, Value)> {
        self.fields.iter().filter_map(move |source| {
            let value = source.with_values(&view, |values| match values {
                Ok([only]) if source.is_singular() => Some(only.to_json()),
                Ok(values) if !source.is_singular() => {
                    Some(values.iter().map(|value| value.to_json()).collect())
                }
                _ => None,
            })?;
            Some((source, value))
        })
    }
}
