//! The store itself: what is tracked and what is cached, each behind its lock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::cache::{self, Caches};
use super::limits::since_epoch;
use super::records::Records;
use super::tracked::Limits;
use crate::host::{
    Amount, BoxFuture, CacheEntry, CacheSpace, Lookup, Page, Record, RecordKey, Refusal, StateStore,
    StoreFuture, Take, Write,
};

/// The state of policies in memory, for one process. It is empty when made, and every engine that is given it shares it.
///
/// Limits are exact, however many threads take at once: a batch is checked and taken under one lock. Its futures are ready
/// at once.
///
/// Memory is bounded. A key leaves when it is as good as new; while [`LIMITS`](Self::LIMITS) of them are in use, taking of a
/// further one is an error, for forgetting one would admit what its limit forbids. Caches keep 1,024 spaces, the ones used
/// last, and no entry larger than 1 MiB of JSON. Of records there are at most 100,000; while all of them are in use, a further
/// one is an error.
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
    /// How many limits are tracked at once, unless it is chosen.
    pub const LIMITS: usize = 1_000_000;

    /// A store that tracks at most so many limits at once, each for one value of its key. A sliding window counts once for
    /// each time that it remembers.
    pub fn tracking(limits: usize) -> Self {
        Self {
            limits: Mutex::new(Limits::new(limits)),
            caches: Mutex::new(Caches::default()),
            records: Mutex::new(Records::default()),
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
        Self::tracking(Self::LIMITS)
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
            let entry = cache::fits(key, &entry.output).then(|| Arc::new(entry));
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
