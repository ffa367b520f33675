//! A store that reports the failures of another one to observers, and changes nothing else.

use std::sync::Arc;

use jiff::Timestamp;

use super::observers::Observers;
use crate::call::Amount;
use crate::host::{
    Account, Announcements, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite,
    EngineEventKind, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, Record, RecordBatch,
    RecordKey, RecordPage, RecordStore, StateStore, StoreFuture, with_store_timeout,
};

/// A store whose failures are reported.
pub(super) struct ObservedStore {
    inner: Arc<dyn StateStore>,
    observers: Observers,
}

impl ObservedStore {
    pub(super) fn new(inner: Arc<dyn StateStore>, observers: Observers) -> Self {
        Self { inner, observers }
    }

    /// Runs an operation with the time limit of all operations of a store, so that an overrun is reported, too.
    fn observe<'a, T: Send + 'a>(
        &'a self,
        operation: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let result = with_store_timeout(self.observers.clock(), operation).await;
            if let Err(error) = &result {
                self.observers.notify("", EngineEventKind::StoreFailed(error));
            }
            result
        })
    }
}

impl LimitStore for ObservedStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.observe(move || self.inner.acquire(now, takes))
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.observe(move || self.inner.correct(now, corrections))
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        self.observe(move || self.inner.available(now, take))
    }

    fn release(&self, key: &str) {
        self.inner.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_released()
    }

    fn exposes_limits(&self) -> bool {
        self.inner.exposes_limits()
    }
}

impl CacheStore for ObservedStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.observe(move || self.inner.cache_get(now, space, key))
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.observe(move || self.inner.cache_put(space, key, entry, generation))
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.observe(move || self.inner.cache_clear(space))
    }

    fn exposes_cache(&self) -> bool {
        self.inner.exposes_cache()
    }
}

impl RecordStore for ObservedStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.observe(move || self.inner.record(key))
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        self.observe(move || self.inner.write_record(now, write))
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.observe(move || self.inner.records(space, after, limit))
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        self.observe(move || self.inner.records_with_keys(space, keys))
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.observe(move || self.inner.has_lost_records(account))
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        self.observe(move || self.inner.record_batch(keys, account))
    }

    fn announce_approval(&self, key: &str) {
        self.inner.announce_approval(key);
    }

    fn announcements(&self) -> Announcements {
        self.inner.announcements()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn is_sealed(&self) -> bool {
        self.inner.is_sealed()
    }
}
