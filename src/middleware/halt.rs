//! `halt`: stops the run. Refuses the call and every later call of the session.

use super::policy_script::{self, SCRIPT};
use super::{KindDefinition, PolicyKind};
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};
use crate::script::PolicyScript;
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "halt",
    doc: "Stops the run: denies the matching call and every later call of the session. It overrides every other decision.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: false,
    read: |node, reader| {
        let message = match node.get("message") {
            Some(message) => Some(reader.read_template(message, &[])?),
            None => None,
        };
        let script = policy_script::read(node, reader)?;
        Some(PolicyKind::Halt(Halt { message, script }))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "halt",
    doc: "The message of the halt.",
    fields: &[
        FieldShape::optional(
            "message",
            Shape::String("a template"),
            "The message to the agent. Default: the policy's `description`.",
        ),
        SCRIPT,
    ],
};

/// Settings of a `halt` policy.
#[derive(Debug)]
pub struct Halt {
    /// The message to the agent.
    pub message: Option<Template>,
    /// Decides whether it applies.
    pub script: Option<Box<PolicyScript>>,
}
