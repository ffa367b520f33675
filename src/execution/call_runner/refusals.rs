//! Outcomes of calls that do not run for a reason outside of the rules, and of calls of which nobody knows how they ended.

use std::borrow::Cow;
use std::time::Instant;

use super::CallRunner;
use crate::approval::{LedgerError, LedgerKey};
use crate::call::{Outcome, OutcomeKind, Reason, ToolCall, reason_code};
use crate::execution::CallAttempt;
use crate::host::ToolExecutor;
use crate::kernel::{Decision, Effect, Execution, HeldResources};

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// The outcome of a call that does not run, for a reason outside of the rules.
    pub(in crate::execution) async fn deny(
        &mut self,
        attempt: &CallAttempt<'_>,
        effect: Effect,
        reason: Reason,
    ) -> Box<Outcome> {
        let mut decision = attempt.hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        decision.refuse(effect, reason, None);
        let outcome = self.refuse(attempt, decision).await;
        self.finish(attempt, outcome).await
    }

    /// The outcome of a call whose ledger does not answer. It is not recorded: the call may have run, or wait with its answer.
    pub(in crate::execution) async fn deny_unavailable(
        &mut self,
        call: &ToolCall,
        key: &LedgerKey,
        error: &LedgerError,
        started: Instant,
    ) -> Box<Outcome> {
        let hooked = self.run_before_hooks(call.clone().into()).await;
        let attempt = CallAttempt::new(&hooked, Cow::Borrowed(key), started);
        let mut decision = hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        decision.refuse(Effect::Deny, unavailable_ledger(error), None);
        self.refuse(&attempt, decision).await
    }

    /// Denies a call that needs an approval while another one of its round is suspended, if approvals are requested one at a time.
    pub(crate) fn defer_if_suspended(&self, decision: &mut Decision<'_>) {
        if self.round.is_suspended()
            && decision.effect() == Effect::Suspend
            && self.context.kernel.asks_one_at_a_time(decision)
        {
            let message =
                "not run: another call of this turn needs an approval; request this one again after it";
            let code = reason_code::ASK_AGAIN.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message: message.to_owned() }, None);
        }
    }

    /// The outcome of a call that may have run, and nobody knows how it ended.
    pub(in crate::execution) fn indeterminate(
        &mut self,
        attempt: &CallAttempt<'_>,
        reason: Reason,
    ) -> Box<Outcome> {
        let decision = attempt.hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        let execution = Execution::broken(reason, OutcomeKind::Indeterminate);
        self.context.kernel.settle(decision, execution, self.state, attempt.started)
    }

    /// The same for a call that hooks have not seen in this attempt.
    pub(crate) async fn indeterminate_call(
        &mut self,
        call: &ToolCall,
        reason: Reason,
        started: Instant,
    ) -> Box<Outcome> {
        let hooked = self.run_before_hooks(call.clone().into()).await;
        let key = self.context.call_key(call.id.clone());
        self.indeterminate(&CallAttempt::new(&hooked, Cow::Owned(key), started), reason)
    }
}

/// The reason of a call that may have run, and nobody knows how it ended.
pub(crate) fn unfinished(message: impl Into<String>) -> Reason {
    Reason { policy: None, code: reason_code::UNFINISHED.to_owned(), message: message.into() }
}

/// The reason of a call that does not run because its ledger does not answer.
pub(in crate::execution) fn unavailable_ledger(error: &LedgerError) -> Reason {
    let message = format!("it is unknown whether this call ran already: {error}");
    Reason { policy: None, code: error.code().to_owned(), message }
}
