//! Acquires the limits of a call before it runs: all of them, or none.

mod approved_limits;
mod cost_correction;
mod granted_admission;
mod limit_claim;
mod limit_wait;
mod recorded_call;
mod store_failure;

pub(super) use granted_admission::GrantedAdmission;
pub(super) use recorded_call::count_recorded_call;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::{CallContext, CallOrigin, EngineServices};
use crate::call::{Amount, Reason, SessionState, ToolCall, reason_code};
use crate::host::{
    Account, EngineEventKind, LimitAcquisition, LimitRefused, StateStore, StoreError, catch_panic,
    with_deadline,
};
use crate::kernel::{
    Decision, Effect, Event, Kernel, LimitChecked, LimitRequest, PolicyRef, evaluate_effect, is_used_up,
    limit_verdict, notify, undecided_effect,
};
use crate::lifecycle::RunContext;
use crate::middleware::{CountedCalls, LimitCharge, LimitRule};
use crate::policy::Mode;
use limit_claim::LimitClaim;
use limit_wait::{Pause, pause};

/// The limits that a call holds while it runs. Slots are released when this is dropped, however the call ends.
#[derive(Default)]
pub(super) struct AcquiredLimits {
    /// A call that is decided again does not acquire these twice.
    pending: Vec<LimitRequest>,
    slots: Vec<Slot>,
    /// Costs that the result of the call corrects.
    estimates: Vec<Estimate>,
}

/// An acquired cost that the result of the call corrects.
struct Estimate {
    policy: PolicyRef,
    /// The acquisition from the store. `None` if the limit counts in the session.
    acquisition: Option<LimitAcquisition>,
    acquired_at: Timestamp,
    charge: LimitCharge,
}

impl AcquiredLimits {
    pub(super) fn held(&self) -> &[LimitRequest] {
        &self.pending
    }

    /// The tool ran: a further run of it acquires limits again. Slots are for the call as a whole.
    pub(super) fn use_up(&mut self) {
        let Self { pending, slots, .. } = self;
        pending.retain(|acquired| slots.iter().any(|slot| slot.key == acquired.measure.key));
    }
}

struct Slot {
    store: Arc<dyn StateStore>,
    key: String,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A store that panics must not take the call's outcome with it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.store.release(&self.key)));
    }
}

/// Acquires the limits of a decision, or makes the decision stricter. Whatever goes wrong in here denies.
async fn admit<E>(
    context: &CallContext<'_, E>,
    decision: &mut Decision<'_>,
    acquired: &mut AcquiredLimits,
    state: &mut SessionState,
) {
    let limits = decision.take_limits();
    let layers = decision.layers().clone();
    let account = Account::from_context(&decision.call().context);
    let is_held = |LimitRequest { policy, measure, .. }: &LimitRequest| {
        acquired.pending.iter().any(|held| held.is_for(*policy, measure))
    };
    let fresh = limits.into_iter().filter(|pending| !is_held(pending));
    let claims: Vec<LimitClaim<'_>> =
        fresh.filter_map(|pending| LimitClaim::new(pending, &layers, account)).collect();
    let CallContext { kernel, services, hooks, .. } = context;
    let reported = kernel.listener.map(|_| Arc::new(decision.call().clone()));
    let observed = (!services.observers.is_empty()).then(|| decision.call().clone());
    let origin = observed.as_ref().and_then(|call| context.origin(call, state));
    let mut admission = Admission {
        reported,
        origin,
        kernel,
        services,
        taken: acquired,
        state,
        run: hooks.run,
        failure: None,
    };
    if catch_panic(admission.run(&claims, decision)).await.is_err() {
        let enforced = claims.iter().filter(|claim| claim.policy.mode != Mode::Shadow);
        let strictest = enforced.map(|claim| undecided_effect(&claim.limit.on_exceed)).max();
        decision.refuse(strictest.unwrap_or(Effect::Deny), Kernel::failure_reason(), None);
    }
}

/// Why nothing was acquired.
enum Problem {
    /// These limits have too little left; beside each, after how long it has enough again.
    UsedUp(Vec<(usize, Option<Duration>)>),
    /// The store does not answer.
    Store(StoreError),
}

struct Admission<'a> {
    /// The call, if a listener is notified.
    reported: Option<Arc<ToolCall>>,
    /// The call for observers, if there are any.
    origin: Option<CallOrigin<'a>>,
    kernel: &'a Kernel<'a>,
    services: &'a EngineServices,
    taken: &'a mut AcquiredLimits,
    state: &'a mut SessionState,
    run: &'a RunContext,
    /// The last failure of the store.
    failure: Option<StoreError>,
}

impl Admission<'_> {
    async fn run(&mut self, claims: &[LimitClaim<'_>], decision: &mut Decision<'_>) {
        let of = |counted: CountedCalls, shadow: bool| {
            let matches = move |claim: &&LimitClaim<'_>| {
                claim.limit.counted == counted && (claim.policy.mode == Mode::Shadow) == shadow
            };
            claims.iter().filter(matches).cloned().collect::<Vec<_>>()
        };
        let was_permitted = decision.is_permitted();
        // An attempt counts wherever it can, also where another limit refuses it.
        for claim in of(CountedCalls::Attempts, false) {
            self.acquire(std::slice::from_ref(&claim), decision).await;
        }
        let executions = of(CountedCalls::Executions, false);
        if decision.is_permitted() {
            let (approved, others): (Vec<_>, Vec<_>) =
                executions.iter().cloned().partition(|claim| claim.pending.is_approved);
            self.acquire(&others, decision).await;
            self.acquire_approved(&approved, decision).await;
        } else if let (true, Some(failure)) = (was_permitted, self.failure.take()) {
            self.refuse_unasked(&executions, &failure, decision);
        }
        if decision.effect() == Effect::Suspend {
            self.join_request(&executions, decision).await;
        }
        let mut watching = of(CountedCalls::Attempts, true);
        if decision.is_permitted() {
            watching.extend(of(CountedCalls::Executions, true));
        }
        for claim in watching {
            if let Err(Problem::UsedUp(_)) = self.acquire_now(std::slice::from_ref(&claim)).await {
                let effect = evaluate_effect(&claim.limit.on_exceed);
                decision.amend(claim.pending.policy, limit_verdict(effect));
                self.observe_refusal(&claim, None);
            }
        }
    }

    /// Notifies observers of a limit with too little left.
    fn observe_refusal(&self, claim: &LimitClaim<'_>, retry_after: Option<Duration>) {
        let Some(origin) = &self.origin else { return };
        let LimitClaim { policy, pending, .. } = claim;
        let refused = LimitRefused {
            policy: &policy.id,
            cost: pending.measure.cost,
            retry_after,
            shadow: policy.mode == Mode::Shadow,
        };
        self.services.observers.notify_of_call(origin, EngineEventKind::LimitRefused(refused));
    }

    /// Acquires all these limits, waiting if they say so. A refusal makes the decision stricter.
    async fn acquire(&mut self, claims: &[LimitClaim<'_>], decision: &mut Decision<'_>) {
        let began = self.kernel.clock.now();
        loop {
            // Before the acquisition: a slot that is released in between must not be missed.
            let freed = self.services.store.slot_released();
            let problem = match self.acquire_now(claims).await {
                Ok(()) => return,
                Err(problem) => problem,
            };
            let used_up = match problem {
                Problem::Store(error) => return self.without_store(claims, &error, decision),
                Problem::UsedUp(used_up) => used_up,
            };
            // A call that is refused already waits for nothing.
            let waits = decision.effect() <= Effect::Suspend;
            let pause = waits.then(|| pause(claims, &used_up, began, self.kernel.clock.now())).flatten();
            let Some(pause) = pause else {
                return self.refuse(claims, &used_up, decision);
            };
            let clock = self.kernel.clock;
            let wait = async {
                match pause {
                    Pause::For(duration) => {
                        clock.sleep(duration).await;
                        Some(())
                    }
                    Pause::ForSlot(at_most) => with_deadline(freed, || clock.sleep(at_most)).await,
                }
            };
            match with_deadline(wait, || async { drop(self.run.wait_for_abort().await) }).await {
                Some(Some(())) => {}
                Some(None) => return self.refuse(claims, &used_up, decision),
                None => return self.give_up_waiting(decision),
            }
        }
    }

    /// The run was ended while the call waited.
    fn give_up_waiting(&self, decision: &mut Decision<'_>) {
        let why = self.run.abort_reason().unwrap_or_default();
        let tool = &decision.call().tool;
        let message = format!("the run was ended while `{tool}` waited for a limit ({why})");
        let reason = Reason { policy: None, code: reason_code::ABORTED.to_owned(), message };
        decision.refuse(Effect::Halt, reason, None);
    }

    /// Acquires all these limits, or none, and notifies the listener.
    async fn acquire_now(&mut self, claims: &[LimitClaim<'_>]) -> Result<(), Problem> {
        let result = self.acquire_unreported(claims).await;
        let Some(call) = self.reported.clone() else { return result };
        let refused = |index: usize| match &result {
            Err(Problem::UsedUp(used_up)) => used_up.iter().find(|(used_up, _)| *used_up == index).copied(),
            Err(Problem::Store(_)) => Some((index, None)),
            Ok(()) => None,
        };
        for (index, claim) in claims.iter().enumerate() {
            let left = self.left(claim).await;
            let refusal = refused(index);
            let is_enough = refusal.is_none();
            let retry_after = refusal.and_then(|(_, retry_after)| retry_after);
            let checked = LimitChecked { is_enough, left, retry_after, ..claim.as_checked(&call) };
            notify(self.kernel.listener, &Event::LimitChecked(checked));
        }
        result
    }

    /// The amount that is left of a limit, if it is known.
    async fn left(&self, claim: &LimitClaim<'_>) -> Option<Amount> {
        if let LimitRule::Run(allowed) = claim.limit.rule {
            return Some(allowed.saturating_sub(self.state.acquired(&claim.pending.measure.key)));
        }
        let take = claim.take()?;
        let EngineServices { clock, store, .. } = self.services;
        self.services.ask(|| store.available(clock.now(), &take)).await.ok().flatten()
    }

    async fn acquire_unreported(&mut self, claims: &[LimitClaim<'_>]) -> Result<(), Problem> {
        // Checked again: a call that was decided with its round has not seen the calls before it in the round.
        let used_up = self.used_up_in_session(claims);
        if !used_up.is_empty() {
            return Err(Problem::UsedUp(used_up));
        }
        let (mut takes, mut indices) = (Vec::new(), Vec::new());
        for (index, claim) in claims.iter().enumerate() {
            if let Some(take) = claim.take() {
                takes.push(take);
                indices.push(index);
            }
        }
        let now = self.services.clock.now();
        if claims.iter().any(|claim| claim.limit.cost_after.is_some()) {
            self.services.store_corrections().await.map_err(Problem::Store)?;
        }
        if !takes.is_empty() {
            let EngineServices { store, .. } = self.services;
            let answer = self.services.ask(|| store.acquire(now, &takes)).await;
            let refusals = answer.map_err(Problem::Store)?;
            if !refusals.is_empty() {
                let claim_index = |index: usize| indices.get(index).copied().unwrap_or_default();
                let used_up =
                    refusals.iter().map(|refusal| (claim_index(refusal.index), refusal.retry_after));
                return Err(Problem::UsedUp(used_up.collect()));
            }
        }
        self.hold(claims, now);
        Ok(())
    }

    /// The limits that count in the session and have too little left, as in [`Problem::UsedUp`].
    fn used_up_in_session(&self, claims: &[LimitClaim<'_>]) -> Vec<(usize, Option<Duration>)> {
        let is_used_up = |claim: &LimitClaim<'_>| is_used_up(claim.limit, &claim.pending.measure, self.state);
        (0..).zip(claims).filter(|(_, claim)| is_used_up(claim)).map(|(index, _)| (index, None)).collect()
    }

    fn hold(&mut self, claims: &[LimitClaim<'_>], now: Timestamp) {
        for claim in claims {
            let measure = &claim.pending.measure;
            if let LimitRule::Run(_) = claim.limit.rule {
                self.state.acquire(&measure.key, measure.cost);
            }
            if let (true, Some(take)) = (claim.is_slot(), claim.take()) {
                self.taken.slots.push(Slot { store: Arc::clone(&self.services.store), key: take.key });
            }
            if claim.limit.cost_after.is_some() {
                self.taken.estimates.push(Estimate {
                    policy: claim.pending.policy,
                    acquisition: claim.take(),
                    acquired_at: now,
                    charge: measure.clone(),
                });
            }
            self.taken.pending.push(claim.pending.clone());
        }
    }

    fn refuse(
        &self,
        claims: &[LimitClaim<'_>],
        used_up: &[(usize, Option<Duration>)],
        decision: &mut Decision<'_>,
    ) {
        let effect = |claim: &LimitClaim<'_>| evaluate_effect(&claim.limit.on_exceed);
        let refusing =
            || used_up.iter().filter_map(|(index, retry_after)| Some((claims.get(*index)?, *retry_after)));
        for (claim, retry_after) in refusing() {
            self.observe_refusal(claim, retry_after);
            decision.amend(claim.pending.policy, limit_verdict(effect(claim)));
        }
        // The first of the strictest: `max_by_key` would return the last.
        let strictest = refusing().map(|(claim, _)| effect(claim)).max();
        if strictest == Some(Effect::Suspend) {
            refusing().for_each(|(claim, _)| self.require_approval(claim, decision));
            return;
        }
        let Some((claim, _)) = refusing().find(|(claim, _)| Some(effect(claim)) == strictest) else { return };
        // The call may be retried when the last of them has enough.
        let retry_after = refusing().map(|(_, retry_after)| retry_after).collect::<Option<Vec<_>>>();
        let retry_after = retry_after.and_then(|all| all.into_iter().max());
        let reason = self.kernel.limit_reason(decision, self.state, claim.pending.policy, retry_after);
        decision.refuse(effect(claim), reason, retry_after);
    }
}
