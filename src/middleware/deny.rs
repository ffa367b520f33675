//! `deny`: refuses a call.

use super::refusal::{Refusal, RefusalCode};
use super::{KindDefinition, PolicyKind};
use crate::call::reason_code;
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "deny",
    doc: "Denies matching calls. It overrides every other decision except `halt`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: true,
    applies_to_run: false,
    read: |node, reader| Some(PolicyKind::Deny(Deny { refusal: Refusal::read(node, reader, &CODE)? })),
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
    ],
};

const CODE: RefusalCode = RefusalCode { default: reason_code::DENIED, example: "outside_tenant" };

/// Settings of a `deny` policy.
#[derive(Debug)]
pub struct Deny {
    /// The message and the reason code.
    pub refusal: Refusal,
}
