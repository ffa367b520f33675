//! Limits: the common part of `rate_limit` and `concurrency`. Whose calls count together, the cost of a call, and what happens when
//! the limit is exceeded.

use std::time::Duration;

use super::approval::Approval;
use super::key_values::KeyValues;
use crate::call::{CallView, NodeRef as Place};
use crate::diagnostic::{CONFLICTING_KEYS, Diagnostic, MISSING_KEY, OUT_OF_RANGE};
use crate::host::{Allowance, Amount, RealCost};
use crate::json::{self, Value};
use crate::matcher::{Truth, ValueSource};
use crate::rules_schema::{CONSTANT, FieldShape, PolicyReader, Shape};
use crate::source::YamlNode;
use crate::template::Template;

pub(super) const KEY: FieldShape = FieldShape::optional(
    "key",
    Shape::OneOrMany(&Shape::String("a JSONPath such as `$.context.principal`, or an expression")),
    "Counts calls separately by these values: calls with the same values share one count. Default: all matching calls share one.",
);
pub(super) const ON_EXCEED: FieldShape = FieldShape::optional(
    "on_exceed",
    Shape::Word(&[
        ("deny", "the call is denied, with the time after which it can be retried"),
        ("halt", "the run is halted"),
        ("wait", "the call waits for at most `max_wait`, and is denied after that"),
    ]),
    "What happens to a call that exceeds the limit. Default: `deny`.",
);
/// [`ON_EXCEED`] of a limit whose calls can be approved.
pub(super) const ON_EXCEED_OR_APPROVAL: FieldShape = FieldShape::optional(
    "on_exceed",
    Shape::Word(&[
        ("deny", "the call is denied, with the time after which it can be retried"),
        (
            "approval",
            "the call is suspended until a person approves it; an approved call runs and is counted",
        ),
        ("halt", "the run is halted"),
        ("wait", "the call waits for at most `max_wait`, and is denied after that"),
    ]),
    "What happens to a call that exceeds the limit. Default: `deny`.",
);
pub(super) const MAX_WAIT: FieldShape = FieldShape::optional(
    "max_wait",
    Shape::Either(&[Shape::String("a duration such as `10s`"), CONSTANT]),
    "For `on_exceed: wait`: how long a call may wait.",
);
pub(super) const MESSAGE: FieldShape = FieldShape::optional(
    "message",
    Shape::String("a template"),
    "The message to the agent if a call is denied. `{{ retry_after }}` is the time after which it can be retried.",
);
pub(super) const ON_STORE_ERROR: FieldShape = FieldShape::optional(
    "on_store_error",
    Shape::Word(&[
        ("deny", "fail closed: the call is treated as exceeding the limit, and denied or the run halted"),
        ("allow", "fail open: the call runs without being counted"),
    ]),
    "What happens to calls while the store is unavailable. Default: `deny`.",
);

/// Where and how a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitRule {
    /// In the store.
    Store(Allowance),
    /// In the session, with this limit per run.
    Run(Amount),
    /// In the store, per conversation.
    Conversation(Allowance),
}

/// The calls that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedCalls {
    /// Calls that no other policy stops.
    Executions,
    /// All matching calls, whatever their outcome.
    Attempts,
}

/// What happens to a call that exceeds the limit.
#[derive(Debug)]
pub enum OnExceed {
    /// The call waits for at most this long.
    Wait(Duration),
    /// The call is suspended until a person approves it.
    Approval(Box<Approval>),
    /// The call is denied.
    Deny,
    /// The run is halted.
    Halt,
}

/// The cost of a call.
#[derive(Debug)]
pub enum CallCost {
    /// The same cost for every call.
    Fixed(Amount),
    /// The number that a path or an expression reads.
    Read(ValueSource),
}

/// Settings of a `rate_limit` or `concurrency` policy.
#[derive(Debug)]
pub struct Limit {
    /// Where and how the limit counts.
    pub rule: LimitRule,
    /// The cost of a call; an estimate, if there is a `cost_after`.
    pub cost: CallCost,
    /// Reads the real cost from the result.
    pub cost_after: Option<ValueSource>,
    /// The calls that are counted.
    pub counted: CountedCalls,
    /// What happens to a call that exceeds the limit.
    pub on_exceed: OnExceed,
    /// The message to the agent.
    pub message: Option<Template>,
    /// The limit as text, such as `5 per 1m`.
    pub description: String,
    /// Whether calls run while the store is unavailable.
    pub allows_on_store_error: bool,
    key: KeyValues,
    /// Digest of the settings that counts depend on. A reload that changes it starts new counts; one that changes only numbers does
    /// not.
    identity: String,
}

/// The cost of one call for one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCharge {
    /// The key of the count.
    pub key: String,
    /// The cost.
    pub cost: Amount,
}

/// The keys that both kinds have.
pub(super) struct CommonLimitSettings {
    key: KeyValues,
    on_exceed: OnExceed,
    message: Option<Template>,
    passes_without_store: bool,
}

impl CommonLimitSettings {
    pub(super) fn read(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Self> {
        let reported = reader.problem_count();
        let key = KeyValues::read(node.get("key"), reader);
        let message = node.get("message").and_then(|node| reader.read_template(node, &["retry_after"]));
        let max_wait = node.get("max_wait").map(|node| (node, reader.read_duration(node)));
        let on_exceed = match (node.get("on_exceed").and_then(YamlNode::as_str), max_wait) {
            (Some("wait"), Some((_, max_wait))) => OnExceed::Wait(max_wait?),
            (Some("wait"), None) => {
                let span = node.get("on_exceed")?.span;
                reader.report(
                    Diagnostic::new(&MISSING_KEY, span, "`on_exceed: wait` needs `max_wait`")
                        .with_help("add for example `max_wait: 10s`"),
                );
                return None;
            }
            (word, Some((max_wait, _))) => {
                let setting = word.map_or("the default is `on_exceed: deny`".to_owned(), |word| {
                    format!("`on_exceed: {word}`")
                });
                reader.report(
                    Diagnostic::new(
                        &CONFLICTING_KEYS,
                        max_wait.span,
                        format!(
                            "`max_wait` has no effect, because calls over the limit do not wait: {setting}"
                        ),
                    )
                    .with_help("write `on_exceed: wait`, or remove `max_wait`"),
                );
                return None;
            }
            (Some("halt"), None) => OnExceed::Halt,
            (Some("approval"), None) => OnExceed::Approval(Box::new(read_approval(node, reader)?)),
            (_, None) => OnExceed::Deny,
        };
        if let (Some(approval), false) = (node.get("approval"), matches!(on_exceed, OnExceed::Approval(_))) {
            reader.report(
                Diagnostic::new(
                    &CONFLICTING_KEYS,
                    approval.span,
                    "`approval` has no effect, because calls over the limit do not request one",
                )
                .with_help("write `on_exceed: approval`, or remove `approval`"),
            );
        }
        let passes_without_store = node.get("on_store_error").and_then(YamlNode::as_str) == Some("allow");
        (reader.problem_count() == reported).then_some(Self { key, on_exceed, message, passes_without_store })
    }

    /// Creates the limit. `identity` is what its counts depend on in addition to the key.
    pub(super) fn into_limit(
        self,
        rule: LimitRule,
        cost: CallCost,
        counted: CountedCalls,
        identity: &str,
        description: String,
    ) -> Limit {
        let Self { key, on_exceed, message, passes_without_store } = self;
        let identity = json::digest(&crate::json::json!([identity, key.identity()])).short_hex();
        Limit {
            rule,
            cost,
            cost_after: None,
            counted,
            on_exceed,
            message,
            description,
            allows_on_store_error: passes_without_store,
            key,
            identity,
        }
    }
}

/// Reads the request of a limit with `on_exceed: approval`.
fn read_approval(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Approval> {
    let on_exceed = node.get("on_exceed")?.span;
    if let Some(message) = node.get("message") {
        reader.report(
            Diagnostic::new(
                &CONFLICTING_KEYS,
                message.span,
                "`message` has no effect with `on_exceed: approval`, because calls over the limit are not denied",
            )
            .with_label(on_exceed, "they request an approval")
            .with_help("write the question to the approver as `approval: { message: … }`"),
        );
    }
    if let Some(count) = node.get("count").filter(|count| count.as_str() == Some("attempts")) {
        reader.report(
            Diagnostic::new(
                &CONFLICTING_KEYS,
                on_exceed,
                "`on_exceed: approval` needs `count: executions`: an approval permits a call to run, and each attempt at it would count",
            )
            .with_label(count.span, "this counts every attempt")
            .with_help("remove `count: attempts`, or write a limit of its own for attempts"),
        );
    }
    match node.get("approval") {
        Some(approval) => Approval::read(approval, reader),
        None => Some(Approval::unrestricted(reader.principals)),
    }
}

impl Limit {
    /// Returns the key and the cost of a call.
    ///
    /// # Errors
    /// Returns a message if the key or the cost can't be read from the call.
    pub fn charge(&self, view: &CallView<'_>) -> Result<LimitCharge, String> {
        let mut parts = vec![Value::from(self.identity.as_str())];
        if let LimitRule::Conversation(_) = self.rule {
            let conversation = view.session.document().get("conversationId").filter(|id| !id.is_null());
            parts.push(
                conversation.cloned().ok_or(
                    "the host has not set `session.conversationId`, which `per: conversation` needs",
                )?,
            );
        }
        // All calls without a value share one count.
        parts.extend(self.key.values(view)?);
        let cost = match &self.cost {
            CallCost::Fixed(amount) => *amount,
            CallCost::Read(source) => source
                .with_values(view, |values| match values {
                    Ok(values) => Ok(values.first().and_then(|value| amount_at(*value))),
                    Err(Truth::Undecided(why)) => Err(why),
                    Err(_) => Ok(None),
                })?
                .ok_or_else(|| {
                    let text = source.text();
                    format!("there is no non-negative number at `{text}`, the `cost` of the call")
                })?,
        };
        // Nothing is admitted on top of debt, also a call whose estimate is zero.
        let cost = if self.cost_after.is_some() { cost.max(Amount::from_millionths(1)) } else { cost };
        Ok(LimitCharge { key: json::digest(&Value::Array(parts)).to_string(), cost })
    }
}

impl Limit {
    /// The same limit, whose costs are corrected by results.
    pub(super) fn with_cost_after(self, cost_after: Option<ValueSource>) -> Self {
        Self { cost_after, ..self }
    }

    /// Returns the real cost of a call that succeeded: all that is left if it is absent, unreadable or no amount.
    pub fn real_cost(&self, view: &CallView<'_>) -> RealCost {
        let Some(source) = &self.cost_after else { return RealCost::Unknown };
        let cost =
            source.with_values(view, |values| values.ok().and_then(|values| amount_at(*values.first()?)));
        cost.map_or(RealCost::Unknown, RealCost::Known)
    }
}

fn amount_at(node: Place<'_>) -> Option<Amount> {
    Amount::from_number(node.as_json()?.as_number()?)
}

/// Reads a number greater than 0 and at most a trillion. Reports anything else.
pub(super) fn read_amount(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Amount> {
    const LARGEST: Amount = Amount::from_whole(1_000_000_000_000);
    let number = node.as_number()?;
    match Amount::from_number(number) {
        Some(amount) if amount > Amount::ZERO && amount <= LARGEST => Some(amount),
        _ => {
            reader.report(
                Diagnostic::new(
                    &OUT_OF_RANGE,
                    node.span,
                    format!("`{number}` is out of range: the amount must be greater than 0 and at most 1000000000000"),
                )
                .with_help("to permit no calls, write a `deny` policy; to permit all, remove the limit"),
            );
            None
        }
    }
}
