//! `halt`: the call must not run, nor any later one of the session.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "halt",
    doc: "Stops the run: the matching call is refused, and so is every later call of the session.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: false,
    read: |node, reader| {
        let message = match node.get("message") {
            Some(message) => Some(reader.template(message, &[])?),
            None => None,
        };
        Some(Kind::Halt(Halt { message }))
    },
};

static RECORD: Record = Record {
    name: "halt",
    doc: "What the agent is told.",
    fields: &[Field::optional(
        "message",
        Shape::Text("a template"),
        "What the agent is told. Without it: the policy's description.",
    )],
};

/// A `halt` policy's own part.
#[derive(Debug)]
pub struct Halt {
    /// What the agent is told.
    pub message: Option<Template>,
}
