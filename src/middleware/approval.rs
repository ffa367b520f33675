//! `approval`: a person must say yes first.

use std::time::Duration;

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY};
use crate::path::Path;
use crate::source::Node;
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "approval",
    doc: "Suspends matching calls until a person has approved them. Every approval that matches is part of the one request.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: true,
    read: |node, reader| Approval::read(node, reader).map(Kind::Approval),
};

static RECORD: Record = Record {
    name: "approval",
    doc: "The question, and who may answer it how.",
    fields: &[
        Field::optional(
            "message",
            Shape::Text("a template"),
            "The question, such as \"Refund {{ input.amount }}?\". Without it: the policy's description.",
        ),
        Field::optional(
            "expires",
            Shape::Text("a span of time such as `24h`"),
            "How long the question stands. Without it: for ever.",
        ),
        Field::optional(
            "approvers",
            Shape::List(&Shape::Text("a principal or role")),
            "Who may answer: verified principals or roles. Self-approval is refused.",
        ),
        Field::optional("quorum", Shape::Integer(1, 100), "How many approvals it takes. Without it: 1."),
        Field::optional(
            "edits",
            Shape::List(&Shape::Text("a JSONPath below `$.input`")),
            "Which arguments the approver may change. Without it: none.",
        ),
        Field::optional("remember", Shape::Record(&REMEMBER), "Lets an approval stand for later calls, too."),
    ],
};

static REMEMBER: Record = Record {
    name: "remember",
    doc: "A grant for later calls.",
    fields: &[
        Field::required(
            "scope",
            Shape::Word(&[
                ("arguments", "calls of the same tool with exactly the same arguments"),
                ("fields", "calls of the same tool with the same values in `fields`"),
            ]),
            "Which later calls the approval stands for.",
        ),
        Field::optional(
            "fields",
            Shape::List(&Shape::Text("a JSONPath below `$.input`")),
            "For `scope: fields`: which arguments must be the same.",
        ),
        Field::required("for", Shape::Text("a span of time such as `8h`"), "How long it stands."),
    ],
};

/// An `approval` policy's own part.
#[derive(Debug)]
pub struct Approval {
    /// The question.
    pub message: Option<Template>,
    /// How long it stands.
    pub expires: Option<Duration>,
    /// Who may answer; anyone whom the host lets answer, if empty.
    pub approvers: Vec<String>,
    /// How many approvals it takes.
    pub quorum: u32,
    /// Which arguments the approver may change.
    pub edits: Vec<Path>,
    /// Whether the approval stands for later calls.
    pub remember: Option<Remember>,
}

/// A grant for later calls.
#[derive(Debug)]
pub struct Remember {
    /// Which arguments must be the same; all of them, if empty.
    pub fields: Vec<Path>,
    /// How long it stands.
    pub duration: Duration,
}

impl Remember {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let fields = node.get("fields").map(|node| reader.input_paths(node)).unwrap_or_default();
        let scope = node.get("scope")?;
        match (scope.as_str()?, node.get("fields")) {
            ("fields", None) => reader.report(
                Diagnostic::new(
                    &MISSING_KEY,
                    scope.span,
                    "`scope: fields` needs the `fields` that must be the same",
                )
                .help("add for example `fields: [$.input.customer]`, or write `scope: arguments`"),
            ),
            ("arguments", Some(fields)) => reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    fields.span,
                    "`fields` means nothing with `scope: arguments`",
                )
                .label(scope.span, "all arguments must be the same")
                .help("write `scope: fields`, or leave `fields` out"),
            ),
            _ => {}
        }
        Some(Self { fields, duration: reader.duration(node.get("for")?)? })
    }
}

impl Approval {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let reported = reader.reported();
        let message = node.get("message").and_then(|node| reader.template(node, &[]));
        let expires = node.get("expires").and_then(|node| reader.duration(node));
        let edits = node.get("edits").map(|node| reader.input_paths(node)).unwrap_or_default();
        let remember = node.get("remember").and_then(|node| Remember::read(node, reader));
        let names = node.get("approvers").and_then(Node::items).unwrap_or_default();
        let approvers = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let quorum = node.get("quorum").and_then(Node::as_number).and_then(serde_json::Number::as_u64);
        (reader.reported() == reported).then_some(Self {
            message,
            expires,
            approvers,
            quorum: quorum.and_then(|quorum| u32::try_from(quorum).ok()).unwrap_or(1),
            edits,
            remember,
        })
    }
}
