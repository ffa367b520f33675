//! What outlives a call and a session: how much of each limit is taken, what caches hold, and what is known of calls that
//! wait for a person.
//!
//! Nothing of this lies in compiled policies, so it survives every reload; and a host can put it where several processes
//! share it.

use std::time::Duration;

use jiff::Timestamp;

use super::guard::{before, guarded};
use super::record::{Page, Record, RecordKey, Write};
use super::{Account, BoxFuture, Clock};
use crate::call::{Amount, reason_code};
use crate::json::Value;

/// What a store answers, in time.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store gave no answer. What that means follows the policy: limits refuse, caches are bypassed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store does not answer, or has no room.
    #[error("{0}")]
    Unavailable(String),
    /// The account uses all of its share of the store. Others are not concerned. What would be let through while a store does not answer
    /// is refused: a caller must not lift a limit by using up its share.
    #[error("{0}")]
    QuotaExceeded(String),
    /// The store holds something else than what was written there last by a holder of the server's keys: a record was
    /// changed, removed, or replaced by an older one.
    #[error("{0}")]
    Altered(String),
}

impl StoreError {
    /// The code of the reason of a call that is refused for it.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => reason_code::STORE_UNAVAILABLE,
            Self::QuotaExceeded(_) => reason_code::QUOTA_EXCEEDED,
            Self::Altered(_) => reason_code::STATE_ALTERED,
        }
    }
}

/// What a limit allows. A window or a span is without its end: what was taken at 0 s of 10 s is free again at 10 s. Spans count
/// in microseconds, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The generic cell rate algorithm: `burst` at once, and `limit` per `per` in the long run. In any span of time no more
    /// than `burst` and what has flowed back in that time.
    Gcra {
        /// What flows back in one `per`.
        limit: Amount,
        /// The time that takes.
        per: Duration,
        /// What can be taken at once.
        burst: Amount,
    },
    /// No more than `limit` in each window, one following the other from the Unix epoch on.
    FixedWindow {
        /// What a window allows.
        limit: Amount,
        /// How long it is.
        per: Duration,
    },
    /// No more than `limit` in any span of time as long as `per`.
    SlidingWindow {
        /// What any such span allows.
        limit: Amount,
        /// How long it is.
        per: Duration,
    },
    /// No more than `limit` altogether. Forgotten when nothing was taken for `keep`.
    Total {
        /// What may be taken.
        limit: Amount,
        /// How long it is remembered.
        keep: Duration,
    },
    /// No more than `max` at the same time: what is taken is given back with [`StateStore::give_back`].
    Slots {
        /// How many.
        max: u32,
    },
}

/// What one call takes of one limit. A cost of nothing is always admitted, and takes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Which limit, for whom.
    pub key: String,
    /// Whose share of the store a limit is charged to that is not tracked yet.
    pub account: Account,
    /// What the limit allows now. A reload may have changed its numbers: what was taken stays taken, and is measured by the
    /// new ones. With another kind of allowance than before, the limit starts anew.
    pub allowance: Allowance,
    /// How much; a slot is one, whatever this says.
    pub cost: Amount,
}

/// A limit that has not enough left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which of the takes, by its place.
    pub index: usize,
    /// After how long it may be taken if nobody else takes of it, and not a microsecond before. Of a key that appears more
    /// than once, this one together with those before it. Nothing for a slot, and for what can never be taken.
    pub retry_after: Option<Duration>,
}

/// One space of cached results: those of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpace<'a> {
    /// Its name.
    pub name: &'a str,
    /// How many entries it holds. Of more, the one gives way that was used longest ago of those of the account with the most.
    pub max_entries: usize,
    /// Who uses it: whose share of the store entries are charged to that are written.
    pub account: Account,
}

/// A result in a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    /// The result.
    pub output: Value,
    /// When it was written. Its time to live counts from here, however often it is read.
    pub stored_at: Timestamp,
    /// From when on it is not given out any more.
    pub expires_at: Timestamp,
}

/// What a cache says of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The entry, if there is one that has not expired.
    pub entry: Option<CacheEntry>,
    /// How often the space was cleared. [`StateStore::cache_put`] takes it back, so that a result which was on its way while
    /// the space was cleared is not kept.
    pub generation: u64,
}

/// Where the state of policies is kept. Everything is counted exactly, however many callers there are at once.
///
/// The times that callers pass in may step back. Then what was taken stays taken, and is free again no later than the
/// limit's own period after the step, give or take the second by which callers may come out of order; a cache gives out
/// nothing that was written in the future.
pub trait StateStore: Send + Sync {
    /// Takes from each of these limits, or from none: an empty list says that all was taken, otherwise it names every limit
    /// that has not enough left. Of a key that appears twice, both are taken; they must be by the same allowance.
    ///
    /// # Errors
    /// When it can't be known whether there is enough, or the share of an account is used up, so that there is no room to remember what is
    /// taken. Nothing is taken then.
    ///
    /// Whoever asks may go away before the answer comes. A store that answers late must then free the slots that it took.
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>>;

    /// How much could be taken of a limit now; `take` says which one it is, and its cost does not count. Nothing is taken. For people who
    /// ask: nothing is decided by it, and a store that can't say answers nothing.
    fn left<'a>(&'a self, now: Timestamp, take: &'a Take) -> StoreFuture<'a, Option<Amount>> {
        let _ = (now, take);
        Box::pin(async { Ok(None) })
    }

    /// Gives a slot back. A key of which nothing is taken is passed over.
    fn give_back(&self, key: &str);

    /// Waits until a slot may have been given back since this was called, not since it was first polled. It may also come
    /// back for no reason. To miss nothing, call it before [`take`](Self::take) and await it after a refusal:
    ///
    /// ```
    /// # use callgate::host::{Refusal, StateStore, StoreError, Take};
    /// # use jiff::Timestamp;
    /// # async fn slot(store: &dyn StateStore, now: Timestamp, take: &[Take]) -> Result<(), StoreError> {
    /// loop {
    ///     let freed = store.slot_freed();
    ///     if store.take(now, take).await?.is_empty() {
    ///         return Ok(());
    ///     }
    ///     freed.await;
    /// }
    /// # }
    /// ```
    fn slot_freed(&self) -> BoxFuture<'_, ()>;

    /// Looks a key up. A hit makes the entry the one used last, and does not prolong its life.
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup>;

    /// Writes an entry, unless the space was cleared since `generation` was read. A store may also not keep it, as one too
    /// large; what it held under that key is gone then too.
    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()>;

    /// Drops every entry of a space.
    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()>;

    /// The record of this key, if there is one.
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>>;

    /// Writes a record if what stands there has the version that it is to be written over; says whether it did. Of several who
    /// write over the same version one succeeds. What was written is there for whoever asks from then on, in all processes
    /// that share the store, also after a crash if the store outlives one.
    ///
    /// # Errors
    /// When it is not known whether it was written, or there is no room, or the account's share is used up: a record is only forgotten
    /// after its time, or evicted for another one of the same account. When its value is larger than
    /// [`LARGEST_RECORD`](super::LARGEST_RECORD).
    fn write_record<'a>(&'a self, now: Timestamp, write: Write<'a>) -> StoreFuture<'a, bool>;

    /// Up to `limit` records of a space whose keys come after `after`, in the order of their keys.
    fn records<'a>(&'a self, space: &'a str, after: Option<&'a str>, limit: usize) -> StoreFuture<'a, Page>;

    /// Whether records of this account were refused or evicted because its share was used up. Then a record that is absent may have
    /// existed: what it would say is unknown, not empty. A store that neither refuses nor evicts for an account's sake returns `false`;
    /// one that wraps another store asks that one.
    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool>;

    /// Whether other processes see what this one writes, and it outlives this one.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether the store authenticates its records itself, as a [`SealedStore`](crate::state::SealedStore) does.
    fn is_sealed(&self) -> bool {
        false
    }
}

/// A store that takes longer than this does not answer.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// What a store answers, in time. A panic is an error, too.
pub(crate) async fn in_time<'q, T: 'q>(
    clock: &dyn Clock,
    question: impl FnOnce() -> StoreFuture<'q, T>,
) -> Result<T, StoreError> {
    let answer = before(async { question().await }, || clock.sleep(STORE_PATIENCE));
    match guarded(answer).await {
        Ok(Some(answer)) => answer,
        Err(_) => Err(StoreError::Unavailable("the store panicked".to_owned())),
        Ok(None) => Err(StoreError::Unavailable(format!("no answer within {}s", STORE_PATIENCE.as_secs()))),
    }
}
