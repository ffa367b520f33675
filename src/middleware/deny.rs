//! `deny`: refuses a call.

use super::{KindDefinition, PolicyKind};
use crate::call::reason_code;
use crate::diagnostic::{Diagnostic, EMPTY_VALUE};
use crate::rules_schema::{FieldShape, Polarity, RecordShape, Shape};
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "deny",
    doc: "Denies matching calls. It overrides every other decision except `halt`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: true,
    applies_to_run: false,
    read: |node, reader| {
        let message = match node.get("message") {
            Some(message) => Some(reader.read_template(message, &[])?),
            None => None,
        };
        let code = match node.get("code") {
            Some(code) if code.as_str() == Some("") => {
                reader.report(
                    Diagnostic::new(&EMPTY_VALUE, code.span, "`code` is empty")
                        .with_help("write for example `outside_tenant`"),
                );
                return None;
            }
            Some(code) => code.as_str()?.to_owned(),
            None => reason_code::DENIED.to_owned(),
        };
        Some(PolicyKind::Deny(Deny { message, code }))
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
    ],
};

/// Settings of a `deny` policy.
#[derive(Debug)]
pub struct Deny {
    /// The message to the agent.
    pub message: Option<Template>,
    /// The reason code.
    pub code: String,
}
