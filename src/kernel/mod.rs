//! The life of one call: normalise → gate → execute → settle. `ToolCall` + session → [`Decision`], and executed
//! call → `Outcome`; each phase has its file.
//!
//! Policies come in layers (bundle, then prompt, then call). Each layer decides for itself and the strictest
//! decision counts, so a lower layer can only tighten.

mod approval_request;
mod approval_requirements;
mod argument_forms;
mod argument_suggestions;
mod attempted_facts;
mod cached_value;
mod call_redaction;
mod call_scope;
mod decision;
mod decision_reason;
mod effect;
mod events;
mod execution_result;
mod gate;
mod limit_requests;
mod normalise;
mod redacted_call;
pub(crate) mod run_policies;
mod session_use;
mod settle;
mod stream_policies;
mod phase_recorder;
mod policy_masks;
mod policy_reference;
mod trace;
mod wrapper_selection;

pub use crate::call::Effect;
pub(crate) use approval_requirements::HeldResources;
pub(crate) use argument_forms::ArgumentRedaction;
pub use decision::Decision;
pub(crate) use decision::{ExtraApproval, LimitRequest, Wrapper};
pub(crate) use events::notify;
pub use events::{
    Change, CostCorrected, DecisionStarted, ErrorMatched, Event, EventListener, FactStored, LimitChecked,
    MatchStatus, PolicyEvaluated, SkipReason,
};
pub(crate) use execution_result::{Broken, CallResponse, Execution, Records, Source, StoppedExecution};
pub(crate) use limit_requests::{
    effect as evaluate_effect, is_used_up, measure, undecided_effect, verdict as limit_verdict,
};
pub use policy_reference::Layers;
pub(crate) use policy_reference::{PolicyHandle, PolicyRef};
pub(crate) use redacted_call::{reads_yaml, redact_result};
pub(crate) use run_policies::is_never_called;
pub(crate) use session_use::SessionUse;
pub(crate) use trace::Trace;

use std::borrow::BorrowMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use smallvec::SmallVec;

use crate::call::{
    CallView, LetMemo, Phase, Reason, RoundPosition, SessionState, Task, ToolCall, reason_code,
};
use crate::host::{Clock, RealCost};
use crate::json::Value;
use crate::middleware::Limit;
use crate::seal::Keys;
use crate::tools::ToolSet;
use crate::work_limit::{self, WorkMeter};
use call_scope::CallScope;
use gate::GateResult;
use normalise::Normalised;
use phase_recorder::PhaseRecorder;
use redacted_call::RedactedCall;

/// Evaluates calls against the policies: the layers, each of one revision, the known tools and the clock.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    /// The layers, the bundle first.
    pub layers: &'k Layers,
    /// The known tools.
    pub tools: &'k ToolSet,
    /// The time.
    pub clock: &'k dyn Clock,
    /// The keys of the digests that stand for arguments and redacted values.
    pub keys: &'k Keys,
    /// The listener, if there is one.
    pub listener: Option<&'k dyn EventListener>,
    /// What the user asked for.
    pub task: &'k Task,
    /// The place of the call in its round, if it is known.
    pub round: Option<RoundPosition>,
}

impl std::fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl<'k> Kernel<'k> {
    /// Decides a call: normalise, then gate. Nothing is executed, counted or recorded.
    ///
    /// Fails closed: whatever goes wrong, a panic included, denies; so does a call for which the policies need
    /// more than [`DECISION_UNITS`](crate::work_limit::DECISION_UNITS) of work.
    pub fn decide<'c>(&self, call: &'c ToolCall, session: &SessionState) -> Decision<'c> {
        self.decide_as(call, session, HeldResources::default(), |decision| decision)
    }

    /// The same for a call that holds acquired limits or approvals already. On the heap, for a decision that is acted upon is passed on often.
    pub(crate) fn decide_holding<'c>(
        &self,
        call: &'c ToolCall,
        session: &SessionState,
        held: HeldResources<'_>,
    ) -> Box<Decision<'c>> {
        self.decide_as(call, session, held, Box::new)
    }

    fn decide_as<'c, D: BorrowMut<Decision<'c>>>(
        &self,
        call: &'c ToolCall,
        session: &SessionState,
        held: HeldResources<'_>,
        place: impl Fn(Decision<'c>) -> D,
    ) -> D {
        let mut meter = WorkMeter::for_decision();
        let decide = || meter.run_nested(|| place(self.decide_unguarded(call, session, held)));
        let mut placed = guarded(decide, || place(undecidable(call)));
        let decision = placed.borrow_mut();
        decision.work = meter.decision_units_used();
        notify(self.listener, &Event::Decided(decision));
        placed
    }

    fn decide_unguarded<'c>(
        &self,
        call: &'c ToolCall,
        session: &SessionState,
        held: HeldResources<'_>,
    ) -> Decision<'c> {
        let subject = self.subject(call);
        let view = subject.view(session);
        notify(self.listener, &Event::DecisionStarted(DecisionStarted { view, layers: self.layers }));
        if let Some(message) = session.halt_message() {
            return Decision::refused(call, Effect::Halt, reason_code::SESSION_HALTED, message);
        }
        let mut recorder = PhaseRecorder::new(self.listener, Phase::Normalise, Trace::default());
        let Normalised { input, failure } = normalise::run(&subject, &call.input, view, &recorder);
        recorder.begin(Phase::Gate);
        let lets = LetMemo::default();
        let view = CallView { input: &input, lets: Some(&lets), ..view };
        let mut gate = gate::run(&subject, view, failure, held, &recorder);
        let wrappers = match self.listener.is_some() || subject.has_wrappers() {
            true => wrapper_selection::select(&subject, &view, &mut gate, &recorder),
            false => SmallVec::new(),
        };
        let fixed_reason = gate.policy_of_fixed_reason(&subject, view);
        let reason = match &gate.cause {
            Some(cause) if fixed_reason.is_none() => gate.describe(cause, &subject, view),
            _ => None,
        };
        // A policy that was not evaluated any more could have stopped the call.
        if work_limit::is_exceeded() && gate.effect < Effect::Halt {
            let why = work_limit::WorkLimitError.to_string();
            return Decision::refused(call, Effect::Deny, reason_code::WORK_EXCEEDED, &why);
        }
        let GateResult { effect, permitted_by, approved, approvals, unmatched, answer, limits, .. } = gate;
        Decision {
            effect,
            reason,
            fixed_reason,
            permitted_by,
            approved,
            approvals,
            unmatched,
            answer,
            limits,
            wrappers,
            input,
            trace: recorder.into_trace(),
            layers: self.layers.clone(),
            ..Decision::new(call)
        }
    }

    /// A call as policies see it before it runs.
    pub(crate) fn view<'a>(&'a self, call: &'a ToolCall, session: &'a SessionState) -> CallView<'a> {
        CallView {
            annotations: self.annotations(call),
            task: Some(self.task),
            ..CallView::new(call, session)
        }
    }

    /// The annotations of a call's tool, from its server.
    pub(crate) fn annotations(&self, call: &ToolCall) -> Option<&'k Value> {
        self.tools.get(call).and_then(|tool| tool.descriptor.annotations.as_ref())
    }

    /// The cache policies that a call of this tool invalidates.
    pub(crate) fn invalidated_by(&self, call: &ToolCall) -> Vec<PolicyHandle<'_>> {
        if !self.layers.iter().any(|layer| layer.has_caches()) {
            return Vec::new();
        }
        let subject = self.subject(call);
        let layers = (0u32..).zip(self.layers.iter().zip(&subject.chains));
        let caches = layers.flat_map(|(layer, (policies, chain))| {
            chain.invalidates.iter().filter_map(move |index| {
                let reference = PolicyRef { layer, index: *index };
                Some(PolicyHandle { reference, policy: policies.policy(*index)? })
            })
        });
        caches.collect()
    }

    /// The reason of a call that is refused by a limit.
    pub(crate) fn limit_reason(
        &self,
        decision: &Decision<'_>,
        session: &SessionState,
        by: PolicyRef,
        retry_after: Option<Duration>,
    ) -> Reason {
        let subject = self.subject(&decision.call);
        let view = CallView { input: &decision.input, ..subject.view(session) };
        let redacted = RedactedCall::new(&subject, view);
        let policy = by.find(self.layers);
        let reason = policy
            .and_then(|policy| limit_requests::refusal(&subject, policy, retry_after, &redacted.view(view)));
        let mut reason = reason.unwrap_or_else(Self::failure_reason);
        reason.message = redacted.text(&reason.message);
        reason
    }

    /// The reason of a call that a limit suspends: the question to its approver.
    pub(crate) fn limit_question(
        &self,
        decision: &Decision<'_>,
        session: &SessionState,
        by: PolicyRef,
    ) -> Reason {
        let subject = self.subject(&decision.call);
        let view = CallView { input: &decision.input, ..subject.view(session) };
        let redacted = RedactedCall::new(&subject, view);
        Reason {
            policy: by.find(self.layers).map(|policy| policy.id.clone()),
            code: reason_code::APPROVAL_REQUIRED.to_owned(),
            message: redacted.text(&decision_reason::question(subject.layers, &[by], redacted.view(view))),
        }
    }

    /// The real cost of a call that has this output, for a limit with `cost_after`. After a panic in here it is unknown.
    pub(crate) fn real_cost(
        &self,
        limit: &Limit,
        call: &ToolCall,
        output: &Value,
        session: &SessionState,
    ) -> RealCost {
        let read = || {
            let subject = self.subject(call);
            let result = subject.tool_result(output);
            let lets = LetMemo::default();
            limit.real_cost(&CallView {
                output: Some(output),
                result: result.view(output),
                lets: Some(&lets),
                ..subject.view(session)
            })
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or(RealCost::Unknown)
    }

    /// The reason of a call on which Callgate itself failed.
    pub(crate) fn failure_reason() -> Reason {
        Reason { policy: None, code: reason_code::INTERNAL_ERROR.to_owned(), message: UNDECIDABLE.to_owned() }
    }

    /// Halts the session by a decision. Later calls repeat the message, so it is redacted.
    pub(crate) fn halt(&self, decision: &Decision<'_>, session: &mut SessionState) {
        let message = self.redacted_reason(decision, session).message;
        session.halt(&message);
    }

    /// The digest of the rules of all layers.
    pub fn revision(&self) -> String {
        match self.layers.as_slice() {
            [bundle] => bundle.revision().to_owned(),
            layers => layers.iter().map(|layer| layer.revision()).collect::<Vec<_>>().join("+"),
        }
    }
}

/// Denies if deciding panics.
fn guarded<D>(decide: impl FnOnce() -> D, deny: impl FnOnce() -> D) -> D {
    catch_unwind(AssertUnwindSafe(decide)).unwrap_or_else(|_| deny())
}

/// The decision on a call on which Callgate itself failed.
fn undecidable(call: &ToolCall) -> Decision<'_> {
    Decision::refused(call, Effect::Deny, reason_code::INTERNAL_ERROR, UNDECIDABLE)
}

/// The message for a call on which Callgate itself failed.
const UNDECIDABLE: &str = "Callgate failed to decide this call";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_deciding_denies() {
        let call = ToolCall::new("c1", "pay", crate::json::json!({}));
        let decision = guarded(|| panic!("a mistake in Callgate"), || undecidable(&call));
        assert_eq!((decision.effect(), decision.is_permitted()), (Effect::Deny, false));
        assert_eq!(decision.reason().code, reason_code::INTERNAL_ERROR);
    }
}
