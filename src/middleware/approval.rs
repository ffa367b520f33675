//! `approval`: a person must say yes first.

use std::time::Duration;

use super::validate::read_schema;
use super::{Kind, KindEntry};
use crate::approval::ApproverEntry;
use crate::authoring::{Field, Polarity, Reader, Record, Shape};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, INVALID_PATH, MISSING_KEY};
use crate::path::{Path, Step};
use crate::principal::Comparison;
use crate::schema::ArgumentSchema;
use crate::source::Node;
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "approval",
    doc: "Suspends matching calls until a person has approved them. Every approval that matches is part of the one request.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: true,
    of_run: false,
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
            Shape::List(&Shape::Text("a principal, or `role:NAME`")),
            "Who may answer: verified principals by name, and everybody with a role, as in `role:finance`. The host must say for \
             whom the agent acts (`context.principal`): nobody answers for themselves.",
        ),
        Field::optional(
            "quorum",
            Shape::Integer(1, 100),
            "How many approvals it takes, each of another principal. Without it: 1.",
        ),
        Field::optional(
            "anonymous",
            Shape::Word(&[
                ("refuse", "an answer in the state or in a host's inbox needs the name of who gives it"),
                ("allow", "an answer there counts without a name"),
            ]),
            "Whether an approval in the state counts without the name of the approver. Without it: `refuse`. Whoever sits at the client of a \
             gateway answers there without a name either way, unless `approvers` or `quorum` is set.",
        ),
        Field::optional(
            "edits",
            Shape::Either(&[Shape::List(&Shape::Text("a JSONPath below `$.input`")), Shape::Record(&EDITS)]),
            "Which arguments the approver may change. Without it: none. They must fit the tool's own schema, and go through \
             normalise and gate again.",
        ),
        Field::optional("remember", Shape::Record(&REMEMBER), "Lets an approval stand for later calls, too."),
        Field::optional(
            "present",
            Shape::Word(&[
                ("all", "every call of a round that needs an approval asks for it"),
                (
                    "first",
                    "of one round one call asks; the others are not run, and the model may ask for them again",
                ),
            ]),
            "How the questions of one round are put. Without it: `all`.",
        ),
        Field::optional("card", Shape::Record(&CARD), "The wording of the card that people are shown."),
    ],
};

static EDITS: Record = Record {
    name: "edits",
    doc: "Which arguments the approver may change, and into what.",
    fields: &[
        Field::required(
            "fields",
            Shape::List(&Shape::Text("a JSONPath below `$.input`")),
            "Which arguments the approver may change.",
        ),
        Field::optional(
            "schema",
            Shape::Any,
            "What the changed arguments must fit: `tool` for the tool's own schema, a JSON Schema written here, or \
             `{ file: x.json }` beside the rules file. Without it: the tool's own schema, where it is known.",
        ),
    ],
};

static CARD: Record = Record {
    name: "card",
    doc: "The wording of the card that people are shown.",
    fields: &[
        Field::optional(
            "title",
            Shape::Text("a template"),
            "What stands above it. Without it: `Approve TOOL?`.",
        ),
        Field::optional(
            "approve",
            Shape::Text("a text"),
            "What the button that approves says. Without it: `Approve`.",
        ),
        Field::optional(
            "deny",
            Shape::Text("a text"),
            "What the button that denies says. Without it: `Deny`.",
        ),
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
    /// Who may answer, as written ([`ApproverEntry`]); anyone whom the host lets answer, if empty.
    pub approvers: Vec<String>,
    /// How principals are compared.
    pub principals: Comparison,
    /// How many approvals it takes.
    pub quorum: u32,
    /// Whether an answer in the store counts without a name.
    pub anonymous: bool,
    /// Which arguments the approver may change.
    pub edits: Edits,
    /// Whether the approval stands for later calls.
    pub remember: Option<Remember>,
    /// Whether of one round only one call asks.
    pub one_at_a_time: bool,
    /// The wording of the card.
    pub card: CardTemplates,
}

/// Which arguments the approver may change.
#[derive(Debug, Default)]
pub struct Edits {
    /// Where they stand; each path leads to one place.
    pub paths: Vec<Path>,
    /// What all arguments must then fit, beside the tool's own schema.
    pub schema: Option<ArgumentSchema>,
    /// The tool's own schema must be known.
    pub needs_tool_schema: bool,
}

/// The wording of a card; what is missing has words of its own.
#[derive(Debug, Default)]
pub struct CardTemplates {
    /// What stands above it.
    pub title: Option<Template>,
    /// What the button that approves says.
    pub approve: Option<String>,
    /// What the button that denies says.
    pub deny: Option<String>,
}

impl Edits {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let fields = node.get("fields").unwrap_or(node);
        let paths = reader.input_paths(fields);
        for (path, item) in paths.iter().zip(fields.items().unwrap_or_default()) {
            let plain = |step: &Step| !matches!(step, Step::Index(index) if *index < 0);
            if !path.steps().is_some_and(|steps| !steps.is_empty() && steps.iter().all(plain)) {
                reader.report(
                    Diagnostic::new(&INVALID_PATH, item.span, "this does not name one argument")
                        .help("name each argument that may be changed, as in `$.input.note`"),
                );
            }
        }
        let Some(schema) = node.get("schema") else { return Some(Self { paths, ..Self::default() }) };
        let schema = read_schema(schema, reader)?;
        Some(Self { paths, needs_tool_schema: schema.is_none(), schema })
    }
}

impl CardTemplates {
    /// Whether the policy says nothing of the card.
    pub fn is_empty(&self) -> bool {
        self.title.is_none() && self.approve.is_none() && self.deny.is_none()
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Self {
        let text = |name: &str| node.get(name).and_then(Node::as_str).map(str::to_owned);
        let (approve, deny) = (text("approve"), text("deny"));
        Self { title: node.get("title").and_then(|node| reader.template(node, &[])), approve, deny }
    }
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
        let edits = node.get("edits").and_then(|node| Edits::read(node, reader)).unwrap_or_default();
        let card = node.get("card").map(|node| CardTemplates::read(node, reader)).unwrap_or_default();
        let remember = node.get("remember").and_then(|node| Remember::read(node, reader));
        let approvers = read_approvers(node, reader);
        let quorum = node.get("quorum").and_then(Node::as_number).and_then(crate::json::Number::as_u64);
        let anonymous = node.get("anonymous").filter(|word| word.as_str() == Some("allow"));
        let needs_name = match (approvers.is_empty(), quorum) {
            (false, _) => node.get("approvers").map(|approvers| (approvers, "`approvers` needs names")),
            (true, Some(2..)) => {
                node.get("quorum").map(|quorum| (quorum, "several approvers are told apart by their names"))
            }
            (true, _) => None,
        };
        if let (Some(anonymous), Some((other, why))) = (anonymous, needs_name) {
            reader.report(
                Diagnostic::new(&CONFLICTING_KEYS, anonymous.span, "no answer without a name counts here")
                    .label(other.span, why)
                    .help("remove `anonymous`, or write `anonymous: refuse`"),
            );
        }
        (reader.reported() == reported).then_some(Self {
            message,
            expires,
            approvers,
            principals: reader.principals,
            quorum: quorum.and_then(|quorum| u32::try_from(quorum).ok()).unwrap_or(1),
            anonymous: anonymous.is_some(),
            edits,
            remember,
            one_at_a_time: node.get("present").and_then(Node::as_str) == Some("first"),
            card,
        })
    }
}

fn read_approvers(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    let mut approvers = Vec::new();
    for entry in node.get("approvers").and_then(Node::items).unwrap_or_default() {
        let Some(text) = entry.as_str() else { continue };
        if !ApproverEntry::parse(text).is_valid() {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, entry.span, "this entry of `approvers` names nobody")
                    .help("write the name of a principal, or `role:NAME` for everybody with a role"),
            );
        }
        approvers.push(text.to_owned());
    }
    approvers
}
