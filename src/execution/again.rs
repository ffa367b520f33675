//! A call that is made of one under way: by a script or a hook that calls what it wraps with other arguments, or once more. It is
//! decided anew, with what the call holds already.

use super::admission;
use super::nest::Nest;
use crate::call::ToolCall;
use crate::host::{ToolError, ToolExecutor};
use crate::kernel::{Decision, Effect, Ended, Held, Wrapper};

/// What is to become of such a call.
pub(super) enum Again {
    /// It may run: with these arguments, where a policy changed them, inside of all these policies.
    Run { formed: Option<Box<ToolCall>>, wrappers: Vec<Wrapper> },
    /// A policy answers for it.
    Ended(Ended),
    /// A person would have to be asked, and the tool was called already.
    TooLate,
    /// It stops the whole call: a person is asked, or the run is halted.
    Stopped(Box<Decision<'static>>),
    /// It is refused: whoever made it may go on.
    Refused(ToolError, Box<Decision<'static>>),
}

impl<E: ToolExecutor> Nest<'_, E> {
    /// Decides it, and takes of limits. `own`: it has the call's own arguments.
    pub(super) async fn again(&mut self, call: &ToolCall, own: bool) -> Again {
        if self.attempts > 0 {
            self.taken.use_up();
        }
        let super::Execute { kernel, services, .. } = self.execute;
        // Hooks have seen the call's own arguments; others are new to them.
        let hooked = match own {
            true => None,
            false => Some(self.execute.hooks().before(call.clone()).await),
        };
        let decide = |held: Held<'_>| match &hooked {
            Some(hooked) => hooked.decide(kernel, self.state, held),
            None => kernel.decide_holding(call, self.state, held),
        };
        let mut decision = decide(self.held());
        if let Some((permits, _)) =
            self.execute.remembered(self.requested, &decision, self.held(), self.state).await
        {
            decision = decide(Held { permits: &permits, ..self.held() });
        }
        admission::admit(kernel, services, &mut decision, self.taken, self.state).await;
        match decision.effect() {
            Effect::Run => {
                let hooked_call = || (!own).then(|| decision.call().clone());
                let formed = decision.changed_call().or_else(hooked_call).map(Box::new);
                // As long as nothing else was called with, these are the arguments that were decided in the first place.
                if !own || formed.is_some() || self.input.is_some() {
                    self.input = Some(formed.as_deref().unwrap_or(call).input.clone());
                }
                Again::Run { formed, wrappers: decision.wrappers().to_vec() }
            }
            Effect::Answer => Again::Ended(match (decision.given(), decision.answer()) {
                (Some((by, output)), _) => Ended::Given(output, vec![by]),
                (None, Some((by, output))) => Ended::Answered(by, output),
                (None, None) => Ended::Failed(ToolError::new("nothing answers"), None),
            }),
            Effect::Suspend if self.attempts > 0 => Again::TooLate,
            Effect::Suspend | Effect::Halt => Again::Stopped(self.refused(decision)),
            Effect::Deny | Effect::Invalid => {
                let kind = if decision.effect() == Effect::Invalid { "invalid" } else { "denied" };
                let error = ToolError::new(decision.reason().message).of_kind(kind);
                Again::Refused(error, self.refused(decision))
            }
        }
    }

    /// A refusal of a call that was made of this one, with what was noted of this one so far.
    pub(super) fn refused(&self, decision: Decision<'_>) -> Box<Decision<'static>> {
        let mut decision = decision.into_owned();
        let mut trace = self.trace.clone();
        trace.append(decision.take_trace());
        decision.put_trace(trace);
        Box::new(decision)
    }

    /// What the call holds already.
    pub(super) fn held(&self) -> Held<'_> {
        Held { limits: self.taken.held(), permits: &self.turn.permits }
    }
}

/// A person can be asked only before the tool was called: what it did can't be taken up again later.
pub(super) fn too_late() -> ToolError {
    ToolError::new("this needs an approval, which can't be asked for after the tool was called")
        .of_kind("denied")
}
