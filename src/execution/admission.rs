//! Before a call runs it takes of every limit that concerns it: of all, or of none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::services::Services;
use crate::call::{Amount, Reason, SessionState, ToolCall, Verdict};
use crate::host::{Account, Allowance, StateStore, StoreError, Take, before, guarded};
use crate::kernel::{
    Decision, Effect, Event, Kernel, Layers, LimitAsked, Pending, effect_of, is_used_up, tell,
};
use crate::middleware::{Counted, Limit, Measure, OnExceed, Rule};
use crate::policy::{Mode, Policy};

/// What a call holds of limits while it runs. Slots are given back when it is dropped, however the call ends.
#[derive(Default)]
pub(super) struct Taken {
    /// What was taken: a call that is gated again does not take it twice.
    pending: Vec<Pending>,
    slots: Vec<Slot>,
}

impl Taken {
    /// What was taken.
    pub(super) fn held(&self) -> &[Pending] {
        &self.pending
    }

    /// The tool ran: what was taken for that is used up, and a further run takes anew. Slots stand for the call as a whole.
    pub(super) fn use_up(&mut self) {
        let Self { pending, slots } = self;
        pending.retain(|taken| slots.iter().any(|slot| slot.key == taken.measure.key));
    }
}

struct Slot {
    store: Arc<dyn StateStore>,
    key: String,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A store that panics must not take the call's outcome with it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.store.give_back(&self.key)));
    }
}

/// Takes of the limits of a decision, or makes the decision stricter. Whatever goes wrong in here denies.
pub(super) async fn admit(
    kernel: &Kernel<'_>,
    services: &Services,
    decision: &mut Decision<'_>,
    taken: &mut Taken,
    state: &mut SessionState,
) {
    let limits = decision.take_limits();
    if limits.is_empty() {
        return;
    }
    let layers = decision.layers().clone();
    let account = Account::from_context(&decision.call().context);
    let fresh = limits.into_iter().filter(|pending| !taken.pending.contains(pending));
    let claims: Vec<Claim<'_>> = fresh.filter_map(|pending| Claim::of(pending, &layers, account)).collect();
    let heard = kernel.listener.map(|_| Arc::new(decision.call().clone()));
    let mut admission = Admission { heard, kernel, services, taken, state };
    if guarded(admission.run(&claims, decision)).await.is_err() {
        let enforced = claims.iter().filter(|claim| claim.policy.mode != Mode::Shadow);
        let strictest = enforced.map(|claim| effect_of(claim.limit.on_exceed)).max();
        decision.refuse(strictest.unwrap_or(Effect::Deny), Kernel::failure(), None);
    }
}

/// One limit with what the call takes of it.
#[derive(Clone)]
struct Claim<'l> {
    pending: Pending,
    policy: &'l Policy,
    limit: &'l Limit,
    account: Account,
}

impl<'l> Claim<'l> {
    fn of(pending: Pending, layers: &'l Layers, account: Account) -> Option<Self> {
        let policy = pending.policy.find(layers)?;
        Some(Self { limit: policy.kind.as_limit()?, policy, pending, account })
    }

    /// What is taken of the store, where the limit counts there.
    fn take(&self) -> Option<Take> {
        let (Rule::Store(allowance) | Rule::Conversation(allowance)) = self.limit.rule else { return None };
        let Measure { key, cost } = &self.pending.measure;
        Some(Take { key: key.clone(), account: self.account, allowance, cost: *cost })
    }

    fn is_slot(&self) -> bool {
        matches!(self.limit.rule, Rule::Store(Allowance::Slots { .. }))
    }
}

/// Why nothing was taken.
enum Problem {
    /// These limits have too little left, with when each has enough again.
    UsedUp(Vec<(usize, Option<Duration>)>),
    /// The store does not answer.
    Store(StoreError),
}

struct Admission<'a> {
    /// The call, where somebody listens.
    heard: Option<Arc<ToolCall>>,
    kernel: &'a Kernel<'a>,
    services: &'a Services,
    taken: &'a mut Taken,
    state: &'a mut SessionState,
}

impl Admission<'_> {
    async fn run(&mut self, claims: &[Claim<'_>], decision: &mut Decision<'_>) {
        let of = |counted: Counted, shadow: bool| {
            let fits = move |claim: &&Claim<'_>| {
                claim.limit.counted == counted && (claim.policy.mode == Mode::Shadow) == shadow
            };
            claims.iter().filter(fits).cloned().collect::<Vec<_>>()
        };
        // An attempt counts wherever it can, also where another limit refuses it.
        for claim in of(Counted::Attempts, false) {
            self.claim(std::slice::from_ref(&claim), decision).await;
        }
        if decision.is_permitted() {
            self.claim(&of(Counted::Executions, false), decision).await;
        }
        let mut watching = of(Counted::Attempts, true);
        if decision.is_permitted() {
            watching.extend(of(Counted::Executions, true));
        }
        for claim in watching {
            if let Err(Problem::UsedUp(_)) = self.take(std::slice::from_ref(&claim)).await {
                decision.amend(claim.pending.policy, verdict(effect_of(claim.limit.on_exceed)));
            }
        }
    }

    /// Takes of all these limits, waiting where they say so; what is refused makes the decision stricter.
    async fn claim(&mut self, claims: &[Claim<'_>], decision: &mut Decision<'_>) {
        let began = self.kernel.clock.now();
        loop {
            // From before the taking on: a slot that comes free in between must not be missed.
            let freed = self.services.store.slot_freed();
            let problem = match self.take(claims).await {
                Ok(()) => return,
                Err(problem) => problem,
            };
            let used_up = match problem {
                Problem::Store(error) => return self.without_store(claims, &error, decision),
                Problem::UsedUp(used_up) => used_up,
            };
            // What is refused already waits for nothing.
            let waits = decision.effect() <= Effect::Suspend;
            let pause = waits.then(|| pause(claims, &used_up, began, self.kernel.clock.now())).flatten();
            let Some(pause) = pause else {
                return self.refuse(claims, &used_up, decision);
            };
            match pause {
                Pause::For(duration) => self.kernel.clock.sleep(duration).await,
                Pause::ForSlot(at_most) => {
                    if before(freed, || self.kernel.clock.sleep(at_most)).await.is_none() {
                        return self.refuse(claims, &used_up, decision);
                    }
                }
            }
        }
    }

    /// Takes of all these limits, or of none, and tells who listens.
    async fn take(&mut self, claims: &[Claim<'_>]) -> Result<(), Problem> {
        let taken = self.take_unheard(claims).await;
        let Some(call) = self.heard.clone() else { return taken };
        let refused = |place: usize| match &taken {
            Err(Problem::UsedUp(used_up)) => used_up.iter().find(|(used_up, _)| *used_up == place).copied(),
            Err(Problem::Store(_)) => Some((place, None)),
            Ok(()) => None,
        };
        for (place, claim) in claims.iter().enumerate() {
            let left = self.left(claim).await;
            let Pending { policy: reference, measure } = &claim.pending;
            let asked = LimitAsked {
                call: &call,
                policy: claim.policy,
                layer: reference.layer(),
                key: &measure.key,
                cost: measure.cost,
                enough: refused(place).is_none(),
                left,
                retry_after: refused(place).and_then(|(_, retry_after)| retry_after),
            };
            tell(self.kernel.listener, &Event::Limit(asked));
        }
        taken
    }

    /// How much is left of a limit, as far as that can be said.
    async fn left(&self, claim: &Claim<'_>) -> Option<Amount> {
        if let Rule::Run(allowed) = claim.limit.rule {
            return Some(allowed.minus(self.state.taken(&claim.pending.measure.key)));
        }
        let take = claim.take()?;
        let (clock, store) = (self.kernel.clock, &self.services.store);
        self.services.ask(clock, || store.left(clock.now(), &take)).await.ok().flatten()
    }

    async fn take_unheard(&mut self, claims: &[Claim<'_>]) -> Result<(), Problem> {
        // Asked once more: what was decided with a whole round has not seen what came before it in the round.
        let is_used_up = |claim: &Claim<'_>| is_used_up(claim.limit, &claim.pending.measure, self.state);
        let by_run: Vec<_> = (0..)
            .zip(claims)
            .filter(|(_, claim)| is_used_up(claim))
            .map(|(place, _)| (place, None))
            .collect();
        if !by_run.is_empty() {
            return Err(Problem::UsedUp(by_run));
        }
        let (mut takes, mut places) = (Vec::new(), Vec::new());
        for (place, claim) in claims.iter().enumerate() {
            if let Some(take) = claim.take() {
                takes.push(take);
                places.push(place);
            }
        }
        if !takes.is_empty() {
            let clock = self.kernel.clock;
            let store = &self.services.store;
            let answer = self.services.ask(clock, || store.take(clock.now(), &takes)).await;
            let refusals = answer.map_err(Problem::Store)?;
            if !refusals.is_empty() {
                let place = |index: usize| places.get(index).copied().unwrap_or_default();
                let used_up = refusals.iter().map(|refusal| (place(refusal.index), refusal.retry_after));
                return Err(Problem::UsedUp(used_up.collect()));
            }
        }
        self.hold(claims);
        Ok(())
    }

    fn hold(&mut self, claims: &[Claim<'_>]) {
        for claim in claims {
            let measure = &claim.pending.measure;
            if let Rule::Run(_) = claim.limit.rule {
                self.state.take(&measure.key, measure.cost);
            }
            if let (true, Some(take)) = (claim.is_slot(), claim.take()) {
                self.taken.slots.push(Slot { store: Arc::clone(&self.services.store), key: take.key });
            }
            self.taken.pending.push(claim.pending.clone());
        }
    }

    /// The store does not answer: refused, unless every limit that counts there says otherwise.
    fn without_store(&mut self, claims: &[Claim<'_>], error: &StoreError, decision: &mut Decision<'_>) {
        let is_outage = matches!(error, StoreError::Unavailable(_));
        let passes = |claim: &Claim<'_>| is_outage && claim.limit.passes_without_store;
        let strict = |claim: &&Claim<'_>| claim.take().is_some() && !passes(claim);
        // There may be too little left, and that is what each says of it.
        let effect = |claim: &&Claim<'_>| effect_of(claim.limit.on_exceed);
        let strictest = claims.iter().filter(strict).map(|claim| effect(&claim)).max();
        let Some(claim) = claims.iter().filter(strict).find(|claim| Some(effect(claim)) == strictest) else {
            for claim in claims {
                // What counts in the session needs no store.
                if let Rule::Run(_) = claim.limit.rule {
                    self.hold(std::slice::from_ref(claim));
                }
            }
            return;
        };
        let reason = Reason {
            policy: Some(claim.policy.id.clone()),
            code: error.code().to_owned(),
            message: format!("`{}` can't be counted: {error}", claim.policy.id),
        };
        decision.amend(claim.pending.policy, verdict(effect(&claim)));
        decision.refuse(effect(&claim), reason, None);
    }

    fn refuse(
        &self,
        claims: &[Claim<'_>],
        used_up: &[(usize, Option<Duration>)],
        decision: &mut Decision<'_>,
    ) {
        let refusing =
            || used_up.iter().filter_map(|(place, retry_after)| Some((claims.get(*place)?, *retry_after)));
        for (claim, _) in refusing() {
            decision.amend(claim.pending.policy, verdict(effect_of(claim.limit.on_exceed)));
        }
        // The last of the strictest: `max_by_key` would give that, the first is wanted.
        let strictest = refusing().map(|(claim, _)| effect_of(claim.limit.on_exceed)).max();
        let first = refusing().find(|(claim, _)| Some(effect_of(claim.limit.on_exceed)) == strictest);
        let Some((claim, _)) = first else { return };
        // It may come again when the last of them has enough.
        let retry_after = refusing().map(|(_, retry_after)| retry_after).collect::<Option<Vec<_>>>();
        let retry_after = retry_after.and_then(|all| all.into_iter().max());
        let reason = self.kernel.used_up(decision, self.state, claim.pending.policy, retry_after);
        decision.refuse(effect_of(claim.limit.on_exceed), reason, retry_after);
    }
}

fn verdict(effect: Effect) -> Verdict {
    if effect == Effect::Halt { Verdict::Halt } else { Verdict::Deny }
}

enum Pause {
    For(Duration),
    ForSlot(Duration),
}

/// How to wait until all that refused may have enough; nothing where one of them does not wait, or not so long.
fn pause(
    claims: &[Claim<'_>],
    used_up: &[(usize, Option<Duration>)],
    began: Timestamp,
    now: Timestamp,
) -> Option<Pause> {
    // A clock that was set back says nothing about how long this has waited.
    let waited = Duration::try_from(now.duration_since(began)).ok()?;
    let mut left = Duration::MAX;
    let mut longest = None;
    for (place, retry_after) in used_up {
        let claim = claims.get(*place)?;
        let OnExceed::Wait(max_wait) = claim.limit.on_exceed else { return None };
        left = left.min(max_wait.saturating_sub(waited));
        if retry_after.is_none() && !claim.is_slot() {
            return None;
        }
        longest = longest.max(*retry_after);
    }
    match longest {
        _ if left.is_zero() => None,
        Some(longest) if longest > left => None,
        Some(longest) => Some(Pause::For(longest)),
        None => Some(Pause::ForSlot(left)),
    }
}
