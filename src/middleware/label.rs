//! `label`: adds labels to the session. Labels are never removed.

use super::{KindDefinition, PolicyKind};
use crate::call::SessionState;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "label",
    doc: "Adds labels to the session after a matching call has run. Later calls can test `$.session.labels`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    reads_result: |_| true,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, _| {
        let labels = node.get("add")?.items()?.iter().map(|label| label.as_str().map(str::to_owned));
        Some(PolicyKind::Label(Label { add: labels.collect::<Option<_>>()? }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "label",
    doc: "The labels.",
    fields: &[FieldShape::required(
        "add",
        Shape::NonEmptyList(&Shape::String("a label")),
        "The labels to add.",
    )],
};

/// Settings of a `label` policy.
#[derive(Debug)]
pub struct Label {
    /// The labels to add.
    pub add: Vec<String>,
}

impl Label {
    /// Adds the labels to the session.
    pub fn apply(&self, session: &mut SessionState) {
        for label in &self.add {
            session.add_label(label);
        }
    }

    /// Marks the labels of the session as unknown. Neither adding nor omitting them would be safe: policies may permit or restrict
    /// calls of labelled sessions.
    pub fn mark_unknown(&self, session: &mut SessionState) {
        session.mark_unknown("labels");
    }
}
