//! The store itself: what is tracked and what is cached, each behind its lock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::cache::{self, Caches};
use super::limits::since_epoch;
use super::records::Records;
use super::shares::Capacity;
use super::tracked::Limits;
use crate::host::{
    Account, Amount, BoxFuture, CacheEntry, CacheSpace, Lookup, Page, Record, RecordKey, Refusal, StateStore,
    StoreFuture, Take, Write,
};

/// The state of policies in memory, for one process. It is empty when made, and every engine that is given it shares it.
///
/// Limits are exact, however many threads take at once: a batch is checked and taken under one lock. Its futures are ready
/// at once.
///
/// Memory is bounded by [`CAPACITY`](Self::CAPACITY), and each account has a share of it: a caller alone a third, a tenant alone a half,
/// so that nobody can use up what others need. A limit leaves when it is as good as new, a record after its time; while an account's
/// share is in use, a further limit or record of it is an error, for forgetting one would admit what it forbids. Of cached results
/// the account with the most evicts what it used longest ago. Caches keep 1,024 spaces, the ones used last, and no entry larger than
/// 1 MiB of JSON.
///
/// A clock that steps back leaves taken what was taken, as if it had been taken just then, so that nobody waits longer than
/// the limit's own period. A step of up to a second can't be told from callers that come out of order, so it is waited out.
pub struct MemoryStore {
    limits: Mutex<Limits>,
    caches: Mutex<Caches>,
    records: Mutex<Records>,
    freed: Notify,
}

impl MemoryStore {
    /// How much it remembers, unless that is chosen: a million limits, 400 MiB of records and 256 MiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 1_000_000, records: 102_400, cached: 65_536 };

    /// A store that remembers so much.
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self {
            limits: Mutex::new(Limits::new(capacity.limits)),
            caches: Mutex::new(Caches::new(capacity.cached)),
            records: Mutex::new(Records::new(capacity.records)),
            freed: Notify::new(),
        }
    }

    // What a panic leaves behind is at worst taken and not admitted, or not kept: nothing that would admit more.
    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caches(&self) -> MutexGuard<'_, Caches> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}

/// Without what it holds, which may be secret.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl StateStore for MemoryStore {
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        Box::pin(async move { self.limits().take(since_epoch(now), takes) })
    }

    fn left<'a>(&'a self, now: Timestamp, take: &'a Take) -> StoreFuture<'a, Option<Amount>> {
        Box::pin(async move { Ok(Some(self.limits().left(since_epoch(now), take))) })
    }

    fn give_back(&self, key: &str) {
        self.limits().give_back(key);
        self.freed.notify_waiters();
    }

    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        // Made here and not when first polled: from now on no waking is missed.
        Box::pin(self.freed.notified())
    }

    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup> {
        Box::pin(async move {
            let (entry, generation) = self.caches().get(now, space, key);
            // Copied when the lock is free again.
            Ok(Lookup { entry: entry.map(Arc::unwrap_or_clone), generation })
        })
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let entry = cache::fits(key, &entry.output).map(|size| (Arc::new(entry), size));
            self.caches().put(space, key, entry, generation);
            Ok(())
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.caches().clear(space);
            Ok(())
        })
    }

    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move { Ok(self.kept_records().get(key)) })
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: Write<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.kept_records().write(now, write) })
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.kept_records().has_lost(account)) })
    }

    fn records<'a>(&'a self, space: &'a str, after: Option<&'a str>, limit: usize) -> StoreFuture<'a, Page> {
        Box::pin(async move { Ok(self.kept_records().page(space, after, limit)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_holds_is_not_shown() {
        assert_eq!(format!("{:?}", MemoryStore::default()), "MemoryStore { .. }");
    }
}
