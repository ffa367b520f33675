//! The in-memory store: limits, caches and records, each behind a lock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::cache::{self, CacheSpaces};
use super::capacity::Capacity;
use super::limit_algorithms::since_epoch;
use super::limit_table::LimitTable;
use super::records::RecordTable;
use crate::host::{
    Account, Amount, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite,
    LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, Record, RecordKey, RecordPage, RecordStore,
    StoreFuture,
};

/// A state store in memory, for one process. It starts empty, and all engines with the same instance share it.
///
/// Limits are exact, whatever the concurrency: a batch is checked and acquired under one lock. All futures are ready at
/// once.
///
/// Memory is bounded by [`CAPACITY`](Self::CAPACITY), and each account has a share of it: a single caller a third, a single
/// tenant a half, so that nobody can use up the capacity of others. A limit is removed when it is back at its initial
/// state, a record after its expiry. While an account's share is full, a further limit or record is an error, because
/// dropping one would admit what it forbids. Of cached results, the account with the most loses its least recently used
/// entry. There are at most 1,024 cache spaces (the most recently used ones), and no entry is larger than 1 MiB of JSON.
///
/// When the clock steps back, everything that was acquired counts as acquired at that moment, so that nobody waits longer
/// than the limit's own period. A step of up to a second can't be distinguished from callers that arrive out of order, so
/// it is waited out.
pub struct MemoryStore {
    limits: Mutex<LimitTable>,
    caches: Mutex<CacheSpaces>,
    records: Mutex<RecordTable>,
    freed: Notify,
}

impl MemoryStore {
    /// The default capacity: a million limits, 400 MiB of records and 256 MiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 1_000_000, records: 102_400, cached: 65_536 };

    /// A store with this capacity.
    pub fn with_capacity(capacity: Capacity) -> Self {
        Self {
            limits: Mutex::new(LimitTable::new(capacity.limits)),
            caches: Mutex::new(CacheSpaces::new(capacity.cached)),
            records: Mutex::new(RecordTable::new(capacity.records)),
            freed: Notify::new(),
        }
    }

    // After a panic, at worst an acquired amount was not admitted, or a value not stored: nothing that would admit more.
    fn lock_limits(&self) -> MutexGuard<'_, LimitTable> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_caches(&self) -> MutexGuard<'_, CacheSpaces> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_records(&self) -> MutexGuard<'_, RecordTable> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}

/// Omits the content, which may be secret.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl LimitStore for MemoryStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move { self.lock_limits().acquire(since_epoch(now), takes) })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.lock_limits().correct(since_epoch(now), corrections) })
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        Box::pin(async move { Ok(Some(self.lock_limits().available(since_epoch(now), take))) })
    }

    fn release(&self, key: &str) {
        self.lock_limits().release(key);
        self.freed.notify_waiters();
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        // Created here and not on the first poll: no notification is missed from now on.
        Box::pin(self.freed.notified())
    }
}

impl CacheStore for MemoryStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        Box::pin(async move {
            let (entry, generation) = self.lock_caches().get(now, space, key);
            // Cloned after the lock is released.
            Ok(CacheLookup { entry: entry.map(Arc::unwrap_or_clone), generation })
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
            let entry = cache::entry_size(key, &entry.output).map(|size| (Arc::new(entry), size));
            self.lock_caches().put(space, key, entry, generation);
            Ok(())
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.lock_caches().clear(space);
            Ok(())
        })
    }
}

impl RecordStore for MemoryStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move { Ok(self.lock_records().get(key)) })
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.lock_records().write(now, write) })
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.lock_records().has_lost(account)) })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move { Ok(self.lock_records().page(space, after, limit)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_omits_the_content() {
        assert_eq!(format!("{:?}", MemoryStore::default()), "MemoryStore { .. }");
    }
}
