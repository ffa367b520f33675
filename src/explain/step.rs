//! One policy in one phase of a call: an event of the kernel → a redacted [`PolicyStep`].

use std::cmp::Reverse;

use serde::Serialize;

use super::condition::{ConditionExplainer, ExplainedCondition};
use super::explained_fact::ExplainedFact;
use super::explained_let::{ExplainedLet, LetExplainer};
use super::explanation_redaction::{ExplanationRedactor, WITHHELD, counterpart, truncate_value};
use crate::call::{Amount, Masks, Phase, Root, Verdict};
use crate::diagnostic::{Location, SourceMap};
use crate::json::{self, Number, Value};
use crate::kernel::{Change, Layers, MatchStatus, PolicyEvaluated, SkipReason, measure};
use crate::matcher::{ExaminedPattern, Truth, ValueSource};
use crate::middleware::{LimitCharge, LimitRule, PolicyKind};
use crate::policy::{Mode, Policy};

/// The maximum number of listed differences of one change.
const MAX_CHANGES: usize = 40;

/// The result of a policy's matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchResult {
    /// It matches.
    Matched,
    /// Its match is undecided.
    Undecided,
    /// A value that it reads is absent, which counts as matching (`absent: match`).
    Absent,
    /// Its conditions do not hold.
    NoMatch,
    /// It is for other tools.
    OtherTool,
    /// It is for other servers.
    OtherServer,
    /// It was not evaluated.
    NotAsked,
}

/// One policy in one phase.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PolicyStep {
    /// The policy's id.
    pub policy: String,
    /// Its kind key.
    pub kind: &'static str,
    /// The phase; `None` for a policy of the run.
    pub phase: Option<Phase>,
    /// Its layer: 0 is the bundle, then the prompt's and the call's.
    pub layer: u32,
    /// Whether it is in shadow mode (`mode: shadow`).
    pub shadow: bool,
    /// Its location in the rules.
    pub at: Option<Location>,
    /// The result of its matcher.
    pub heard: MatchResult,
    /// Its verdict on the call, or in shadow mode, the verdict it would have had; `None` if it did not take part.
    pub verdict: Option<Verdict>,
    /// Whether it gave the reason for the outcome.
    pub decisive: bool,
    /// A description of its effect, or of why it had none.
    pub words: String,
    /// The name patterns that do not match, for a policy of other tools or servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<UnmatchedPattern>,
    /// Its conditions, if it has any and was evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ExplainedCondition>,
    /// The named values that its conditions and required values used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lets: Vec<ExplainedLet>,
    /// Its changes of arguments or result, or in shadow mode, the changes it would have made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ValueChange>,
    /// Its objection to the call, beyond the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What the call acquired of it, if it is a limit and was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ExplainedLimit>,
    /// What it did to its fact, if it is a `fact` policy and was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact: Option<ExplainedFact>,
    #[serde(skip)]
    pub(super) skip_reason: Option<SkipReason>,
    #[serde(skip)]
    pub(super) policy_index: (u32, u32),
    #[serde(skip)]
    pub(super) order: StepOrder,
}

/// The sort key of a step within its phase.
pub(super) type StepOrder = (u32, Reverse<i64>, u8, u32);

/// A name pattern.
#[derive(Clone, Debug, Serialize)]
pub struct UnmatchedPattern {
    /// `tool` or `server`.
    pub of: &'static str,
    /// The pattern as written, without the slashes of a regular expression.
    pub text: String,
    /// Its location in the rules.
    pub at: Option<Location>,
}

/// One value that a policy changed.
#[derive(Clone, Debug, Serialize)]
pub struct ValueChange {
    /// The path of the value.
    pub path: String,
    /// The value before; null if absent. Redacted.
    pub before: Value,
    /// The value after; null if absent. Redacted.
    pub after: Value,
    /// `added`, `removed` or `changed`.
    pub how: &'static str,
}

/// What a call acquired of a limit.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExplainedLimit {
    /// The limit as text: `5 per 1m`.
    pub limit: String,
    /// The cost of the call.
    pub cost: Value,
    /// Whether enough was left.
    pub enough: bool,
    /// Whether the cost was acquired: if one of several limits that count executions is exceeded, none of them is acquired. An approved call
    /// acquires it whatever is left.
    pub taken: bool,
    /// How much is left after that, if known.
    pub left: Option<Value>,
    /// Milliseconds until enough may be left, if it is not and the time is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The real cost that the result shows, for a limit with `cost_after`; null if it cannot be read, so that the call takes all that is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_cost: Option<Value>,
}

impl PolicyStep {
    /// Creates the step of a policy that was not evaluated.
    pub(super) fn not_evaluated(
        policy: &Policy,
        policy_index: (u32, u32),
        phase: Option<Phase>,
        why: SkipReason,
        sources: Option<&SourceMap>,
    ) -> Self {
        let (layer, _) = policy_index;
        // Only the files of the bundle are known.
        let sources = sources.filter(|_| layer == 0);
        Self {
            policy: policy.id.clone(),
            kind: policy.kind.definition().name,
            phase,
            layer,
            shadow: policy.mode == Mode::Shadow,
            at: sources.and_then(|sources| sources.locate(policy.span)),
            heard: MatchResult::NotAsked,
            verdict: None,
            decisive: false,
            words: String::new(),
            patterns: Vec::new(),
            condition: None,
            lets: Vec::new(),
            changes: Vec::new(),
            problem: None,
            limit: None,
            fact: None,
            skip_reason: Some(why),
            policy_index,
            order: step_order(policy, policy_index, phase),
        }
    }

    /// Creates the step of an evaluated policy.
    pub(super) fn from_evaluation(
        evaluation: &PolicyEvaluated<'_>,
        layers: &Layers,
        sources: Option<&SourceMap>,
    ) -> Self {
        let policy_index = (evaluation.layer, evaluation.index);
        let sources = sources.filter(|_| evaluation.layer == 0);
        let mut step = Self::not_evaluated(
            evaluation.policy,
            policy_index,
            evaluation.phase,
            SkipReason::NotRun,
            sources,
        );
        step.skip_reason = None;
        step.verdict = evaluation.verdict;
        let examined = match evaluation.status {
            MatchStatus::Skipped(why) => {
                step.skip_reason = Some(why);
                return step;
            }
            _ => evaluation.examine(),
        };
        let redactor = ExplanationRedactor::of(layers, evaluation.view);
        let explainer = ConditionExplainer { redactor: &redactor, sources };
        if let MatchStatus::OtherTool = evaluation.status {
            let (of, match_result, patterns) = match examined.matches_tool() {
                false => ("tool", MatchResult::OtherTool, &examined.tools),
                true => ("server", MatchResult::OtherServer, &examined.servers),
            };
            step.heard = match_result;
            step.patterns =
                patterns.iter().map(|pattern| unmatched_pattern(of, pattern, &explainer)).collect();
            return step;
        }
        step.heard = match examined.truth() {
            Truth::Yes => MatchResult::Matched,
            Truth::No => MatchResult::NoMatch,
            Truth::Absent => MatchResult::Absent,
            Truth::Undecided(_) => MatchResult::Undecided,
        };
        step.condition = examined.condition.as_ref().map(|condition| explainer.condition(condition));
        step.lets = match layers.get(evaluation.layer as usize) {
            Some(policies) => {
                let required: &[ValueSource] = match &evaluation.policy.kind {
                    PolicyKind::Require(require) if evaluation.matches() => &require.values,
                    _ => &[],
                };
                LetExplainer { names: policies.names(), redactor: &redactor, sources }.explain(
                    examined.condition.as_ref(),
                    required,
                    &evaluation.view,
                )
            }
            None => Vec::new(),
        };
        step.problem = evaluation.problem.map(|problem| redactor.text(problem));
        step.set_gate_limit(evaluation, &redactor);
        if let Some(change) = evaluation.change {
            let root = if evaluation.phase == Some(Phase::Settle) { Root::Output } else { Root::Input };
            step.changes = value_changes(change, root, &redactor);
        }
        step
    }
}

impl PolicyStep {
    /// Sets the objection of a limit by which the gate phase itself stops the call: a limit of the run is exceeded, or a key or a cost is
    /// missing.
    fn set_gate_limit(&mut self, evaluation: &PolicyEvaluated<'_>, redactor: &ExplanationRedactor<'_>) {
        let PolicyEvaluated { policy, layer, view, .. } = *evaluation;
        let Some(limit) = policy.kind.as_limit() else { return };
        if !matches!(evaluation.verdict, Some(Verdict::Deny | Verdict::Halt | Verdict::Suspend)) {
            return;
        }
        match (measure(layer, policy, limit, &view), limit.rule) {
            (Err(why), _) => self.problem = Some(redactor.text(&why)),
            (Ok(LimitCharge { key, cost }), LimitRule::Run(allowed)) => {
                self.limit = Some(ExplainedLimit {
                    limit: limit.description.clone(),
                    cost: amount_to_json(cost),
                    enough: false,
                    taken: false,
                    left: Some(amount_to_json(allowed.saturating_sub(view.session.acquired(&key)))),
                    retry_after_ms: None,
                    real_cost: None,
                });
            }
            (Ok(_), LimitRule::Store(_) | LimitRule::Conversation(_)) => {}
        }
    }
}

/// An amount as a JSON number.
pub(super) fn amount_to_json(amount: Amount) -> Value {
    amount.to_string().parse::<Number>().map_or(Value::Null, Value::Number)
}

fn unmatched_pattern(
    of: &'static str,
    pattern: &ExaminedPattern<'_>,
    explainer: &ConditionExplainer<'_>,
) -> UnmatchedPattern {
    let at = pattern.span.and_then(|span| explainer.locate(span));
    UnmatchedPattern { of, text: pattern.text.to_owned(), at }
}

/// The differences of arguments or result, in redacted form.
fn value_changes(change: Change<'_>, root: Root, redactor: &ExplanationRedactor<'_>) -> Vec<ValueChange> {
    let Change { before, after } = change;
    let (hidden_before, hidden_after) = (redactor.document(root, before), redactor.document(root, after));
    // A path consists of keys, which may need redaction as values do.
    let mut masks = Masks::new();
    masks.add_changes(before, &hidden_before);
    masks.add_changes(after, &hidden_after);
    let is_withheld = [&hidden_before, &hidden_after].iter().any(|hidden| hidden.as_str() == Some(WITHHELD));
    let redacted_value = |document: &Value, hidden: &Value, value: Option<&Value>| {
        let Some(value) = value else { return Value::Null };
        truncate_value(
            counterpart(document, hidden, value, json::MAX_DEPTH).cloned().unwrap_or_else(|| WITHHELD.into()),
        )
    };
    let root_path = format!("$.{}", root.name());
    let found = json::differences(&root_path, before, after, MAX_CHANGES).into_iter();
    found
        .map(|difference| ValueChange {
            how: match (difference.before, difference.after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            },
            path: match is_withheld {
                true => root_path.clone(),
                false => masks.text(&redactor.text(&difference.path)).into_owned(),
            },
            before: redacted_value(before, &hidden_before, difference.before),
            after: redacted_value(after, &hidden_after, difference.after),
        })
        .collect()
}

/// The sort key of a step within its phase, in the order of the kernel.
fn step_order(policy: &Policy, (layer, index): (u32, u32), phase: Option<Phase>) -> StepOrder {
    match phase {
        Some(Phase::Execute) => (layer, Reverse(policy.priority), policy.kind.wrapper_order(), index),
        Some(Phase::Settle) => {
            let group = match policy.kind {
                PolicyKind::Recover(_) => 0,
                PolicyKind::Transform(_) => 1,
                PolicyKind::Redact(_) => 2,
                PolicyKind::Label(_) | PolicyKind::Fact(_) => 3,
                _ => 4,
            };
            // The settle phase processes all layers for each of its groups.
            (group, Reverse(0), u8::try_from(layer).unwrap_or(u8::MAX), index)
        }
        _ => (layer, Reverse(0), 0, index),
    }
}
