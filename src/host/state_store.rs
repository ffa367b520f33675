//! The state store: limits, caches and the records of calls and sessions, which outlive both.
//!
//! Compiled policies hold none of this state, so it survives every reload, and several processes can share one store.

use std::sync::Arc;

use jiff::Timestamp;

use super::cache_store::{CacheEntry, CacheLookup, CacheSpace, CacheStore};
use super::limit_store::{LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore};
use super::record_store::{ConditionalWrite, Record, RecordBatch, RecordKey, RecordPage, RecordStore};
use super::store_operation::StoreFuture;
use super::{Account, Announcements, BoxFuture};
use crate::call::Amount;

/// A store for all state of policies: limits, cached results and records. Every type that implements the three traits is one.
pub trait StateStore: LimitStore + CacheStore + RecordStore {}

impl<S: LimitStore + CacheStore + RecordStore + ?Sized> StateStore for S {}

/// A state store whose parts are different stores, such as limits in a service that several hosts share and everything else in
/// memory.
#[derive(Clone)]
pub struct CombinedStore {
    limits: Arc<dyn LimitStore>,
    cache: Arc<dyn CacheStore>,
    records: Arc<dyn RecordStore>,
}

impl CombinedStore {
    /// All parts in one store.
    pub fn new(store: Arc<dyn StateStore>) -> Self {
        Self { limits: store.clone(), cache: store.clone(), records: store }
    }

    /// Replaces the store of limits.
    #[must_use]
    pub fn with_limits(self, limits: Arc<dyn LimitStore>) -> Self {
        Self { limits, ..self }
    }

    /// Replaces the store of cached results. If several processes share it, they have to share the records, too: entries are bound to
    /// the identity of the store, which is a record. Other processes' entries are ignored otherwise.
    #[must_use]
    pub fn with_cache(self, cache: Arc<dyn CacheStore>) -> Self {
        Self { cache, ..self }
    }

    /// Replaces the store of records.
    #[must_use]
    pub fn with_records(self, records: Arc<dyn RecordStore>) -> Self {
        Self { records, ..self }
    }
}

/// Omits the content, which may be secret.
impl std::fmt::Debug for CombinedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CombinedStore").finish_non_exhaustive()
    }
}

impl LimitStore for CombinedStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.limits.acquire(now, takes)
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

    fn exposes_limits(&self) -> bool {
        self.limits.exposes_limits()
    }
}

impl CacheStore for CombinedStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.cache.cache_get(now, space, key)
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.cache.cache_put(space, key, entry, generation)
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.cache.cache_clear(space)
    }

    fn exposes_cache(&self) -> bool {
        self.cache.exposes_cache()
    }
}

impl RecordStore for CombinedStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.records.record(key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        self.records.write_record(now, write)
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.records.records(space, after, limit)
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        self.records.records_with_keys(space, keys)
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        self.records.has_lost_records(account)
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        self.records.record_batch(keys, account)
    }

    fn remove_expired(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        self.records.remove_expired(now)
    }

    fn announce_approval(&self, key: &str) {
        self.records.announce_approval(key);
    }

    fn announcements(&self) -> Announcements {
        self.records.announcements()
    }

    fn is_shared(&self) -> bool {
        self.records.is_shared()
    }

    fn is_sealed(&self) -> bool {
        self.records.is_sealed()
    }
}
