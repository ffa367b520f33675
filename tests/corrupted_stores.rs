//! Test stores: an in-memory store in which a test overrides single operations.

use callgate::host::{
    Account, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, Record, RecordKey, RecordPage, RecordStore, StoreFuture,
};
use callgate::state::MemoryStore;
use jiff::Timestamp;

/// The operations that a test overrides; all others are those of the inner store.
pub trait Alteration: Send + Sync {
    /// Every answer that is a future.
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        good
    }
    /// A lookup in a cache.
    fn cache_get<'a>(&'a self, good: StoreFuture<'a, CacheLookup>) -> StoreFuture<'a, CacheLookup> {
        good
    }
    /// Acquiring limits.
    fn take<'a>(
        &'a self,
        good: StoreFuture<'a, Vec<LimitRefusal>>,
        _: &'a MemoryStore,
        _: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        good
    }
    /// Correcting limits.
    fn correct<'a>(&'a self, good: StoreFuture<'a, ()>) -> StoreFuture<'a, ()> {
        good
    }
    /// Reading a record.
    fn record<'a>(
        &'a self,
        good: StoreFuture<'a, Option<Record>>,
        _: RecordKey<'a>,
    ) -> StoreFuture<'a, Option<Record>> {
        good
    }
    /// Writing a record.
    fn write_record<'a>(&'a self, good: StoreFuture<'a, bool>, _: RecordKey<'a>) -> StoreFuture<'a, bool> {
        good
    }
    /// Whether several processes share it.
    fn is_shared(&self) -> bool {
        false
    }
    /// Releasing a slot.
    fn give_back(&self, inner: &MemoryStore, key: &str) {
        inner.release(key);
    }
}

/// A store that several processes share.
pub struct Shared;

impl Alteration for Shared {
    fn is_shared(&self) -> bool {
        true
    }
}

/// An in-memory store with overridden operations.
#[derive(Default)]
pub struct Altered<A> {
    inner: MemoryStore,
    pub by: A,
}

impl<A: Alteration> Altered<A> {
    pub fn by(by: A) -> Self {
        Self { inner: MemoryStore::default(), by }
    }
}

impl<A: Alteration> LimitStore for Altered<A> {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.by.take(self.by.answer(self.inner.acquire(now, takes)), &self.inner, takes)
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.by.correct(self.by.answer(self.inner.correct(now, corrections)))
    }

    fn release(&self, key: &str) {
        self.by.give_back(&self.inner, key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_released()
    }
}

impl<A: Alteration> CacheStore for Altered<A> {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.by.cache_get(self.by.answer(self.inner.cache_get(now, space, key)))
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.by.answer(self.inner.cache_put(space, key, entry, generation))
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.by.answer(self.inner.cache_clear(space))
    }
}

impl<A: Alteration> RecordStore for Altered<A> {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.by.record(self.by.answer(self.inner.record(key)), key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        self.by.write_record(self.by.answer(self.inner.write_record(now, write)), write.key)
    }

    fn is_shared(&self) -> bool {
        self.by.is_shared()
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.by.answer(self.inner.has_lost_records(account))
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.by.answer(self.inner.records(space, after, limit))
    }
}
