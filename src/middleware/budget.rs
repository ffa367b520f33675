//! `budget`: bounds the total usage of a run, a conversation or a principal.

use super::{KindDefinition, PolicyKind};
use crate::call::Amount;
use crate::diagnostic::{Diagnostic, MISSING_KEY, OUT_OF_RANGE};
use crate::principal::PrincipalComparison;
use crate::rules_schema::{CONSTANT, FieldShape, Polarity, PolicyReader, RecordShape, Shape};
use crate::source::YamlNode;
use crate::template::Template;

pub(super) static KIND: KindDefinition = KindDefinition {
    name: "budget",
    doc: "Limits the total usage of a run, a conversation or a principal: tokens, cost, tool calls and model calls. Model usage is counted \
          after each model call, so the last call can exceed the budget; no call starts once the budget is used up.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    reads_result: |_| false,
    needs_matcher: false,
    applies_to_run: true,
    read: |node, reader| Budget::read(node, reader).map(|budget| PolicyKind::Budget(Box::new(budget))),
};

/// The range of an amount.
const COUNT: Shape = Shape::Either(&[Shape::Integer(0, 1_000_000_000_000), CONSTANT]);

static RECORD: RecordShape = RecordShape {
    name: "budget",
    doc: "The bounds, and what happens when one is reached.",
    fields: &[
        FieldShape::optional("tokens", COUNT, "Maximum number of input and output tokens."),
        FieldShape::optional(
            "cost",
            Shape::Either(&[Shape::Number, CONSTANT]),
            "Maximum cost of model calls, in the host's currency.",
        ),
        FieldShape::optional("calls", COUNT, "Maximum number of executed tool calls."),
        FieldShape::optional("iterations", COUNT, "Maximum number of model calls."),
        FieldShape::optional(
            "per",
            Shape::Word(&[
                ("run", "one run of the agent"),
                ("conversation", "all runs of one conversation, by its `conversationId`"),
                ("principal", "all runs for one principal, by `context.principal`"),
            ]),
            "Whose usage is counted together. Default: `run`.",
        ),
        FieldShape::optional(
            "on_exceed",
            Shape::Word(&[
                ("halt", "the run is halted"),
                ("deny", "further tool calls are denied, and the model may end the run"),
                ("finish", "the run ends after the current turn, as if the model had ended it"),
            ]),
            "What happens when a bound is reached. Default: `halt`.",
        ),
        FieldShape::optional("message", Shape::String("a template"), "The message of the denial or halt."),
    ],
};

/// Settings of a `budget` policy.
#[derive(Debug)]
pub struct Budget {
    /// The bounds.
    pub bounds: BudgetAmounts,
    /// Whose usage is counted together.
    pub scope: BudgetScope,
    /// What happens when a bound is reached.
    pub on_exceed: OnBudgetExceeded,
    /// How principals are compared.
    pub principals: PrincipalComparison,
    /// The message of the denial or halt.
    pub message: Option<Template>,
}

/// Usage, or bounds for it. `None` for what is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetAmounts {
    /// Tokens.
    pub tokens: Option<Amount>,
    /// Cost.
    pub cost: Option<Amount>,
    /// Tool calls.
    pub calls: Option<Amount>,
    /// Model calls.
    pub iterations: Option<Amount>,
}

impl BudgetAmounts {
    /// Returns each amount with its name.
    pub fn entries(&self) -> [(&'static str, Option<Amount>); 4] {
        [("tokens", self.tokens), ("cost", self.cost), ("calls", self.calls), ("iterations", self.iterations)]
    }
}

/// Whose usage is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetScope {
    /// One run.
    Run,
    /// All runs of a conversation.
    Conversation,
    /// All runs for a principal.
    Principal,
}

/// What happens when a bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnBudgetExceeded {
    /// The run ends after the current turn.
    Finish,
    /// Further tool calls are denied.
    Deny,
    /// The run is halted.
    Halt,
}

impl Budget {
    fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let amount = |name: &str| node.get(name).and_then(YamlNode::as_number).and_then(Amount::from_number);
        let bounds = BudgetAmounts {
            tokens: amount("tokens"),
            cost: amount("cost"),
            calls: amount("calls"),
            iterations: amount("iterations"),
        };
        if let Some(cost) = node.get("cost").filter(|_| bounds.cost.is_none()) {
            reader.report(
                Diagnostic::new(&OUT_OF_RANGE, cost.span, "`cost` must be a number that is not negative")
                    .with_help("write for example `cost: 2.50`"),
            );
            return None;
        }
        if bounds == BudgetAmounts::default() {
            // One that is there and invalid has been reported.
            if ["tokens", "cost", "calls", "iterations"].iter().any(|key| node.get(key).is_some()) {
                return None;
            }
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "this budget has no bound")
                    .with_help("add `tokens`, `cost`, `calls` or `iterations`"),
            );
            return None;
        }
        Some(Self {
            bounds,
            scope: match node.get("per").and_then(YamlNode::as_str) {
                Some("conversation") => BudgetScope::Conversation,
                Some("principal") => BudgetScope::Principal,
                _ => BudgetScope::Run,
            },
            on_exceed: match node.get("on_exceed").and_then(YamlNode::as_str) {
                Some("deny") => OnBudgetExceeded::Deny,
                Some("finish") => OnBudgetExceeded::Finish,
                _ => OnBudgetExceeded::Halt,
            },
            principals: reader.principals,
            message: node.get("message").and_then(|node| reader.read_template(node, &[])),
        })
    }
}
