//! `deny`: the call must not run.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Record, Shape};
use crate::call::reason_code;
use crate::diagnostic::{Diagnostic, EMPTY_VALUE};
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "deny",
    doc: "Refuses matching calls. Stricter than everything but `halt`.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: true,
    of_run: false,
    read: |node, reader| {
        let message = match node.get("message") {
            Some(message) => Some(reader.template(message, &[])?),
            None => None,
        };
        let code = match node.get("code") {
            Some(code) if code.as_str() == Some("") => {
                reader.report(
                    Diagnostic::new(&EMPTY_VALUE, code.span, "`code` is empty")
                        .help("write for example `outside_tenant`"),
                );
                return None;
            }
            Some(code) => code.as_str()?.to_owned(),
            None => reason_code::DENIED.to_owned(),
        };
        Some(Kind::Deny(Deny { message, code }))
    },
};

static RECORD: Record = Record {
    name: "deny",
    doc: "What the agent is told.",
    fields: &[
        Field::optional(
            "message",
            Shape::Text("a template"),
            "What the agent is told, such as \"Not outside {{ context.tenant }}\". Without it: the policy's description.",
        ),
        Field::optional(
            "code",
            Shape::Text("a word"),
            "A code of your own that programs can rely on. Without it: `denied`.",
        ),
    ],
};

/// A `deny` policy's own part.
#[derive(Debug)]
pub struct Deny {
    /// What the agent is told.
    pub message: Option<Template>,
    /// The reason's code.
    pub code: String,
}
