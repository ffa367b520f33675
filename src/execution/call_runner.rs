//! The life of one call, on one page: look up → hooks → decide → budget → limits → execute → settle → report.

use std::time::Instant;

use super::admission::{self, AcquiredLimits};
use super::approval_verification::ApprovalMessages;
use super::other_runner::OtherRunner;
use super::wrappers::WrapperChain;
use super::{BudgetReservation, CallAttempt, CallContext, ClaimError, HookedCall, RoundProgress};
use crate::approval::{LedgerError, LedgerKey};
use crate::call::{
    Amount, ApprovalRequest, Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code,
};
use crate::host::{StoreError, ToolCallSpan, ToolCallStart, ToolExecutor, catch_panic};
use crate::kernel::{Decision, Effect, Event, Execution, HeldResources, Kernel, notify};
use crate::middleware::{BudgetAmounts, OnBudgetExceeded};
use crate::work_limit::WorkMeter;

/// Runs the calls of one session, one after the other.
pub(crate) struct CallRunner<'r, E> {
    pub(crate) context: CallContext<'r, E>,
    pub(crate) state: &'r mut SessionState,
    /// The calls of the present round that have begun.
    pub(crate) round: &'r mut RoundProgress,
}

/// A call before it is decided: as hooks left it, with the ledger's knowledge of it.
pub(crate) struct PreparedCall {
    pub(crate) hooked: HookedCall,
    pub(crate) lookup: LedgerLookup,
}

/// The ledger's knowledge of a call.
#[derive(Clone)]
pub(crate) enum LedgerLookup {
    /// None.
    New(LedgerKey),
    /// It was attempted before.
    Known(LedgerKey),
    /// The ledger does not answer.
    Unavailable(LedgerKey, LedgerError),
}

impl<'r, E: ToolExecutor> CallRunner<'r, E> {
    /// Runs one call that is in no round. `stored`: whether the store returned the session's state.
    pub(crate) async fn run_call(
        &mut self,
        call: ToolCall,
        occurrence: String,
        stored: &Result<(), StoreError>,
        started: Instant,
    ) -> Outcome {
        let prepared = self.prepare(call, occurrence, stored).await;
        let decision = self.decide(&prepared);
        let outcome = self.run_prepared(&prepared, decision, started).await;
        self.report(outcome)
    }

    /// Looks a call up in the ledger, and has hooks see it if it is new.
    pub(crate) async fn prepare(
        &mut self,
        call: ToolCall,
        occurrence: String,
        stored: &Result<(), StoreError>,
    ) -> PreparedCall {
        let lookup = self.look_up(&call, occurrence, stored).await;
        let hooked = match lookup {
            LedgerLookup::New(_) => {
                let mut hooked = self.run_before_hooks(call).await;
                self.refuse_unoffered(&mut hooked);
                hooked
            }
            _ => HookedCall::untouched(call),
        };
        PreparedCall { hooked, lookup }
    }

    /// The ledger's knowledge of a call of a recorded session. An occurrence that is another call's is passed over.
    async fn look_up(
        &mut self,
        call: &ToolCall,
        occurrence: String,
        stored: &Result<(), StoreError>,
    ) -> LedgerLookup {
        let mut key = self.context.call_key(occurrence);
        if !self.context.session.is_recorded {
            return LedgerLookup::New(key);
        }
        if let Err(error) = stored {
            return LedgerLookup::Unavailable(key, error.clone().into());
        }
        let ledger = self.context.ledger(call);
        loop {
            match ledger.find(&key).await {
                Ok(None) => return LedgerLookup::New(key),
                Ok(Some(entry)) if entry.is_for_call(call) => return LedgerLookup::Known(key),
                Ok(Some(_)) => key.occurrence_id = self.state.unique_call_id(&call.id),
                Err(error) => return LedgerLookup::Unavailable(key, error),
            }
        }
    }

    /// Runs the `before` hooks. If one of them aborted the run, nothing starts any more.
    pub(crate) async fn run_before_hooks(&mut self, call: ToolCall) -> HookedCall {
        let hooked = self.context.hooks.before(call).await;
        if let Some(reason) = self.context.hooks.run.abort_reason() {
            self.state.halt(&reason);
        }
        hooked
    }

    /// Refuses a new call of a tool that the model was not offered. A suspended call that resumes was offered when it was made.
    pub(crate) fn refuse_unoffered(&self, hooked: &mut HookedCall) {
        if self.context.session.offered.is_some_and(|offered| !offered.has(&hooked.call)) {
            hooked.refuse_unoffered();
        }
    }

    /// The decision on a call. `None` if the ledger knows the call, or does not answer: then its entry decides.
    pub(crate) fn decide<'c>(&self, prepared: &'c PreparedCall) -> Option<Decision<'c>> {
        let is_new = matches!(prepared.lookup, LedgerLookup::New(_));
        is_new.then(|| prepared.hooked.decide(&self.context.kernel, self.state, HeldResources::default()))
    }

    /// Brings a prepared call to its outcome, by its decision if it is new, and by its ledger entry otherwise.
    pub(crate) async fn run_prepared<'c>(
        &mut self,
        prepared: &'c PreparedCall,
        decision: Option<Decision<'c>>,
        started: Instant,
    ) -> Outcome {
        let hooked = &prepared.hooked;
        match (&prepared.lookup, decision) {
            (LedgerLookup::New(key), Some(decision)) => {
                let tool = self.context.kernel.tools.get(&hooked.call);
                let at_most_once =
                    self.context.session.is_recorded || tool.is_some_and(|tool| tool.descriptor.once);
                let attempt = CallAttempt { at_most_once, ..CallAttempt::new(hooked, key.clone(), started) };
                Box::pin(self.run_new(&attempt, decision)).await
            }
            (LedgerLookup::Unavailable(key, error), _) => {
                Box::pin(self.deny_unavailable(&hooked.call, key, error, started)).await
            }
            (LedgerLookup::Known(key) | LedgerLookup::New(key), _) => {
                let messages = ApprovalMessages::default();
                Box::pin(self.resume_call(&hooked.call, key, messages, started)).await.outcome
            }
        }
    }

    async fn run_new<'c>(&mut self, attempt: &CallAttempt<'c>, decision: Decision<'c>) -> Outcome {
        match self.run_decided(attempt, decision).await {
            Ok(outcome) => self.finish(attempt, outcome).await,
            Err(ClaimError::Lost(entry)) => match self.wait_for_other_runner(attempt, *entry).await {
                OtherRunner::Ended(outcome) => *outcome,
                OtherRunner::Abandoned(entry) => {
                    let (call, key) = (attempt.requested(), &attempt.key);
                    Box::pin(self.run_abandoned(call, key, *entry, attempt.started)).await
                }
                OtherRunner::Unknown(message) => self.indeterminate(attempt, unfinished(message)),
            },
            Err(ClaimError::Ledger(error)) => {
                Box::pin(self.deny(attempt, Effect::Deny, unavailable_ledger(&error))).await
            }
        }
    }

    /// Runs a decided call as far as budgets, limits and the ledger allow. Errors: it did not start, for it could not be claimed.
    pub(super) async fn run_decided<'c>(
        &mut self,
        attempt: &CallAttempt<'c>,
        mut decision: Decision<'c>,
    ) -> Result<Outcome, ClaimError> {
        let reserved = self.reserve_budget(attempt, &mut decision).await;
        let meter = WorkMeter::after_decision(decision.work());
        // On the heap: everything around a tool would otherwise be part of each future that waits for it.
        let ended = Box::pin(meter.scope(self.execute(attempt, decision))).await;
        // Only a call that may have reached its tool is counted.
        let may_have_run = ended.as_ref().is_ok_and(|outcome| may_have_run(outcome.outcome));
        if let Some(reserved) = reserved.filter(|_| !may_have_run) {
            self.context.budgets().release(self.state, reserved).await;
        }
        ended
    }

    /// Counts the call in its budgets, or makes the decision stricter. A call that is refused anyway counts nothing, and one that runs
    /// again was counted when it ran first.
    async fn reserve_budget(
        &mut self,
        attempt: &CallAttempt<'_>,
        decision: &mut Decision<'_>,
    ) -> Option<BudgetReservation> {
        if decision.effect() >= Effect::Invalid || attempt.holds_claim {
            return None;
        }
        let mut shadows = Vec::new();
        let one = BudgetAmounts { calls: Some(Amount::from_whole(1)), ..BudgetAmounts::default() };
        let reserved = self.context.budgets().reserve(self.state, one, |_| true, &mut shadows).await;
        for shadow in shadows {
            decision.note(shadow.policy, shadow.verdict());
        }
        reserved
            .map_err(|exceeded| {
                decision.note(exceeded.policy, exceeded.verdict());
                let halts = exceeded.at_bound == OnBudgetExceeded::Halt;
                decision.refuse(if halts { Effect::Halt } else { Effect::Deny }, exceeded.reason, None);
            })
            .ok()
    }

    async fn execute<'c>(
        &mut self,
        attempt: &CallAttempt<'c>,
        mut decision: Decision<'c>,
    ) -> Result<Outcome, ClaimError> {
        let granted = self.context.find_grants(attempt, &decision, attempt.held(), self.state).await;
        let granted = granted.map(|(permits, approved)| {
            let held = HeldResources { permits: &permits, ..attempt.held() };
            decision = attempt.hooked.decide(&self.context.kernel, self.state, held);
            approved
        });
        let mut limits = AcquiredLimits::default();
        admission::admit(&self.context, &mut decision, &mut limits, self.state).await;
        match (decision.effect(), decision.own_answer()) {
            (Effect::Run, _) => {
                let mut outcome = self.execute_tool(attempt, decision, limits).await?;
                if outcome.outcome != OutcomeKind::Suspended {
                    outcome.approved = attempt.approved.clone().or(granted);
                }
                Ok(outcome)
            }
            (Effect::Answer, Some(response)) => Ok(self.settle(attempt, decision, Ok(response).into())),
            _ => Ok(self.refuse(attempt, decision).await),
        }
    }

    /// Claims the call if it may run only once, runs its tool inside of all that wraps it, and settles what that gave.
    async fn execute_tool<'c>(
        &mut self,
        attempt: &CallAttempt<'c>,
        mut decision: Decision<'c>,
        mut limits: AcquiredLimits,
    ) -> Result<Outcome, ClaimError> {
        if attempt.needs_claim() {
            self.context.claim(attempt).await?;
        }
        self.report_start(&decision);
        let chain = WrapperChain::new(&self.context, attempt, &mut limits, self.state);
        // On the heap: what is around a tool is large, and a tool may make calls itself.
        match Box::pin(chain.run(&mut decision)).await {
            Ok(execution) => Ok(self.settle(attempt, decision, execution)),
            Err(stopped) => Ok(self.refuse_started(attempt, stopped, decision.input()).await),
        }
    }

    /// Settles a call that was executed or answered.
    pub(super) fn settle(
        &mut self,
        attempt: &CallAttempt<'_>,
        decision: Decision<'_>,
        execution: Execution,
    ) -> Outcome {
        self.context.kernel.settle(decision, execution, self.state, attempt.started)
    }

    /// The outcome of a call that does not run, for a reason outside of the rules.
    pub(super) async fn deny(
        &mut self,
        attempt: &CallAttempt<'_>,
        effect: Effect,
        reason: Reason,
    ) -> Outcome {
        let mut decision = attempt.hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        decision.refuse(effect, reason, None);
        let outcome = self.refuse(attempt, decision).await;
        self.finish(attempt, outcome).await
    }

    /// The outcome of a call whose ledger does not answer. It is not recorded: the call may have run, or wait with its answer.
    pub(super) async fn deny_unavailable(
        &mut self,
        call: &ToolCall,
        key: &LedgerKey,
        error: &LedgerError,
        started: Instant,
    ) -> Outcome {
        let hooked = self.run_before_hooks(call.clone()).await;
        let attempt = CallAttempt::new(&hooked, key.clone(), started);
        let mut decision = hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        decision.refuse(Effect::Deny, unavailable_ledger(error), None);
        self.refuse(&attempt, decision).await
    }

    /// The outcome of a call that may have run, and nobody knows how it ended.
    pub(super) fn indeterminate(&mut self, attempt: &CallAttempt<'_>, reason: Reason) -> Outcome {
        let decision = attempt.hooked.decide(&self.context.kernel, self.state, HeldResources::default());
        self.settle(attempt, decision, Execution::broken(reason, OutcomeKind::Indeterminate))
    }

    /// The same for a call that hooks have not seen in this attempt.
    pub(crate) async fn indeterminate_call(
        &mut self,
        call: &ToolCall,
        reason: Reason,
        started: Instant,
    ) -> Outcome {
        let hooked = self.run_before_hooks(call.clone()).await;
        let key = self.context.call_key(call.id.clone());
        self.indeterminate(&CallAttempt::new(&hooked, key, started), reason)
    }

    /// The end of an attempt: `after` hooks see the outcome, and the ledger records it.
    pub(super) async fn finish(&mut self, attempt: &CallAttempt<'_>, mut outcome: Outcome) -> Outcome {
        let call = &attempt.hooked.call;
        if outcome.outcome != OutcomeKind::Suspended && !self.context.hooks.all.is_empty() {
            let (kernel, state) = (self.context.kernel, &*self.state);
            let redact = |outcome: &mut Outcome| kernel.redact_outcome(call, outcome, state);
            outcome = self.context.hooks.after(call, outcome, redact).await;
        }
        // Whatever fails here, the outcome stays.
        let _ = catch_panic(self.record_end(attempt, &outcome)).await;
        outcome
    }

    async fn record_end(&self, attempt: &CallAttempt<'_>, outcome: &Outcome) {
        let ledger = self.context.ledger(attempt.requested());
        let is_recorded = self.context.session.is_recorded;
        // State first: a process that ends in between would otherwise leave a settled call whose labels and facts are lost.
        let stored = if is_recorded { self.save_state().await } else { Ok(()) };
        if outcome.outcome == OutcomeKind::Suspended {
            if let Some(request) = &outcome.approval {
                let key = LedgerKey { occurrence_id: occurrence_of(request), ..attempt.key.clone() };
                // If the store does not answer, it is better to notify twice than never.
                if ledger.mark_notified(&key, false).await.unwrap_or(true) {
                    self.context.services.notify(|observer| observer.on_request(request));
                }
            }
        } else if stored.is_ok() && (attempt.needs_claim() || attempt.entry.is_some() || is_recorded) {
            // Without it the ledger says that nobody knows how the call ended, and it is not run again.
            let _ = ledger.record_outcome(&attempt.key, &attempt.ledger_entry(), outcome).await;
        }
    }

    /// Stores the session's state, without the occurrences of calls: every call has an entry of its own, and the list would grow with
    /// each.
    pub(super) async fn save_state(&self) -> Result<(), StoreError> {
        let state = self.state.clone().without_occurrences();
        let account = crate::host::Account::from_context(&self.context.hooks.run.context);
        self.context.services.store_session(self.context.session.conversation, account, &state).await
    }

    /// Notifies listeners and observers of an outcome.
    pub(crate) fn report(&self, mut outcome: Outcome) -> Outcome {
        let CallContext { kernel, services, hooks, session, .. } = &self.context;
        outcome.session = session.name.map(str::to_owned);
        notify(kernel.listener, &Event::Ended(&outcome));
        // Observers have seen a replayed outcome before.
        if outcome.replayed || services.observers.is_empty() {
            return outcome;
        }
        if outcome.outcome != OutcomeKind::Suspended {
            let shown = session.formatter.result(&outcome).map(|result| result.output.text());
            let span = ToolCallSpan {
                request_id: &hooks.run.request_id,
                iteration: hooks.run.iteration,
                outcome: &outcome,
                shown: shown.as_deref(),
            };
            services.notify(|observer| observer.on_tool_end(&span));
        }
        services.notify(|observer| observer.on_outcome(&outcome));
        outcome
    }

    fn report_start(&self, decision: &Decision<'_>) {
        let CallContext { kernel, services, hooks, .. } = &self.context;
        notify(kernel.listener, &Event::ExecutionStarted(decision.call()));
        if services.observers.is_empty() {
            return;
        }
        let (call, args) = (decision.call(), kernel.redacted_input(decision, self.state));
        let start = ToolCallStart {
            request_id: &hooks.run.request_id,
            iteration: hooks.run.iteration,
            call_id: &call.id,
            tool: &call.tool,
            server: call.server.as_deref(),
            args: &args,
        };
        services.notify(|observer| observer.on_tool_start(&start));
    }

    /// The kernel, for decisions of which no listener is notified: they are made again.
    pub(super) fn silent_kernel(&self) -> Kernel<'r> {
        Kernel { listener: None, ..self.context.kernel }
    }
}

/// Whether a call with this outcome may have reached its tool.
fn may_have_run(kind: OutcomeKind) -> bool {
    use OutcomeKind::{Aborted, Executed, Failed, Indeterminate, Recovered};
    matches!(kind, Executed | Failed | Recovered | Indeterminate | Aborted)
}

/// The reason of a call that may have run, and nobody knows how it ended.
pub(crate) fn unfinished(message: impl Into<String>) -> Reason {
    Reason { policy: None, code: reason_code::UNFINISHED.to_owned(), message: message.into() }
}

/// The reason of a call that does not run because its ledger does not answer.
pub(super) fn unavailable_ledger(error: &LedgerError) -> Reason {
    let message = format!("it is unknown whether this call ran already: {error}");
    Reason { policy: None, code: error.code().to_owned(), message }
}

/// The occurrence of the call of a request.
pub(crate) fn occurrence_of(request: &ApprovalRequest) -> String {
    let id = request.approval_id.as_str();
    id.strip_prefix("approval_").unwrap_or(id).to_owned()
}
