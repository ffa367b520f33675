//! The store of limits: what was acquired of each, exact whatever the concurrency.

use std::time::Duration;

use jiff::Timestamp;

use super::store_operation::StoreFuture;
use super::{Account, BoxFuture};
use crate::call::Amount;

/// The quota of a limit. Windows and durations exclude their end: what was acquired at 0 s of 10 s is available again at 10
/// s. Durations count in microseconds, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The generic cell rate algorithm: `burst` at once, and `limit` per `per` in the long run. Any duration admits at most
    /// `burst` plus what was refilled in that time.
    Gcra {
        /// The amount that is refilled in one `per`.
        limit: Amount,
        /// The refill period.
        per: Duration,
        /// The amount that is available at once.
        burst: Amount,
    },
    /// At most `limit` in each window. Windows are aligned to the Unix epoch.
    FixedWindow {
        /// The amount that a window allows.
        limit: Amount,
        /// The length of a window.
        per: Duration,
    },
    /// At most `limit` in any period of length `per`.
    SlidingWindow {
        /// The amount that any such period allows.
        limit: Amount,
        /// The length of the period.
        per: Duration,
    },
    /// At most `limit` in total. The total is reset when nothing was acquired for `keep`.
    Total {
        /// The total amount.
        limit: Amount,
        /// How long the total is remembered after the last acquisition.
        keep: Duration,
    },
    /// At most `max` at the same time. A slot is released with [`LimitStore::release`].
    Slots {
        /// The number of slots.
        max: u32,
    },
}

/// A request to acquire part of one limit for one call. A cost of zero is always admitted and acquires nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitAcquisition {
    /// The limit, and whom it applies to.
    pub key: String,
    /// The account whose share of the store is charged for a limit that is not tracked yet.
    pub account: Account,
    /// The current quota. A reload may have changed its numbers: what was acquired stays acquired, and is measured by the
    /// new numbers. If the algorithm has changed, the limit starts from zero.
    pub allowance: Allowance,
    /// The amount to acquire; ignored for a slot, which always counts as one.
    pub cost: Amount,
}

/// A limit without enough left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRefusal {
    /// The index of the refused acquisition.
    pub index: usize,
    /// When the amount is available, to the microsecond, if nobody else acquires any. If a key occurs more than once, this
    /// counts the acquisition together with those before it. `None` for a slot, and for an amount that can never be
    /// acquired.
    pub retry_after: Option<Duration>,
}

/// What a call really cost, of a limit of which it has acquired an estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCorrection {
    /// What was acquired. Its cost is the estimate, which may be zero.
    pub acquisition: LimitAcquisition,
    /// The time that was passed to [`LimitStore::acquire`].
    pub acquired_at: Timestamp,
    /// The real cost.
    pub cost: RealCost,
}

/// The real cost of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealCost {
    /// It is known.
    Known(Amount),
    /// It cannot be read: the call counts as having used all that is left.
    Unknown,
}

impl LimitCorrection {
    /// Acquires an amount whatever is left: as if a call had acquired the least estimate before, and cost this amount more.
    pub(crate) fn overdraft(acquisition: LimitAcquisition, now: Timestamp) -> Self {
        let estimate = Amount::from_millionths(1);
        let cost = RealCost::Known(acquisition.cost.saturating_add(estimate));
        Self { acquisition: LimitAcquisition { cost: estimate, ..acquisition }, acquired_at: now, cost }
    }

    /// Whether it only refunds a part of the estimate. Leaving it out is the stricter choice.
    pub fn is_refund(&self) -> bool {
        matches!(self.cost, RealCost::Known(cost) if cost <= self.acquisition.cost)
    }
}

/// Stores what was acquired of each limit. Limits are exact, whatever the concurrency.
///
/// The times that callers pass in may step back. Then what was acquired stays acquired, and is available again no later
/// than the limit's own period after the step, give or take the one second by which callers may arrive out of order.
pub trait LimitStore: Send + Sync {
    /// Acquires all of these limits, or none of them. Returns an empty list if all were acquired, otherwise every limit
    /// without enough left. If a key occurs twice, both amounts are acquired; both must have the same quota.
    ///
    /// The caller may drop the future before it completes. A store that acquires slots after that must release them.
    ///
    /// # Errors
    /// If it is unknown whether enough is left, or if the share of an account is full, so that the acquisition can't be
    /// stored. Then nothing is acquired.
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>>;

    /// Corrects estimates. More than the estimate is acquired at `now` whatever is left: an overshoot is debt, and nothing is admitted
    /// until it has flowed back. Less is refunded as far as it still counts: what has flowed back since it was acquired, or belongs to
    /// another period, is not refunded again.
    ///
    /// # Errors
    /// If it is unknown whether the corrections are stored.
    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()>;

    /// The amount that could be acquired now. `take` names the limit; its cost is ignored. Acquires nothing. No call is admitted by it:
    /// it is displayed, and decides whether a limit with `on_exceed: approval` joins the request of a call that is suspended anyway. A
    /// store without this information returns `None`.
    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        let _ = (now, take);
        Box::pin(async { Ok(None) })
    }

    /// Releases a slot. Does nothing if none is held under this key.
    fn release(&self, key: &str);

    /// Waits until a slot may have been released since this method was called (not since the future was first polled). It
    /// may also complete spuriously. To miss no release, call it before [`acquire`](Self::acquire) and await it after a refusal:
    ///
    /// ```
    /// # use callgate::state::{LimitAcquisition, LimitStore, StoreError};
    /// # use jiff::Timestamp;
    /// # async fn slot(store: &dyn LimitStore, now: Timestamp, take: &[LimitAcquisition]) -> Result<(), StoreError> {
    /// loop {
    ///     let freed = store.slot_released();
    ///     if store.acquire(now, take).await?.is_empty() {
    ///         return Ok(());
    ///     }
    ///     freed.await;
    /// }
    /// # }
    /// ```
    fn slot_released(&self) -> BoxFuture<'_, ()>;

    /// Whether others than this process can read the keys of limits, which contain what policies count by, such as
    /// principals. Then the engine stores keyed digests in their place, for which it needs the server's keys.
    fn exposes_limits(&self) -> bool {
        false
    }
}
