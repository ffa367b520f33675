//! Only the effect of a decision: the strictest policies come first, and the first match ends the search. Call → [`Effect`].
//!
//! It reads no more than it needs, and falls back to the whole decision wherever another policy could matter.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Kernel;
use crate::call::{CallView, Effect, LetMemo, Phase, SessionState, ToolCall};
use crate::policy::{CompiledPolicies, ScalarEvaluator, ToolPolicies, Unmatched, effect_of};
use crate::work_limit::{self, WorkMeter};

impl Kernel<'_> {
    /// The effect that [`decide`](Self::decide) has.
    pub fn effect(&self, call: &ToolCall, session: &SessionState) -> Effect {
        let mut meter = WorkMeter::for_decision();
        let find = || meter.run_nested(|| self.find_effect(call, session));
        // A panic is a failure to decide, which the whole decision turns into its effect.
        let found =
            if self.listener.is_some() { None } else { catch_unwind(AssertUnwindSafe(find)).ok().flatten() };
        found.unwrap_or_else(|| self.decide(call, session).effect())
    }

    /// Returns `None` if that takes the whole decision.
    fn find_effect(&self, call: &ToolCall, session: &SessionState) -> Option<Effect> {
        if session.halt_message().is_some() {
            return Some(Effect::Halt);
        }
        let subject = self.subject(call);
        let is_plain = subject.chains.iter().all(|chain| chain.normalise.is_empty());
        if !is_plain || !call.input.is_object() || call.has_reserved_name() || subject.has_wrappers() {
            return None;
        }
        if subject.check_arguments(&call.input).is_some() {
            return None;
        }
        let lets = LetMemo::default();
        let view = CallView { lets: Some(&lets), ..subject.view(session) };
        let mut strictest = Effect::Run;
        for (policies, chain) in subject.layers.iter().zip(&subject.chains) {
            if policies.defaults().unmatched_for(&call.tool) != Unmatched::Allow {
                return None;
            }
            strictest = strictest.max(strictest_effect(policies, chain, &view)?);
        }
        (!work_limit::is_exceeded()).then_some(strictest)
    }
}

/// The strictest effect of the policies of one layer.
fn strictest_effect(
    policies: &CompiledPolicies,
    chain: &ToolPolicies,
    view: &CallView<'_>,
) -> Option<Effect> {
    let strictest_first = chain.gate.strictest_first()?;
    let scalars = ScalarEvaluator::new(policies.scalar_conditions(), *view);
    let matches = |index: u32| {
        scalars.holds(index).or_else(|| {
            let policy = policies.policy(index)?;
            Some(policy.kind.application(&policy.matcher.eval(view), Phase::Gate).takes_part())
        })
    };
    let mut strictest = Effect::Run;
    for index in chain.gate.found_by_value(view) {
        let effect = effect_of(policies.policy(index)?)?;
        if effect > strictest && matches(index)? {
            strictest = effect;
        }
    }
    for (effect, index) in strictest_first.iter().take_while(|(effect, _)| *effect > strictest) {
        if matches(*index)? {
            return Some(*effect);
        }
    }
    Some(strictest)
}
