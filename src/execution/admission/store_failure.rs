//! Limits of a call whose store does not answer: the failure of the store → a stricter decision.

use super::{Admission, LimitClaim};
use crate::call::Reason;
use crate::host::StoreError;
use crate::kernel::{Decision, limit_verdict, undecided_effect};
use crate::middleware::LimitRule;

impl Admission<'_> {
    /// The limits that nobody asked because the store failed for others before: one of them may have halted the run.
    pub(super) fn refuse_unasked(
        &self,
        claims: &[LimitClaim<'_>],
        error: &StoreError,
        decision: &mut Decision<'_>,
    ) {
        let refused = decision.effect();
        let stricter = claims.iter().filter(|claim| undecided_effect(&claim.limit.on_exceed) > refused);
        let stricter: Vec<LimitClaim<'_>> = stricter.cloned().collect();
        let used_up = self.used_up_in_session(&stricter);
        if used_up.is_empty() {
            self.refuse_uncounted(&stricter, error, decision);
        } else {
            self.refuse(&stricter, &used_up, decision);
        }
    }

    /// The store does not answer: the call is refused unless every limit that counts there lets it pass.
    pub(super) fn without_store(
        &mut self,
        claims: &[LimitClaim<'_>],
        error: &StoreError,
        decision: &mut Decision<'_>,
    ) {
        self.failure = Some(error.clone());
        if !self.refuse_uncounted(claims, error, decision) {
            for claim in claims {
                // Limits of the session need no store.
                if let LimitRule::Run(_) = claim.limit.rule {
                    self.hold(std::slice::from_ref(claim), self.services.clock.now());
                }
            }
        }
    }

    /// Refuses a call because of the limits that can't be counted. Returns whether there is one that does not let it pass.
    fn refuse_uncounted(
        &self,
        claims: &[LimitClaim<'_>],
        error: &StoreError,
        decision: &mut Decision<'_>,
    ) -> bool {
        let is_outage = matches!(error, StoreError::Unavailable(_));
        let passes = |claim: &LimitClaim<'_>| is_outage && claim.limit.allows_on_store_error;
        let strict = |claim: &&LimitClaim<'_>| claim.take().is_some() && !passes(claim);
        // There may be too little left: each refuses as if that were so, and none asks about it.
        let effect = |claim: &&LimitClaim<'_>| undecided_effect(&claim.limit.on_exceed);
        let strictest = claims.iter().filter(strict).map(|claim| effect(&claim)).max();
        let Some(claim) = claims.iter().filter(strict).find(|claim| Some(effect(claim)) == strictest) else {
            return false;
        };
        let reason = Reason {
            policy: Some(claim.policy.id.clone()),
            code: error.code().to_owned(),
            message: format!("`{}` can't be counted: {error}", claim.policy.id),
        };
        decision.amend(claim.pending.policy, limit_verdict(effect(&claim)));
        decision.refuse(effect(&claim), reason, None);
        true
    }
}
