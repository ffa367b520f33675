//! `approval`: human in the loop. Suspends calls until a person approves them.

use std::time::Duration;

use super::policy_script::{self, SCRIPT};
use super::validate::read_schema;
use super::{KindDefinition, PolicyKind};
use crate::approval::ApproverEntry;
use crate::argument_schema::ArgumentSchema;
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, EMPTY_VALUE, INVALID_PATH, MISSING_KEY};
use crate::path::{Path, PathStep};
use crate::principal::PrincipalComparison;
use crate::rules_schema::{CONSTANT, FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::script::PolicyScript;
use crate::source::YamlNode;
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "approval",
    doc: "Human in the loop: suspends matching calls until a person approves them. If several `approval` policies match a call, one \
          request covers all of them.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: true,
    applies_to_run: false,
    read: |node, reader| Approval::read(node, reader).map(Box::new).map(PolicyKind::Approval),
};

/// The keys of a request, which limits have, too.
static REQUEST: [FieldShape; 10] = [
    FieldShape::optional(
        "message",
        Shape::String("a template"),
        "The question to the approver, such as \"Refund {{ input.amount }}?\". Default: the policy's `description`.",
    ),
    FieldShape::optional(
        "expires",
        Shape::Either(&[Shape::String("a duration such as `24h`"), CONSTANT]),
        "How long the request can be answered. Default: it does not expire.",
    ),
    FieldShape::optional(
        "approvers",
        Shape::Either(&[Shape::NonEmptyList(&Shape::String("a principal, or `role:NAME`")), CONSTANT]),
        "Who may approve: verified principals by name, and everybody with a role, as in `role:finance`. The host must set \
         `context.principal`, the principal for whom the agent acts: nobody can approve their own request.",
    ),
    FieldShape::optional(
        "quorum",
        Shape::Either(&[Shape::Integer(1, 100), CONSTANT]),
        "The number of approvals required, each from a different principal. Default: 1.",
    ),
    FieldShape::optional(
        "anonymous",
        Shape::Word(&[
            ("refuse", "an answer in the state or in a host's inbox needs the name of the approver"),
            ("allow", "an answer there counts without a name"),
        ]),
        "Whether an anonymous approval in the state counts. Default: `refuse`. The user of a gateway's client can always answer there \
         without a name, unless `approvers` or `quorum` is set.",
    ),
    FieldShape::optional(
        "answer_by_link",
        Shape::Word(&[
            ("refuse", "who follows a link of a message must sign in to answer"),
            ("allow", "the link that an approver got by e-mail answers in their name, without signing in"),
        ]),
        "Whether the link of an e-mail proves who answers. Default: `refuse`. Every policy that requires the approval must allow it.",
    ),
    FieldShape::optional(
        "edits",
        Shape::Either(&[
            Shape::NonEmptyList(&Shape::String("a JSONPath below `$.input`")),
            Shape::Record(&EDITS),
        ]),
        "The arguments that the approver may change. Default: none. The changed arguments must match the tool's own schema, and the \
         call is evaluated again from the normalise phase.",
    ),
    FieldShape::optional(
        "remember",
        Shape::Record(&REMEMBER),
        "Makes an approval a grant that covers later calls, too.",
    ),
    FieldShape::optional(
        "present",
        Shape::Word(&[
            ("all", "every call of a round that requires approval requests it"),
            (
                "first",
                "one call of a round requests it; the others do not run, and the model may call them again",
            ),
        ]),
        "How the approvals of one round are requested. Default: `all`.",
    ),
    FieldShape::optional("card", Shape::Record(&CARD), "The texts of the card that approvers see."),
];

static RECORD: RecordShape = RecordShape {
    name: "approval",
    doc: "The approval request, its approvers, and what they may do.",
    fields: &{
        let [message, expires, approvers, quorum, anonymous, by_link, edits, remember, present, card] =
            REQUEST;
        [message, expires, approvers, quorum, anonymous, by_link, edits, remember, present, card, SCRIPT]
    },
};

/// The request of a limit that is exceeded.
pub(super) static LIMIT_APPROVAL: RecordShape = RecordShape {
    name: "limit_approval",
    doc: "The approval request of a call that exceeds a limit, its approvers, and what they may do.",
    fields: &REQUEST,
};

static EDITS: RecordShape = RecordShape {
    name: "edits",
    doc: "The arguments that the approver may change, and a schema for the result.",
    fields: &[
        FieldShape::required(
            "fields",
            Shape::NonEmptyList(&Shape::String("a JSONPath below `$.input`")),
            "The arguments that the approver may change.",
        ),
        FieldShape::optional(
            "schema",
            Shape::Any,
            "The schema of the changed arguments: `tool` for the tool's own schema, an inline JSON Schema, or `{ file: x.json }` next to \
             the rules file. Default: the tool's own schema, if it is known.",
        ),
    ],
};

static CARD: RecordShape = RecordShape {
    name: "card",
    doc: "The texts of the card that approvers see.",
    fields: &[
        FieldShape::optional("title", Shape::String("a template"), "The title. Default: `Approve TOOL?`."),
        FieldShape::optional(
            "approve",
            Shape::String("a string"),
            "The label of the approve button. Default: `Approve`.",
        ),
        FieldShape::optional(
            "deny",
            Shape::String("a string"),
            "The label of the deny button. Default: `Deny`.",
        ),
    ],
};

static REMEMBER: RecordShape = RecordShape {
    name: "remember",
    doc: "A grant for later calls.",
    fields: &[
        FieldShape::required(
            "scope",
            Shape::Word(&[
                ("arguments", "calls of the same tool with exactly the same arguments"),
                ("fields", "calls of the same tool with the same values in `fields`"),
            ]),
            "The later calls that the grant covers.",
        ),
        FieldShape::optional(
            "fields",
            Shape::NonEmptyList(&Shape::String("a JSONPath below `$.input`")),
            "For `scope: fields`: the arguments that must be the same.",
        ),
        FieldShape::required(
            "for",
            Shape::Either(&[Shape::String("a duration such as `8h`"), CONSTANT]),
            "How long the grant is valid.",
        ),
    ],
};

/// Settings of an `approval` policy, or of the approvals of a limit.
#[derive(Debug)]
pub struct Approval {
    /// The question to the approver.
    pub message: Option<Template>,
    /// How long the request can be answered.
    pub expires: Option<Duration>,
    /// Who may approve, as written ([`ApproverEntry`]). If empty, everyone whom the host permits.
    pub approvers: Vec<String>,
    /// How principals are compared.
    pub principals: PrincipalComparison,
    /// The number of approvals required.
    pub quorum: u32,
    /// Whether an anonymous answer in the store counts.
    pub allows_anonymous: bool,
    /// Whether the link of an e-mail proves who answers.
    pub allows_answer_by_link: bool,
    /// The arguments that the approver may change.
    pub edits: EditableArguments,
    /// The grant for later calls, if the policy has one.
    pub remember: Option<GrantSettings>,
    /// Whether only one call of a round requests approval.
    pub one_at_a_time: bool,
    /// The texts of the card.
    pub card: CardTemplates,
    /// Decides whether it applies.
    pub script: Option<Box<PolicyScript>>,
}

/// The arguments that the approver may change.
#[derive(Debug, Default)]
pub struct EditableArguments {
    /// The paths of the arguments. Each path is singular.
    pub paths: Vec<Path>,
    /// A schema that the changed arguments must match, in addition to the tool's own one.
    pub schema: Option<ArgumentSchema>,
    /// Whether the tool's own schema must be known.
    pub needs_tool_schema: bool,
}

/// The texts of a card. Missing ones have default texts.
#[derive(Debug, Default)]
pub struct CardTemplates {
    /// The title.
    pub title: Option<Template>,
    /// The label of the approve button.
    pub approve: Option<String>,
    /// The label of the deny button.
    pub deny: Option<String>,
}

impl EditableArguments {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let fields = node.get("fields").unwrap_or(node);
        let paths = reader.read_input_paths(fields);
        for (path, item) in paths.iter().zip(fields.items().unwrap_or_default()) {
            let plain = |step: &PathStep| !matches!(step, PathStep::Index(index) if *index < 0);
            if !path.steps().is_some_and(|steps| !steps.is_empty() && steps.iter().all(plain)) {
                reader.report(
                    Diagnostic::new(&INVALID_PATH, item.span, "the path does not name exactly one argument")
                        .with_help("name each argument that may be changed, as in `$.input.note`"),
                );
            }
        }
        let Some(schema) = node.get("schema") else { return Some(Self { paths, ..Self::default() }) };
        let schema = read_schema(schema, reader)?;
        Some(Self { paths, needs_tool_schema: schema.is_none(), schema })
    }
}

impl CardTemplates {
    /// Whether the policy sets no text.
    pub fn is_empty(&self) -> bool {
        self.title.is_none() && self.approve.is_none() && self.deny.is_none()
    }

    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Self {
        let text = |name: &str| node.get(name).and_then(YamlNode::as_str).map(str::to_owned);
        let (approve, deny) = (text("approve"), text("deny"));
        Self { title: node.get("title").and_then(|node| reader.read_template(node, &[])), approve, deny }
    }
}

/// A grant for later calls.
#[derive(Debug)]
pub struct GrantSettings {
    /// The arguments that must be the same. If empty, all of them.
    pub fields: Vec<Path>,
    /// How long the grant is valid.
    pub duration: Duration,
}

impl GrantSettings {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let fields = node.get("fields").map(|node| reader.read_input_paths(node)).unwrap_or_default();
        let scope = node.get("scope")?;
        match (scope.as_str()?, node.get("fields")) {
            ("fields", None) => reader.report(
                Diagnostic::new(
                    &MISSING_KEY,
                    scope.span,
                    "`scope: fields` needs `fields`, the arguments that must be the same",
                )
                .with_help("add for example `fields: [$.input.customer]`, or write `scope: arguments`"),
            ),
            ("arguments", Some(fields)) => reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    fields.span,
                    "`fields` has no effect with `scope: arguments`",
                )
                .with_label(scope.span, "all arguments must be the same")
                .with_help("write `scope: fields`, or remove `fields`"),
            ),
            _ => {}
        }
        Some(Self { fields, duration: reader.read_duration(node.get("for")?)? })
    }
}

impl Approval {
    /// Requests that everyone whom the host permits can answer.
    pub(super) fn unrestricted(principals: PrincipalComparison) -> Self {
        Self {
            message: None,
            expires: None,
            approvers: Vec::new(),
            principals,
            quorum: 1,
            allows_anonymous: false,
            allows_answer_by_link: false,
            edits: EditableArguments::default(),
            remember: None,
            one_at_a_time: false,
            card: CardTemplates::default(),
            script: None,
        }
    }

    pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let message = node.get("message").and_then(|node| reader.read_template(node, &[]));
        let expires = node.get("expires").and_then(|node| reader.read_duration(node));
        let edits =
            node.get("edits").and_then(|node| EditableArguments::read(node, reader)).unwrap_or_default();
        let card = node.get("card").map(|node| CardTemplates::read(node, reader)).unwrap_or_default();
        let remember = node.get("remember").and_then(|node| GrantSettings::read(node, reader));
        let approvers = read_approvers(node, reader);
        let script = policy_script::read(node, reader);
        let quorum = node.get("quorum").and_then(YamlNode::as_number).and_then(crate::json::Number::as_u64);
        let anonymous = node.get("anonymous").filter(|word| word.as_str() == Some("allow"));
        let needs_approver_name = match (approvers.is_empty(), quorum) {
            (false, _) => {
                node.get("approvers").map(|approvers| (approvers, "`approvers` needs the names of approvers"))
            }
            (true, Some(2..)) => {
                node.get("quorum").map(|quorum| (quorum, "`quorum` distinguishes approvers by their names"))
            }
            (true, _) => None,
        };
        if let (Some(anonymous), Some((other, why))) = (anonymous, needs_approver_name) {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    anonymous.span,
                    "`anonymous: allow` has no effect here: answers need a name",
                )
                .with_label(other.span, why)
                .with_help("remove `anonymous`, or write `anonymous: refuse`"),
            );
        }
        (reader.problem_count() == reported).then_some(Self {
            message,
            expires,
            approvers,
            principals: reader.principals,
            quorum: quorum.and_then(|quorum| u32::try_from(quorum).ok()).unwrap_or(1),
            allows_anonymous: anonymous.is_some(),
            allows_answer_by_link: node.get("answer_by_link").and_then(YamlNode::as_str) == Some("allow"),
            edits,
            remember,
            one_at_a_time: node.get("present").and_then(YamlNode::as_str) == Some("first"),
            card,
            script: script?,
        })
    }
}

fn read_approvers(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Vec<String> {
    let mut approvers = Vec::new();
    for entry in node.get("approvers").and_then(YamlNode::items).unwrap_or_default() {
        let Some(text) = entry.as_str() else { continue };
        if !ApproverEntry::parse(text).is_valid() {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, entry.span, "this entry of `approvers` is empty")
                    .with_help("write the name of a principal, or `role:NAME` for everybody with a role"),
            );
        }
        approvers.push(text.to_owned());
    }
    approvers
}
