//! Only the effect of a decision: the strictest policies come first, and the first match ends the search. Call → [`Effect`].
//!
//! Of arguments that are still text, only members that policies read are kept. It reads no more than it needs, and falls back to the whole decision wherever another policy could matter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Kernel;
use super::call_scope::CallScope;
use crate::call::{CallView, Effect, LetMemo, Phase, SessionState, ToolCall};
use crate::json::{self, ParseError};
use crate::policy::{CompiledPolicies, ScalarEvaluator, ToolPolicies, Unmatched, effect_of};
use crate::work_limit::{self, WorkMeter};

impl Kernel<'_> {
    /// The effect that [`decide`](Self::decide) has.
    pub fn effect(&self, call: &ToolCall, session: &SessionState) -> Effect {
        self.find_effect(call, session).unwrap_or_else(|| self.decide(call, session).effect())
    }

    /// The effect of a call with the arguments of a JSON text instead of its own.
    ///
    /// # Errors
    ///
    /// The text is not JSON.
    pub fn effect_of_text(
        &self,
        mut call: ToolCall,
        arguments: &str,
        session: &SessionState,
    ) -> Result<Effect, ParseError> {
        if let Some(policies) = self.policies_of_members(&call) {
            call.input = json::parse_members(arguments, |name| policies.name_filter.concerns(name))?;
            if let Some(effect) = self.find_effect(&call, session) {
                return Ok(effect);
            }
        }
        call.input = json::parse(arguments)?;
        Ok(self.effect(&call, session))
    }

    /// The policies of a call's tool, if its effect depends on some members of the arguments only.
    fn policies_of_members(&self, call: &ToolCall) -> Option<Arc<ToolPolicies>> {
        let subject = self.subject(call);
        let has_schema = subject.tool.is_some_and(|tool| tool.schema.is_some());
        match &*subject.chains {
            [policies] if policies.is_effect_of_members && subject.is_plain() && !has_schema => {
                Some(Arc::clone(policies))
            }
            _ => None,
        }
    }

    /// Returns `None` if that takes the whole decision.
    fn find_effect(&self, call: &ToolCall, session: &SessionState) -> Option<Effect> {
        if self.listener.is_some() {
            return None;
        }
        let mut meter = WorkMeter::for_decision();
        let evaluate = || meter.run_nested(|| self.evaluate_effect(call, session));
        // A panic is a failure to decide, which the whole decision turns into its effect.
        catch_unwind(AssertUnwindSafe(evaluate)).ok().flatten()
    }

    fn evaluate_effect(&self, call: &ToolCall, session: &SessionState) -> Option<Effect> {
        if session.halt_message().is_some() {
            return Some(Effect::Halt);
        }
        let subject = self.subject(call);
        if !subject.is_plain() || !call.input.is_object() || call.has_reserved_name() {
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

impl CallScope<'_> {
    /// Whether nothing but the policies of gate can change the effect of a valid call.
    fn is_plain(&self) -> bool {
        self.chains.iter().all(|chain| chain.normalise.is_empty() && chain.execute.is_empty())
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
