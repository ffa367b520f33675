//! A call that is made of one under way: a script or a hook calls what it wraps with other arguments, or once more. It is decided again,
//! with what the call holds already.

use super::WrapperChain;
use crate::call::{SessionState, ToolCall};
use crate::execution::admission::GrantedAdmission;
use crate::host::{ToolError, ToolExecutor};
use crate::kernel::{CallResponse, Decision, Effect, HeldResources, Wrapper};

/// The decision on a nested call.
pub(super) enum NestedCall {
    /// It may run: with these arguments if a policy changed them, inside of all these policies.
    Run { changed: Option<Box<ToolCall>>, wrappers: Vec<Wrapper> },
    /// A policy or a hook answers in its place.
    Answered(CallResponse),
    /// It needs an approval, and the tool was called already.
    TooLate,
    /// It stops the whole call: it needs an approval, or halts the run.
    Stopped(Box<Decision<'static>>),
    /// It is refused; its caller may go on.
    Refused(ToolError, Box<Decision<'static>>),
}

impl<E: ToolExecutor> WrapperChain<'_, E> {
    /// Decides a nested call, and acquires its limits. `is_own`: it has the call's own arguments.
    pub(super) async fn decide_nested(&mut self, call: &ToolCall, is_own: bool) -> NestedCall {
        if self.attempts > 0 {
            self.limits.use_up();
        }
        let context = self.context;
        // Hooks have seen the call's own arguments; others are new to them.
        let hooked = match is_own {
            true => None,
            false => Some(context.hooks.before(call.clone().into()).await),
        };
        let decide = |state: &SessionState, held: HeldResources<'_>| match &hooked {
            Some(hooked) => hooked.decide(&context.kernel, state, held),
            None => context.kernel.decide_holding(call, state, held),
        };
        let decision = decide(self.state, self.held());
        let (attempt, limits) = (self.attempt, &mut *self.limits);
        let admission = GrantedAdmission { context, attempt, limits, state: &mut *self.state };
        let (decision, _) = admission.admit(decision, decide).await;
        match decision.effect() {
            Effect::Run => {
                let hooked_call = || (!is_own).then(|| decision.call().clone());
                let changed = decision.changed_call().or_else(hooked_call).map(Box::new);
                // As long as nothing else was called with, the arguments are those of the first decision.
                if !is_own || changed.is_some() || self.input.is_some() {
                    self.input = Some(changed.as_deref().unwrap_or(call).input.clone());
                }
                NestedCall::Run { changed, wrappers: decision.wrappers().to_vec() }
            }
            Effect::Answer => NestedCall::Answered(
                CallResponse::from_decision(&decision)
                    .unwrap_or_else(|| CallResponse::failed(ToolError::new("nothing answers"))),
            ),
            Effect::Suspend if self.attempts > 0 => NestedCall::TooLate,
            Effect::Suspend | Effect::Halt => NestedCall::Stopped(self.refused(decision)),
            Effect::Deny | Effect::Invalid => {
                let kind = if decision.effect() == Effect::Invalid { "invalid" } else { "denied" };
                let error = ToolError::new(decision.reason().message).with_kind(kind);
                NestedCall::Refused(error, self.refused(decision))
            }
        }
    }

    /// A refusal of a nested call, with the trace of the call so far.
    pub(super) fn refused(&self, decision: Box<Decision<'_>>) -> Box<Decision<'static>> {
        let mut decision = decision.into_owned();
        let mut trace = self.trace.clone();
        trace.append(decision.take_trace());
        decision.put_trace(trace);
        Box::new(decision)
    }
}

/// The error of a nested call that needs an approval after the tool was called: what the tool did can't be resumed later.
pub(super) fn too_late() -> ToolError {
    ToolError::new("this needs an approval, which can't be requested after the tool was called")
        .with_kind("denied")
}
