//! `deny`: refuses a call.

use super::policy_script::{self, SCRIPT};
use super::refusal::{Refusal, RefusalCode};
use super::{KindDefinition, PolicyKind};
use crate::call::reason_code;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};
use crate::script::PolicyScript;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "deny",
    doc: "Denies matching calls. It overrides every other decision except `halt`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: true,
    applies_to_run: false,
    read: |node, reader| {
        let refusal = Refusal::read(node, reader, &CODE);
        let script = policy_script::read(node, reader)?;
        Some(PolicyKind::Deny(Box::new(Deny { refusal: refusal?, script })))
    },
};

static RECORD: RecordShape = RecordShape {
    name: "deny",
    doc: "The message and the reason code of the denial.",
    fields: &[
        FieldShape::optional(
            "message",
            Shape::String("a template"),
            "The message to the agent, such as \"Not outside {{ context.tenant }}\". Default: the policy's `description`.",
        ),
        FieldShape::optional(
            "code",
            Shape::String("a reason code"),
            "Your own reason code, for programs. Default: `denied`.",
        ),
        SCRIPT,
    ],
};

const CODE: RefusalCode = RefusalCode { default: reason_code::DENIED, example: "outside_tenant" };

/// Settings of a `deny` policy.
#[derive(Debug)]
pub struct Deny {
    /// The message and the reason code.
    pub refusal: Refusal,
    /// Decides whether it applies.
    pub script: Option<Box<PolicyScript>>,
}
