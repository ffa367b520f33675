//! Limits with `on_exceed: approval`: a call that finds too little left requires an approval, and an approved call acquires its amount
//! whatever is left.

use super::{Admission, LimitClaim};
use crate::call::Amount;
use crate::host::{LimitCorrection, StoreError};
use crate::kernel::{
    Decision, Effect, Event, LimitChecked, evaluate_effect, is_used_up, limit_verdict, notify,
};

impl Admission<'_> {
    /// Suspends a call for the approval of a limit that has too little left, or adds it to the approvals that the call requires.
    pub(super) fn require_approval(&self, claim: &LimitClaim<'_>, decision: &mut Decision<'_>) {
        let question = self.kernel.limit_question(decision, self.state, claim.pending.policy);
        decision.require_limit_approval(claim.pending.policy, question);
    }

    /// Adds to a suspended call the approvals of the limits that have too little left now. Acquires nothing. What has enough now and not
    /// when the call resumes requires an approval then.
    pub(super) async fn join_request(&mut self, claims: &[LimitClaim<'_>], decision: &mut Decision<'_>) {
        for claim in claims {
            let LimitClaim { pending, limit, .. } = claim;
            let effect = evaluate_effect(&limit.on_exceed);
            let is_settled = pending.is_approved || decision.approvals().contains(&pending.policy);
            if effect != Effect::Suspend || is_settled {
                continue;
            }
            match self.has_too_little(claim).await {
                Ok(false) => {}
                Ok(true) => {
                    self.observe_refusal(claim, None);
                    decision.amend(pending.policy, limit_verdict(effect));
                    self.require_approval(claim, decision);
                }
                Err(error) => self.without_store(std::slice::from_ref(claim), &error, decision),
            }
        }
    }

    /// Whether less is left than a call needs, as far as that is known. The listener is notified if that is so.
    async fn has_too_little(&self, claim: &LimitClaim<'_>) -> Result<bool, StoreError> {
        let cost = claim.pending.measure.cost;
        if is_used_up(claim.limit, &claim.pending.measure, self.state) {
            self.notify_too_little(claim, self.left(claim).await);
            return Ok(true);
        }
        let Some(take) = claim.take() else { return Ok(false) };
        if claim.limit.cost_after.is_some() {
            self.services.store_corrections().await?;
        }
        let store = &self.services.store;
        let left = self.services.ask(|| store.available(self.services.clock.now(), &take)).await?;
        let too_little = left.is_some_and(|left| left < cost);
        if too_little {
            self.notify_too_little(claim, left);
        }
        Ok(too_little)
    }

    fn notify_too_little(&self, claim: &LimitClaim<'_>, left: Option<Amount>) {
        if let Some(call) = &self.reported {
            let checked = LimitChecked { is_enough: false, left, ..claim.as_checked(call) };
            notify(self.kernel.listener, &Event::LimitChecked(checked));
        }
    }

    /// Acquires approved amounts whatever is left, if the call may run.
    pub(super) async fn acquire_approved(&mut self, claims: &[LimitClaim<'_>], decision: &mut Decision<'_>) {
        if claims.is_empty() || !decision.is_permitted() {
            return;
        }
        let mut enough = Vec::new();
        if self.reported.is_some() {
            for claim in claims {
                let left = self.left(claim).await;
                enough.push(left.is_none_or(|left| left >= claim.pending.measure.cost));
            }
        }
        if let Err(error) = self.overdraw(claims).await {
            return self.without_store(claims, &error, decision);
        }
        let Some(call) = self.reported.clone() else { return };
        for (claim, is_enough) in claims.iter().zip(enough) {
            let left = self.left(claim).await;
            let checked = LimitChecked { is_enough, left, ..claim.as_checked(&call) };
            notify(self.kernel.listener, &Event::LimitChecked(checked));
        }
    }

    async fn overdraw(&mut self, claims: &[LimitClaim<'_>]) -> Result<(), StoreError> {
        let now = self.services.clock.now();
        if claims.iter().any(|claim| claim.limit.cost_after.is_some()) {
            self.services.store_corrections().await?;
        }
        let takes = claims.iter().filter_map(LimitClaim::take).filter(|take| take.cost > Amount::ZERO);
        let overdrafts: Vec<_> = takes.map(|take| LimitCorrection::overdraft(take, now)).collect();
        if !overdrafts.is_empty() {
            let store = &self.services.store;
            self.services.ask(|| store.correct(now, &overdrafts)).await?;
        }
        self.hold(claims, now);
        Ok(())
    }
}
