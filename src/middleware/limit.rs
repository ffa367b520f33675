//! What `rate_limit` and `concurrency` have in common: for whom is counted, how much a call takes, and what becomes of a call
//! that finds too little left.

use std::time::Duration;

use super::key::KeyPaths;
use crate::authoring::{Field, Reader, Shape};
use crate::call::{CallView, Node as Place};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY, OUT_OF_RANGE};
use crate::host::{Allowance, Amount};
use crate::json::{self, Value};
use crate::path::Path;
use crate::source::Node;
use crate::template::Template;

pub(super) const KEY: Field = Field::optional(
    "key",
    Shape::OneOrMany(&Shape::Text("a JSONPath such as `$.context.principal`")),
    "For whom is counted: calls with the same values in these places share one count. Without it all calls that match do.",
);
pub(super) const ON_EXCEED: Field = Field::optional(
    "on_exceed",
    Shape::Word(&[
        ("deny", "the call is denied, and told when it may come again"),
        ("halt", "the run is halted"),
        ("wait", "the call waits, no longer than `max_wait`, and is denied after that"),
    ]),
    "What becomes of a call that finds too little left. Without it: `deny`.",
);
pub(super) const MAX_WAIT: Field = Field::optional(
    "max_wait",
    Shape::Text("a span of time such as `10s`"),
    "For `on_exceed: wait`: how long a call may wait.",
);
pub(super) const MESSAGE: Field = Field::optional(
    "message",
    Shape::Text("a template"),
    "What the agent is told of a call that is refused; `{{ retry_after }}` is when it may come again.",
);
pub(super) const ON_STORE_ERROR: Field = Field::optional(
    "on_store_error",
    Shape::Word(&[
        ("deny", "the call is refused as one that finds too little left: denied, or the run halted"),
        ("allow", "the call is let through uncounted"),
    ]),
    "What becomes of calls while the store that counts does not answer. Without it: `deny`.",
);

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// In the store.
    Store(Allowance),
    /// In the session: no more than this in one run.
    Run(Amount),
    /// In the store, for each conversation.
    Conversation(Allowance),
}

/// Which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Those that nothing else stops.
    Executions,
    /// All that match, whatever becomes of them.
    Attempts,
}

/// What becomes of a call that finds too little left, from the mildest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnExceed {
    /// It waits so long at most.
    Wait(Duration),
    /// It is denied.
    Deny,
    /// The run is halted.
    Halt,
}

/// How much a call takes.
#[derive(Debug)]
pub enum Cost {
    /// Always the same.
    Fixed(Amount),
    /// What stands in one place of the call.
    At(Path),
}

/// A `rate_limit` or `concurrency` policy's own part.
#[derive(Debug)]
pub struct Limit {
    /// How it counts.
    pub rule: Rule,
    /// How much a call takes.
    pub cost: Cost,
    /// Which calls are counted.
    pub counted: Counted,
    /// What becomes of a call that finds too little left.
    pub on_exceed: OnExceed,
    /// What the agent is told then.
    pub message: Option<Template>,
    /// The limit in words: `5 per 1m`.
    pub words: String,
    /// Whether calls pass while the store does not answer.
    pub passes_without_store: bool,
    key: KeyPaths,
    /// Digest of what the counts depend on. A reload that changes it starts anew; one that changes numbers does not.
    identity: String,
}

/// What one call takes of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// For whom is counted.
    pub key: String,
    /// How much.
    pub cost: Amount,
}

/// What both kinds read alike.
pub(super) struct Common {
    key: KeyPaths,
    on_exceed: OnExceed,
    message: Option<Template>,
    passes_without_store: bool,
}

impl Common {
    pub(super) fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let reported = reader.reported();
        let key = KeyPaths::read(node.get("key"), reader);
        let message = node.get("message").and_then(|node| reader.template(node, &["retry_after"]));
        let max_wait = node.get("max_wait").map(|node| (node, reader.duration(node)));
        let on_exceed = match (node.get("on_exceed").and_then(Node::as_str), max_wait) {
            (Some("wait"), Some((_, max_wait))) => OnExceed::Wait(max_wait?),
            (Some("wait"), None) => {
                let span = node.get("on_exceed")?.span;
                reader.report(
                    Diagnostic::new(&MISSING_KEY, span, "`on_exceed: wait` needs a bound")
                        .help("add for example `max_wait: 10s`"),
                );
                return None;
            }
            (word, Some((max_wait, _))) => {
                let said = word.map_or("denied".to_owned(), |word| format!("`on_exceed: {word}`"));
                reader.report(
                    Diagnostic::new(
                        &CONFLICTING_KEYS,
                        max_wait.span,
                        format!("`max_wait` means nothing where calls are not waiting: here it is {said}"),
                    )
                    .help("write `on_exceed: wait`, or leave `max_wait` out"),
                );
                return None;
            }
            (Some("halt"), None) => OnExceed::Halt,
            (_, None) => OnExceed::Deny,
        };
        let passes_without_store = node.get("on_store_error").and_then(Node::as_str) == Some("allow");
        (reader.reported() == reported).then_some(Self { key, on_exceed, message, passes_without_store })
    }

    /// The limit. `identity` is what its counts depend on beside its key.
    pub(super) fn limit(
        self,
        rule: Rule,
        cost: Cost,
        counted: Counted,
        identity: &str,
        words: String,
    ) -> Limit {
        let Self { key, on_exceed, message, passes_without_store } = self;
        let identity = json::digest(&crate::json::json!([identity, key.identity()])).short();
        Limit { rule, cost, counted, on_exceed, message, words, passes_without_store, key, identity }
    }
}

impl Limit {
    /// What a call takes. Errors: a key or a cost that can't be read out of it.
    pub fn measure(&self, view: &CallView<'_>) -> Result<Measure, String> {
        let mut parts = vec![Value::from(self.identity.as_str())];
        if let Rule::Conversation(_) = self.rule {
            let conversation = view.session.document().get("conversationId").filter(|id| !id.is_null());
            parts.push(
                conversation
                    .cloned()
                    .ok_or("the host has not said which conversation this is (`session.conversationId`)")?,
            );
        }
        // All calls without a value share one count.
        parts.extend(self.key.values(view)?);
        let cost = match &self.cost {
            Cost::Fixed(amount) => *amount,
            Cost::At(path) => {
                let nodes = path.nodes(view).map_err(|mismatch| mismatch.to_string())?;
                nodes.first().and_then(|node| amount(*node)).ok_or_else(|| {
                    format!(
                        "there is no number from 0 on at `{}`, which says what the call takes",
                        path.text()
                    )
                })?
            }
        };
        Ok(Measure { key: json::digest(&Value::Array(parts)).to_string(), cost })
    }
}

fn amount(place: Place<'_>) -> Option<Amount> {
    Amount::of(place.as_json()?.as_number()?)
}

/// A number from just above 0 to a trillion. Anything else is reported.
pub(super) fn read_amount(node: &Node, reader: &mut Reader<'_>) -> Option<Amount> {
    const LARGEST: Amount = Amount::whole(1_000_000_000_000);
    let number = node.as_number()?;
    match Amount::of(number) {
        Some(amount) if amount > Amount::ZERO && amount <= LARGEST => Some(amount),
        _ => {
            reader.report(
                Diagnostic::new(
                    &OUT_OF_RANGE,
                    node.span,
                    format!("`{number}` is no amount: it must be more than 0 and at most 1000000000000"),
                )
                .help("where nothing may pass, write a `deny` policy; where everything may, leave the limit out"),
            );
            None
        }
    }
}
