//! The placeholder for a shared store without keys: every operation fails.

use jiff::Timestamp;

use crate::call::Amount;
use crate::host::{
    Account, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, Record, RecordKey, RecordPage, RecordStore, StoreError,
    StoreFuture,
};

/// A store that fails every operation, because its data would be readable by everyone who can read the store.
pub struct KeylessStore;

fn fail<'a, T: 'a>() -> StoreFuture<'a, T> {
    let message = "a shared store needs the server's keys: set CALLGATE_KEYS, or call `EngineBuilder::keys`";
    Box::pin(async move { Err(StoreError::Unavailable(message.to_owned())) })
}

impl LimitStore for KeylessStore {
    fn acquire<'a>(&'a self, _: Timestamp, _: &'a [LimitAcquisition]) -> StoreFuture<'a, Vec<LimitRefusal>> {
        fail()
    }

    fn correct<'a>(&'a self, _: Timestamp, _: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        fail()
    }

    fn available<'a>(&'a self, _: Timestamp, _: &'a LimitAcquisition) -> StoreFuture<'a, Option<Amount>> {
        fail()
    }

    fn release(&self, _: &str) {}

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl CacheStore for KeylessStore {
    fn cache_get<'a>(&'a self, _: Timestamp, _: CacheSpace<'a>, _: &'a str) -> StoreFuture<'a, CacheLookup> {
        fail()
    }

    fn cache_put<'a>(&'a self, _: CacheSpace<'a>, _: &'a str, _: CacheEntry, _: u64) -> StoreFuture<'a, ()> {
        fail()
    }

    fn cache_clear<'a>(&'a self, _: &'a str) -> StoreFuture<'a, ()> {
        fail()
    }
}

impl RecordStore for KeylessStore {
    fn record<'a>(&'a self, _: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        fail()
    }

    fn write_record<'a>(&'a self, _: Timestamp, _: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        fail()
    }

    fn records<'a>(&'a self, _: &'a str, _: Option<&'a str>, _: usize) -> StoreFuture<'a, RecordPage> {
        fail()
    }

    fn has_lost_records<'a>(&'a self, _: &'a Account) -> StoreFuture<'a, bool> {
        fail()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_sealed(&self) -> bool {
        true
    }
}
