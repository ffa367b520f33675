//! One limit with the amount that a call needs of it.

use crate::call::ToolCall;
use crate::host::{Account, Allowance, LimitAcquisition};
use crate::kernel::{Layers, LimitChecked, LimitRequest};
use crate::middleware::{Limit, LimitCharge, LimitRule};
use crate::policy::Policy;

/// One limit with the amount that the call needs of it.
#[derive(Clone)]
pub(super) struct LimitClaim<'l> {
    pub(super) pending: LimitRequest,
    pub(super) policy: &'l Policy,
    pub(super) limit: &'l Limit,
    pub(super) account: Account,
}

impl<'l> LimitClaim<'l> {
    pub(super) fn new(pending: LimitRequest, layers: &'l Layers, account: Account) -> Option<Self> {
        let policy = pending.policy.find(layers)?;
        Some(Self { limit: policy.kind.as_limit()?, policy, pending, account })
    }

    /// The event of a check that finds enough, without the amount that is left.
    pub(super) fn as_checked<'a>(&'a self, call: &'a ToolCall) -> LimitChecked<'a> {
        let LimitRequest { policy, measure, is_approved } = &self.pending;
        LimitChecked {
            call,
            policy: self.policy,
            layer: policy.layer(),
            key: &measure.key,
            cost: measure.cost,
            is_approved: *is_approved,
            is_enough: true,
            left: None,
            retry_after: None,
        }
    }

    /// The acquisition from the store. `None` if the limit counts in the session.
    pub(super) fn take(&self) -> Option<LimitAcquisition> {
        let (LimitRule::Store(allowance) | LimitRule::Conversation(allowance)) = self.limit.rule else {
            return None;
        };
        let LimitCharge { key, cost } = &self.pending.measure;
        Some(LimitAcquisition { key: key.clone(), account: self.account, allowance, cost: *cost })
    }

    pub(super) fn is_slot(&self) -> bool {
        matches!(self.limit.rule, LimitRule::Store(Allowance::Slots { .. }))
    }
}
