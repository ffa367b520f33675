//! `budget`: how much a run, a conversation or a principal may use in all.

use super::{Kind, KindEntry};
use crate::authoring::{Field, Polarity, Reader, Record, Shape};
use crate::call::Amount;
use crate::diagnostic::{Diagnostic, MISSING_KEY, OUT_OF_RANGE};
use crate::principal::Comparison;
use crate::source::Node;
use crate::template::Template;

pub(super) static KIND: KindEntry = KindEntry {
    name: "budget",
    doc: "Bounds what a run, a conversation or a principal may use in all: tokens, cost, calls of tools, calls of the model. What was \
          models used counts when it is known, so the last use may pass the bound; nothing begins beyond it.",
    shape: Shape::Record(&RECORD),
    polarity: Polarity::Restricting,
    after_tool: |_| false,
    needs_matcher: false,
    of_run: true,
    read: |node, reader| Budget::read(node, reader).map(Kind::Budget),
};

/// No more than amounts can say.
const COUNT: Shape = Shape::Integer(0, 1_000_000_000_000);

static RECORD: Record = Record {
    name: "budget",
    doc: "How much, of what, and what happens at the bound.",
    fields: &[
        Field::optional("tokens", COUNT, "Tokens that models read and wrote."),
        Field::optional("cost", Shape::Number, "What models cost, in the host's currency."),
        Field::optional("calls", COUNT, "Calls of tools that ran."),
        Field::optional("iterations", COUNT, "Calls of the model."),
        Field::optional(
            "per",
            Shape::Word(&[
                ("run", "one run of the agent"),
                ("conversation", "all runs of one conversation, by its `conversationId`"),
                ("principal", "all runs for one principal, by `context.principal`"),
            ]),
            "Of whom. Without it: `run`.",
        ),
        Field::optional(
            "on_exceed",
            Shape::Word(&[
                ("halt", "the run is halted"),
                ("deny", "further calls of tools are denied, and the model may end by itself"),
                ("finish", "the run ends after the turn, as if the model had ended it"),
            ]),
            "What happens at the bound. Without it: `halt`.",
        ),
        Field::optional("message", Shape::Text("a template"), "What is told then."),
    ],
};

/// A `budget` policy's own part.
#[derive(Debug)]
pub struct Budget {
    /// How much of each.
    pub bounds: Used,
    /// Of whom.
    pub per: Per,
    /// What happens at the bound.
    pub at_bound: AtBound,
    /// How principals are compared.
    pub principals: Comparison,
    /// What is told then.
    pub message: Option<Template>,
}

/// How much of each was used, or may be; nothing where it is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens.
    pub tokens: Option<Amount>,
    /// Cost.
    pub cost: Option<Amount>,
    /// Calls of tools.
    pub calls: Option<Amount>,
    /// Calls of the model.
    pub iterations: Option<Amount>,
}

impl Used {
    /// Each with its word.
    pub fn each(&self) -> [(&'static str, Option<Amount>); 4] {
        [("tokens", self.tokens), ("cost", self.cost), ("calls", self.calls), ("iterations", self.iterations)]
    }
}

/// Of whom a budget is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One run.
    Run,
    /// All runs of a conversation.
    Conversation,
    /// All runs for a principal.
    Principal,
}

/// What happens at the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtBound {
    /// The run ends after the turn.
    Finish,
    /// Further calls are denied.
    Deny,
    /// The run is halted.
    Halt,
}

impl Budget {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let amount = |name: &str| node.get(name).and_then(Node::as_number).and_then(Amount::of);
        let bounds = Used {
            tokens: amount("tokens"),
            cost: amount("cost"),
            calls: amount("calls"),
            iterations: amount("iterations"),
        };
        if let Some(cost) = node.get("cost").filter(|_| bounds.cost.is_none()) {
            reader.report(
                Diagnostic::new(&OUT_OF_RANGE, cost.span, "`cost` is a number that is not negative")
                    .help("write for example `cost: 2.50`"),
            );
            return None;
        }
        if bounds == Used::default() {
            reader.report(
                Diagnostic::new(&MISSING_KEY, node.span, "a budget of nothing")
                    .help("say how much: `tokens`, `cost`, `calls` or `iterations`"),
            );
            return None;
        }
        Some(Self {
            bounds,
            per: match node.get("per").and_then(Node::as_str) {
                Some("conversation") => Per::Conversation,
                Some("principal") => Per::Principal,
                _ => Per::Run,
            },
            at_bound: match node.get("on_exceed").and_then(Node::as_str) {
                Some("deny") => AtBound::Deny,
                Some("finish") => AtBound::Finish,
                _ => AtBound::Halt,
            },
            principals: reader.principals,
            message: node.get("message").and_then(|node| reader.template(node, &[])),
        })
    }
}
