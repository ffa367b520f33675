//! The state store: limits, caches and the records of calls and sessions, which outlive both.
//!
//! Compiled policies hold none of this state, so it survives every reload, and several processes can share one store.

use std::time::Duration;

use jiff::Timestamp;

use super::panic_guard::{catch_panic, with_deadline};
use super::record::{ConditionalWrite, Record, RecordKey, RecordPage};
use super::{Account, BoxFuture, Clock};
use crate::call::{Amount, reason_code};
use crate::json::Value;

/// The future of a store operation.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store operation failed. The policy decides the effect: limits fail closed, caches are bypassed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store does not respond, or is full.
    #[error("{0}")]
    Unavailable(String),
    /// The account has used its share of the store; other accounts are not affected. Calls that are allowed when a store is
    /// unavailable are refused here: a caller must not lift a limit by using up its share.
    #[error("{0}")]
    QuotaExceeded(String),
    /// The store does not hold what a holder of the server's keys wrote last: a record was changed, removed, or replaced by
    /// an older version.
    #[error("{0}")]
    Altered(String),
}

impl StoreError {
    /// The reason code of a call that is refused because of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => reason_code::STORE_UNAVAILABLE,
            Self::QuotaExceeded(_) => reason_code::QUOTA_EXCEEDED,
            Self::Altered(_) => reason_code::STATE_ALTERED,
        }
    }
}

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
    /// At most `max` at the same time. A slot is released with [`StateStore::release`].
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

/// One cache space: the cached results of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpace<'a> {
    /// The name of the space.
    pub name: &'a str,
    /// The maximum number of entries. When there are more, the account with the most entries loses the one that it used
    /// least recently.
    pub max_entries: usize,
    /// The account that uses the space. Entries that it writes are charged to its share of the store.
    pub account: Account,
}

/// A cached result.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    /// The result.
    pub output: Value,
    /// When it was written. The time to live counts from here, however often it is read.
    pub stored_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The result of a cache lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLookup {
    /// The entry, if there is one that has not expired.
    pub entry: Option<CacheEntry>,
    /// How often the space was cleared. Pass it to [`StateStore::cache_put`], so that a result that was computed before the
    /// space was cleared is not stored afterwards.
    pub generation: u64,
}

/// The store for the state of policies. Limits are exact, whatever the concurrency.
///
/// The times that callers pass in may step back. Then what was acquired stays acquired, and is available again no later
/// than the limit's own period after the step, give or take the one second by which callers may arrive out of order. A
/// cache returns no entry that was written in the future.
pub trait StateStore: Send + Sync {
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

    /// The amount that could be acquired now. `take` names the limit; its cost is ignored. Acquires nothing. For status
    /// displays only: no decision depends on it, and a store without this information returns `None`.
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
    /// # use callgate::host::{LimitAcquisition, StateStore, StoreError};
    /// # use jiff::Timestamp;
    /// # async fn slot(store: &dyn StateStore, now: Timestamp, take: &[LimitAcquisition]) -> Result<(), StoreError> {
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

    /// Looks up a key. A hit marks the entry as used most recently; it does not extend its time to live.
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup>;

    /// Writes an entry, unless the space was cleared since `generation` was read. A store may drop the entry, for example
    /// if it is too large; the previous entry of this key is removed in any case.
    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()>;

    /// Removes every entry of a space.
    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()>;

    /// The record of this key, if it exists.
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>>;

    /// Writes a record if the stored version is the expected one; returns whether it did. Of several concurrent writes
    /// over the same version, one succeeds. From then on, every process that shares the store reads the new value, also
    /// after a crash if the store is persistent.
    ///
    /// # Errors
    /// If it is unknown whether the record was written; if the store or the account's share is full (a record is deleted
    /// only after its expiry, or evicted for another record of the same account); or if the value is larger than
    /// [`MAX_RECORD_BYTES`](super::MAX_RECORD_BYTES).
    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool>;

    /// Up to `limit` records of a space whose keys come after `after`, ordered by key.
    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage>;

    /// Whether records of this account were refused or evicted because its share was full. Then a missing record may have
    /// existed: its content is unknown, not empty. A store that never refuses or evicts because of an account's share
    /// returns `false`; a store that wraps another one delegates to it.
    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool>;

    /// Whether the store is persistent and other processes see what this one writes.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether the store authenticates its records itself, as a [`SealedStore`](crate::state::SealedStore) does.
    fn is_sealed(&self) -> bool {
        false
    }
}

/// The timeout of a store operation.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Awaits a store operation with a timeout. A panic is returned as an error, too.
pub async fn with_store_timeout<'q, T: 'q>(
    clock: &dyn Clock,
    question: impl FnOnce() -> StoreFuture<'q, T>,
) -> Result<T, StoreError> {
    let answer = with_deadline(async { question().await }, || clock.sleep(STORE_TIMEOUT));
    match catch_panic(answer).await {
        Ok(Some(answer)) => answer,
        Err(_) => Err(StoreError::Unavailable("the store panicked".to_owned())),
        Ok(None) => Err(StoreError::Unavailable(format!("no response within {}s", STORE_TIMEOUT.as_secs()))),
    }
}
