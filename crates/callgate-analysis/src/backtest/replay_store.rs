//! The store of a replay: limits, and the usage of budgets ([`BudgetRecords`]).
//!
//! A call that requires approval is recorded twice: when it is suspended, and when it runs. What it used of limits and budgets in the
//! first replay, it does not use in the second one again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::call::Amount;
use callgate::host::{
    Account, BoxFuture, ConditionalWrite, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore,
    Record, RecordKey, RecordPage, RecordStore, StoreFuture,
};
use callgate::state::{BudgetRecords, MemoryStore};
use jiff::Timestamp;

/// What a suspended call used of limits and budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CountedUse {
    /// The keys of limits.
    pub(super) limits: Vec<String>,
    /// Whether budgets count it, because the rules let it run.
    pub(super) budgets: bool,
}

/// Stores limits and the usage of budgets, and nothing else.
#[derive(Default)]
pub(super) struct ReplayStore {
    limits: MemoryStore,
    budgets: BudgetRecords,
    current: Mutex<CurrentCall>,
}

/// The call that is replayed.
#[derive(Default)]
struct CurrentCall {
    /// What it used before.
    counted: CountedUse,
    /// The keys of the limits that it acquires now.
    acquired: Vec<String>,
}

impl ReplayStore {
    /// Begins a call, or a round, with what it used before.
    pub(super) fn begin(&self, counted: CountedUse) {
        *self.lock() = CurrentCall { counted, acquired: Vec::new() };
    }

    /// Ends it. Returns the keys of the limits that it acquired.
    pub(super) fn end(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock()).acquired
    }

    fn lock(&self) -> MutexGuard<'_, CurrentCall> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LimitStore for ReplayStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move {
            let is_counted = |take: &LimitAcquisition| self.lock().counted.limits.contains(&take.key);
            let (indices, fresh): (Vec<usize>, Vec<LimitAcquisition>) =
                takes.iter().cloned().enumerate().filter(|(_, take)| !is_counted(take)).unzip();
            let mut refusals = self.limits.acquire(now, &fresh).await?;
            for refusal in &mut refusals {
                refusal.index = indices.get(refusal.index).copied().unwrap_or_default();
            }
            if refusals.is_empty() {
                self.lock().acquired.extend(fresh.into_iter().map(|take| take.key));
            }
            Ok(refusals)
        })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.limits.correct(now, corrections)
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        self.limits.available(now, take)
    }

    fn release(&self, key: &str) {
        self.limits.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.limits.slot_released()
    }
}

impl RecordStore for ReplayStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.budgets.record(key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        match self.lock().counted.budgets {
            true => Box::pin(async { Ok(true) }),
            false => self.budgets.write_record(now, write),
        }
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.budgets.records(space, after, limit)
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.budgets.has_lost_records(account)
    }
}
