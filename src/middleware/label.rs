//! `label`: marks the session; labels are only ever added.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::call::SessionState;

pub(super) static KIND: KindEntry = KindEntry {
    name: "label",
    doc: "Marks the session once a matching call has run; later calls test `$.session.labels`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Forming,
    after_tool: |_| true,
    needs_matcher: false,
    of_run: false,
    read: |node, _| {
        let labels = node.get("add")?.items()?.iter().map(|label| label.as_str().map(str::to_owned));
        Some(Kind::Label(Label { add: labels.collect::<Option<_>>()? }))
    },
};

static RECORD: Record = Record {
    name: "label",
    doc: "The labels.",
    fields: &[Field::required("add", Shape::List(&Shape::Text("a label")), "The labels to add.")],
};

/// A `label` policy's own part.
#[derive(Debug)]
pub struct Label {
    /// The labels to add.
    pub add: Vec<String>,
}

impl Label {
    /// Adds the labels.
    pub fn apply(&self, session: &mut SessionState) {
        for label in &self.add {
            session.add_label(label);
        }
    }

    /// Notes that it could not be decided whether the session has the labels: adding them may lift what they are to
    /// stop, and not adding them may lift what they are to allow.
    pub fn unsettle(&self, session: &mut SessionState) {
        session.unsettle("labels");
    }
}
