//! The life of one call, on one page: look up → hooks → decide → budget → limits → execute → settle → report.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Instant;

use super::admission::{AcquiredLimits, GrantedAdmission};
use super::approval_verification::{ApprovalMessages, EntrySnapshot, PendingCall};
use super::wrappers::WrapperChain;
use super::{BudgetReservation, CallAttempt, CallContext, ClaimError, HookedCall, RoundProgress};
use crate::approval::{LedgerEntry, LedgerError, LedgerKey};
use crate::call::{Amount, Outcome, OutcomeKind, Reason, SessionState, ToolCall, reason_code};
use crate::host::{StoreError, ToolExecutor, boxed, catch_panic};
use crate::kernel::{CallResponse, Decision, Effect, HeldResources, Kernel};
use crate::middleware::{BudgetAmounts, OnBudgetExceeded};
use crate::work_limit::WorkMeter;

mod call_events;
mod other_runner;
mod refusals;

pub(super) use self::other_runner::OtherRunner;
pub(super) use self::refusals::unavailable_ledger;
pub(crate) use self::refusals::unfinished;

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
    /// It was attempted before, and this is its entry.
    Known(LedgerKey, Box<LedgerEntry>),
    /// The ledger does not answer.
    Unavailable(LedgerKey, LedgerError),
}

impl LedgerLookup {
    /// The call's key in the ledger.
    pub(crate) fn key(&self) -> &LedgerKey {
        let (Self::New(key) | Self::Known(key, _) | Self::Unavailable(key, _)) = self;
        key
    }
}

impl<'r, E: ToolExecutor> CallRunner<'r, E> {
    /// Looks a call up in the ledger, and has hooks see it if it is new.
    pub(crate) async fn prepare(
        &mut self,
        call: Box<ToolCall>,
        occurrence: String,
        stored: &Result<(), StoreError>,
    ) -> PreparedCall {
        let lookup = match self.context.session.is_recorded {
            true => boxed(self.look_up(&call, occurrence, stored)).await,
            false => LedgerLookup::New(self.context.call_key(occurrence)),
        };
        let is_new = matches!(lookup, LedgerLookup::New(_));
        let mut hooked = match is_new && !self.context.hooks.all.is_empty() {
            true => boxed(self.run_before_hooks(call)).await,
            false => HookedCall::untouched(call),
        };
        if is_new && self.context.session.offered.is_some() {
            self.refuse_unoffered(&mut hooked);
        }
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
        if let Err(error) = stored {
            return LedgerLookup::Unavailable(key, error.clone().into());
        }
        let ledger = self.context.ledger(call);
        loop {
            match ledger.find(&key).await {
                Ok(None) => return LedgerLookup::New(key),
                Ok(Some(entry)) if entry.is_for_call(call) => {
                    return LedgerLookup::Known(key, Box::new(entry));
                }
                Ok(Some(_)) => key.occurrence_id = self.state.unique_call_id(&call.id),
                Err(error) => return LedgerLookup::Unavailable(key, error),
            }
        }
    }

    /// Runs the `before` hooks. If one of them aborted the run, nothing starts any more.
    pub(crate) async fn run_before_hooks(&mut self, call: Box<ToolCall>) -> HookedCall {
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
    ///
    /// On the heap: a decision is large, and every future that it is passed to would have room for it several times.
    pub(crate) fn decide<'c>(&self, prepared: &'c PreparedCall) -> Option<Box<Decision<'c>>> {
        let is_new = matches!(prepared.lookup, LedgerLookup::New(_));
        let held = HeldResources::default();
        is_new.then(|| prepared.hooked.decide(&self.context.kernel, self.state, held))
    }

    /// Brings a prepared call to its outcome, by its decision if it is new, and by its ledger entry otherwise.
    pub(crate) async fn run_prepared<'c>(
        &mut self,
        prepared: &'c PreparedCall,
        decision: Option<Box<Decision<'c>>>,
        started: Instant,
    ) -> Box<Outcome> {
        let hooked = &prepared.hooked;
        self.start_recording();
        match (&prepared.lookup, decision) {
            (LedgerLookup::New(key), Some(decision)) => {
                let tool = self.context.kernel.tools.get(&hooked.call);
                let at_most_once =
                    self.context.session.is_recorded || tool.is_some_and(|tool| tool.descriptor.once);
                let attempt =
                    CallAttempt { at_most_once, ..CallAttempt::new(hooked, Cow::Borrowed(key), started) };
                let before = self.context.session.keeps_recorded_course.then(|| self.state.clone());
                let outcome = match self.run_decided(&attempt, decision).await {
                    Ok(outcome) => self.finish(&attempt, outcome).await,
                    Err(error) => Box::pin(self.run_unclaimed(&attempt, error)).await,
                };
                if let Some(before) = before.filter(|_| !may_have_run(outcome.outcome)) {
                    Box::pin(self.keep_recorded_course(&attempt, before)).await;
                }
                outcome
            }
            (LedgerLookup::Unavailable(key, error), _) => {
                Box::pin(self.deny_unavailable(&hooked.call, key, error, started)).await
            }
            (LedgerLookup::Known(key, _) | LedgerLookup::New(key), _) => {
                let entry = match &prepared.lookup {
                    LedgerLookup::Known(_, entry) => EntrySnapshot::Read(Some(entry.clone())),
                    _ => EntrySnapshot::Unread,
                };
                let pending = PendingCall { key, messages: ApprovalMessages::default(), entry };
                Box::pin(self.resume_call(&hooked.call, pending, started)).await.outcome
            }
        }
    }

    /// Runs a decided call as far as budgets, limits and the ledger allow. Errors: it did not start, for it could not be claimed.
    pub(super) async fn run_decided<'c>(
        &mut self,
        attempt: &CallAttempt<'c>,
        mut decision: Box<Decision<'c>>,
    ) -> Result<Box<Outcome>, ClaimError> {
        // A call that is refused anyway counts nothing, and one that runs again was counted when it ran first.
        let is_tool_call = attempt.hooked.call.method().is_none();
        let is_counted = decision.effect() < Effect::Invalid && !attempt.holds_claim && is_tool_call;
        let reserved = match is_counted && self.context.kernel.has_run_policies() {
            true => boxed(self.reserve_budget(&mut decision)).await,
            false => None,
        };
        let meter = WorkMeter::after_decision(decision.work());
        let ended = {
            let execution = pin!(self.execute(attempt, decision));
            meter.scope(execution).await
        };
        // Only a call that may have reached its tool is counted.
        let may_have_run = ended.as_ref().is_ok_and(|outcome| may_have_run(outcome.outcome));
        if let Some(reserved) = reserved.filter(|_| !may_have_run) {
            boxed(self.context.budgets().release(self.state, reserved)).await;
        }
        ended
    }

    /// Counts the call in its budgets, or makes the decision stricter.
    async fn reserve_budget(&mut self, decision: &mut Decision<'_>) -> Option<BudgetReservation> {
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
        mut decision: Box<Decision<'c>>,
    ) -> Result<Box<Outcome>, ClaimError> {
        let mut granted = None;
        let mut limits = AcquiredLimits::default();
        let was_suspended = decision.effect() == Effect::Suspend;
        if was_suspended || decision.needs_limits() {
            let kernel = &self.context.kernel;
            let admission = GrantedAdmission {
                context: &self.context,
                attempt,
                limits: &mut limits,
                state: &mut *self.state,
            };
            let decide =
                |state: &SessionState, held: HeldResources<'_>| attempt.hooked.decide(kernel, state, held);
            (decision, granted) = boxed(admission.admit(decision, decide)).await;
            // When it was decided, it was not known to require the approval of a limit.
            if !was_suspended && !self.context.session.keeps_recorded_course {
                self.defer_if_suspended(&mut decision);
            }
        }
        if !self.context.services.observers.is_empty() {
            self.report_decision(&decision, attempt.started);
            boxed(self.refuse_unrecorded(&mut decision)).await;
        }
        match decision.effect() {
            Effect::Run => {
                let mut outcome = self.execute_tool(attempt, decision, &mut limits).await?;
                if outcome.outcome != OutcomeKind::Suspended {
                    outcome.approved = attempt.approved.clone().or(granted);
                }
                Ok(outcome)
            }
            Effect::Answer => match CallResponse::from_decision(&decision) {
                Some(response) => {
                    let execution = Ok(response).into();
                    Ok(self.context.kernel.settle(decision, execution, self.state, attempt.started))
                }
                None => Ok(boxed(self.refuse(attempt, decision)).await),
            },
            _ => Ok(boxed(self.refuse(attempt, decision)).await),
        }
    }

    /// Denies a call that an observer on which calls depend cannot record.
    async fn refuse_unrecorded(&self, decision: &mut Decision<'_>) {
        if decision.is_permitted()
            && let Err(error) = self.context.services.observers.flush().await
        {
            let message = format!("the call cannot be recorded: {error}");
            let code = reason_code::LOG_UNAVAILABLE.to_owned();
            decision.refuse(Effect::Deny, Reason { policy: None, code, message }, None);
        }
    }

    /// Claims the call if it may run only once, runs its tool inside of all that wraps it, and settles what that gave.
    async fn execute_tool<'c>(
        &mut self,
        attempt: &CallAttempt<'c>,
        mut decision: Box<Decision<'c>>,
        limits: &mut AcquiredLimits,
    ) -> Result<Box<Outcome>, ClaimError> {
        if attempt.needs_claim() {
            boxed(self.context.claim(attempt, self.state)).await?;
        }
        let CallContext { kernel, services, .. } = &self.context;
        if kernel.listener.is_some() || !services.observers.is_empty() {
            self.report_start(&decision);
            boxed(self.refuse_unrecorded(&mut decision)).await;
            if !decision.is_permitted() {
                return Ok(boxed(self.refuse(attempt, decision)).await);
            }
        }
        let changed = decision.changed_call().map(Box::new);
        let (call, wrappers, trace) = decision.execution_parts();
        let mut chain = WrapperChain::new(&self.context, attempt, limits, self.state, trace);
        match chain.run(changed.as_deref().unwrap_or(call), wrappers).await {
            Ok(execution) => Ok(self.context.kernel.settle(decision, execution, self.state, attempt.started)),
            Err(stopped) => Ok(boxed(self.refuse_started(attempt, stopped, decision.input())).await),
        }
    }

    /// Ends an attempt: `after` hooks see the outcome, and the ledger records it.
    pub(super) async fn finish(
        &mut self,
        attempt: &CallAttempt<'_>,
        mut outcome: Box<Outcome>,
    ) -> Box<Outcome> {
        let is_suspended = outcome.outcome == OutcomeKind::Suspended;
        if !is_suspended && !self.context.hooks.all.is_empty() {
            let (call, kernel, state) = (&attempt.hooked.call, self.context.kernel, &*self.state);
            let redact = |outcome: &mut Outcome| kernel.redact_outcome(call, outcome, state);
            outcome = boxed(self.context.hooks.after(call, outcome, redact)).await;
        }
        let is_in_ledger =
            self.context.session.is_recorded || attempt.needs_claim() || attempt.entry.is_some();
        if is_in_ledger || is_suspended {
            // Whatever fails here, the outcome stays.
            let _ = catch_panic(boxed(self.record_end(attempt, &outcome))).await;
        }
        outcome
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
