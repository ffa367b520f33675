//! Builds the explanation of a call: events of the kernel → [`Explanation`].

use super::explained_fact::ExplainedFact;
use super::explanation::{ExplainedCall, Explanation, NestedCall, UnmatchedLayer, VERSION};
use super::explanation_redaction::{ExplanationRedactor, WITHHELD};
use super::step::{ExplainedLimit, MatchResult, PolicyStep, amount_to_json};
use crate::call::{Outcome, OutcomeKind, Phase, Reason, Root, ToolCall, reason_code};
use crate::diagnostic::SourceMap;
use crate::host::RealCost;
use crate::json::Value;
use crate::kernel::{
    CostCorrected, Decision, DecisionStarted, Effect, FactStored, Layers, LimitChecked, PolicyEvaluated,
};
use crate::middleware::{CountedCalls, PolicyKind};
use crate::policy::{Mode, Unmatched};

/// The explanation of a call in progress.
#[derive(Debug)]
pub(super) struct ExplanationBuilder {
    /// The call's address in memory: ids may repeat, even in one round.
    address: usize,
    is_wanted: bool,
    is_running: bool,
    call: ExplainedCall,
    layers: Layers,
    /// The decisions on the call itself, and from index `again` on, those on its nested calls.
    decisions: Vec<DraftDecision>,
    first_nested: usize,
    /// The steps of the settle phase, and of policies of the run.
    later_steps: Vec<PolicyStep>,
    limits: Vec<LimitCheck>,
    /// The redactions that matched in the settle phase: layer and index of each policy.
    redactions: Vec<(u32, u32)>,
}

/// A request to a limit.
#[derive(Clone, Debug)]
struct LimitCheck {
    /// The index of the decision that made the request.
    decision: usize,
    layer: u32,
    policy: String,
    /// It is acquired together with others, or not at all.
    is_joint: bool,
    usage: ExplainedLimit,
}

/// One decision.
#[derive(Debug)]
struct DraftDecision {
    steps: Vec<PolicyStep>,
    effect: Effect,
    reason: Option<Reason>,
    input: Value,
}

impl ExplanationBuilder {
    pub(super) fn new(deciding: &DecisionStarted<'_>, is_wanted: bool) -> Self {
        let call = deciding.view.call;
        Self {
            address: address(call),
            is_wanted,
            is_running: false,
            call: ExplainedCall {
                id: call.id.clone(),
                tool: call.tool.clone(),
                server: call.server.clone(),
                session: None,
                input: Value::Null,
            },
            layers: deciding.layers.clone(),
            decisions: Vec::new(),
            first_nested: usize::MAX,
            later_steps: Vec::new(),
            limits: Vec::new(),
            redactions: Vec::new(),
        }
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.call.id == id
    }

    pub(super) fn is_call(&self, call: &ToolCall) -> bool {
        self.address == address(call) && self.call.id == call.id
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    pub(super) fn start_execution(&mut self) {
        self.is_running = true;
        self.first_nested = self.first_nested.min(self.decisions.len());
    }

    pub(super) fn begin_decision(&mut self, deciding: &DecisionStarted<'_>) {
        if !self.is_wanted {
            return;
        }
        let input = ExplanationRedactor::of(deciding.layers, deciding.view)
            .document(Root::Input, deciding.view.input);
        if self.decisions.is_empty() {
            self.call.input.clone_from(&input);
        }
        self.layers.clone_from(deciding.layers);
        self.decisions.push(DraftDecision { steps: Vec::new(), effect: Effect::Run, reason: None, input });
    }

    pub(super) fn add_evaluation(&mut self, evaluation: &PolicyEvaluated<'_>, sources: Option<&SourceMap>) {
        if !self.is_wanted {
            return;
        }
        let step = PolicyStep::from_evaluation(evaluation, &self.layers, sources);
        let enforced = evaluation.policy.mode != Mode::Shadow;
        if !matches!(evaluation.phase, Some(Phase::Normalise | Phase::Gate | Phase::Execute)) {
            if let (PolicyKind::Redact(_), Some(_), true) =
                (&evaluation.policy.kind, evaluation.verdict, enforced)
            {
                self.redactions.push((evaluation.layer, evaluation.index));
            }
            // Budgets may be evaluated more than once for a call.
            self.later_steps.retain(|known| known.phase.is_some() || known.policy_index != step.policy_index);
            self.later_steps.push(step);
            return;
        }
        let Some(decided) = self.decisions.last_mut() else { return };
        if let (Some(Phase::Normalise), Some(change), true) = (evaluation.phase, evaluation.change, enforced)
        {
            let redactor = ExplanationRedactor::of(&self.layers, evaluation.view);
            decided.input = redactor.document(Root::Input, change.after);
        }
        decided.steps.push(step);
    }

    pub(super) fn set_decision(&mut self, decision: &Decision<'_>) {
        if let (true, Some(decided)) = (self.is_wanted, self.decisions.last_mut()) {
            decided.effect = decision.effect();
            decided.reason = Some(decision.reason());
        }
    }

    pub(super) fn add_limit(&mut self, event: &LimitChecked<'_>) {
        let Some(limit) = event.policy.kind.as_limit() else { return };
        let retry_after = event.retry_after.map(|after| after.as_nanos().div_ceil(1_000_000));
        let usage = ExplainedLimit {
            limit: limit.description.clone(),
            cost: amount_to_json(event.cost),
            enough: event.is_enough,
            taken: event.is_enough || event.is_approved,
            left: event.left.map(amount_to_json),
            retry_after_ms: retry_after.and_then(|after| u64::try_from(after).ok()),
            real_cost: None,
        };
        let decision = self.decisions.len().saturating_sub(1);
        let check = LimitCheck {
            decision,
            layer: event.layer,
            policy: event.policy.id.clone(),
            is_joint: limit.counted == CountedCalls::Executions
                && event.policy.mode != Mode::Shadow
                && !event.is_approved,
            usage,
        };
        self.limits.push(check);
    }

    pub(super) fn correct_cost(&mut self, event: &CostCorrected<'_>) {
        let of_policy =
            |check: &&mut LimitCheck| check.layer == event.layer && check.policy == event.policy.id;
        if let Some(check) = self.limits.iter_mut().rev().find(of_policy) {
            check.usage.real_cost = Some(match event.cost {
                RealCost::Known(cost) => amount_to_json(cost),
                RealCost::Unknown => Value::Null,
            });
        }
    }

    pub(super) fn add_fact(&mut self, event: &FactStored<'_>) {
        let decided = self.decisions.last_mut().into_iter().flat_map(|decided| &mut decided.steps);
        let mut steps = self.later_steps.iter_mut().chain(decided);
        let of_policy = |step: &&mut PolicyStep| step.layer == event.layer && step.policy == event.policy.id;
        if let (Some(step), PolicyKind::Fact(fact)) = (steps.find(of_policy), &event.policy.kind) {
            step.fact = Some(ExplainedFact::new(fact, event.change));
        }
    }

    /// Completes the explanation. Without an outcome, it explains the decision only. Returns `None` if the call is not to be explained.
    pub(super) fn finish(
        mut self,
        outcome: Option<&Outcome>,
        sources: Option<&SourceMap>,
    ) -> Option<Explanation> {
        if !self.is_wanted {
            return None;
        }
        let redactions = self.redactions.clone();
        self.apply_limits();
        let executed = self.first_nested != usize::MAX;
        let again = self.decisions.split_off(self.first_nested.min(self.decisions.len()));
        let main = strictest(self.decisions)?;
        let kind = outcome.map(|outcome| outcome.outcome);
        let mut explanation = Explanation {
            version: VERSION,
            decision: decision_name(main.effect, kind),
            outcome: kind,
            reason: outcome.map(|outcome| outcome.reason.clone()).or(main.reason)?,
            why: String::new(),
            at: None,
            input: outcome.map_or(main.input, |outcome| outcome.input.clone()),
            unmatched: Vec::new(),
            steps: main.steps,
            again: again.into_iter().filter_map(DraftDecision::into_nested_call).collect(),
            attempts: outcome.and_then(|outcome| outcome.attempts),
            off: self.layers.iter().flat_map(|policies| policies.disabled_ids().iter().cloned()).collect(),
            revision: match outcome {
                Some(outcome) => outcome.revision.clone(),
                None => self.layers.iter().map(|policies| policies.revision()).collect::<Vec<_>>().join("+"),
            },
            call: self.call,
        };
        explanation.call.session = outcome.and_then(|outcome| outcome.session.clone());
        explanation.steps.append(&mut self.later_steps);
        explanation.add_unevaluated(&self.layers, sources);
        explanation.steps.sort_by_key(|step| (phase_order(step.phase), step.order));
        explanation.unmatched = unmatched_layers(&explanation, &self.layers);
        if let Some(outcome) = outcome {
            explanation.apply_final_verdicts(outcome);
        }
        explanation.mark_decisive();
        explanation.apply_late_redactions(&redactions, &self.layers);
        explanation.write_texts(executed);
        Some(explanation)
    }

    fn apply_limits(&mut self) {
        let limits = std::mem::take(&mut self.limits);
        for LimitCheck { decision, layer, policy, is_joint, mut usage } in
            limits.iter().map(LimitCheck::clone)
        {
            let refused =
                |other: &LimitCheck| other.decision == decision && other.is_joint && !other.usage.enough;
            if !self.redactions.is_empty() {
                // It is computed from the result as the tool returned it.
                usage.real_cost = usage.real_cost.map(|_| WITHHELD.into());
            }
            usage.taken &= !(is_joint && limits.iter().any(refused));
            let decided = self.decisions.get_mut(decision);
            let mut steps = decided.into_iter().flat_map(|decided| decided.steps.iter_mut());
            if let Some(step) = steps.find(|step| step.layer == layer && step.policy == policy) {
                step.limit = Some(usage);
            }
        }
    }
}

impl DraftDecision {
    fn into_nested_call(self) -> Option<NestedCall> {
        let had_a_say = |step: &PolicyStep| step.verdict.is_some() || step.heard == MatchResult::Undecided;
        Some(NestedCall {
            input: self.input,
            decision: decision_name(self.effect, None),
            reason: self.reason?,
            steps: self.steps.into_iter().filter(had_a_say).collect(),
        })
    }
}

/// The decision that counted: the strictest of several on one call, and of equally strict ones the last.
fn strictest(decisions: Vec<DraftDecision>) -> Option<DraftDecision> {
    let stricter = |earlier: DraftDecision, later: DraftDecision| {
        if earlier.effect > later.effect { earlier } else { later }
    };
    decisions.into_iter().reduce(stricter)
}

fn decision_name(effect: Effect, outcome: Option<OutcomeKind>) -> &'static str {
    match (outcome, effect) {
        (Some(OutcomeKind::Denied), _) | (None, Effect::Deny) => "deny",
        (Some(OutcomeKind::Halted), _) | (None, Effect::Halt) => "halt",
        (Some(OutcomeKind::Suspended), _) | (None, Effect::Suspend) => "suspend",
        (Some(OutcomeKind::Invalid), _) | (None, Effect::Invalid) => "invalid",
        (Some(OutcomeKind::Answered), _) | (None, Effect::Answer) => "answer",
        _ => "run",
    }
}

/// The layers in which nothing permits the call, and whose default stops it.
fn unmatched_layers(explanation: &Explanation, layers: &Layers) -> Vec<UnmatchedLayer> {
    if explanation.decision == "invalid" || explanation.reason.code == reason_code::SESSION_HALTED {
        return Vec::new();
    }
    let permits = |step: &PolicyStep, layer: u32| {
        step.layer == layer
            && !step.shadow
            && step.heard == MatchResult::Matched
            && step.verdict.is_some()
            && matches!(step.kind, "allow" | "approval" | "respond")
    };
    let unlifted = (0u32..).zip(layers).filter_map(|(layer, policies)| {
        let says = match policies.defaults().unmatched_for(&explanation.call.tool) {
            Unmatched::Allow => return None,
            Unmatched::Approval => "approval",
            Unmatched::Deny => "deny",
        };
        let lifted = explanation.steps.iter().any(|step| permits(step, layer));
        (!lifted).then_some(UnmatchedLayer { layer, says })
    });
    unlifted.collect()
}

fn phase_order(phase: Option<Phase>) -> u8 {
    match phase {
        Some(Phase::Normalise) => 0,
        Some(Phase::Gate) => 1,
        Some(Phase::Execute) => 2,
        Some(Phase::Settle) => 3,
        None => 4,
    }
}

fn address(call: &ToolCall) -> usize {
    std::ptr::from_ref(call).addr()
}
