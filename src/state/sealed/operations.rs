//! The operations of a sealed store: each seals what it writes to the inner store, and opens and checks what it reads.

use jiff::Timestamp;

use super::envelope::{RecordLocation, open_cached, seal_cached};
use super::keyed_names::{KeyedAcquisitions, cache_name, keyed_corrections, limit_names};
use super::{ProvisionalSlots, SealedStore, seal_error};
use crate::host::{
    Account, Amount, Announcements, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore,
    ConditionalWrite, LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, Record, RecordBatch,
    RecordKey, RecordPage, RecordStore, StoreError, StoreFuture,
};

impl LimitStore for SealedStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move {
            let keyed = KeyedAcquisitions::new(&self.keys, takes);
            let takes = keyed.as_slice();
            let refusals = self.inner.acquire(now, takes).await?;
            let Some(anchor) = &self.anchor else { return Ok(keyed.refusals(refusals)) };
            if !refusals.is_empty() {
                anchor.sync_clock(now).await?;
                return Ok(keyed.refusals(refusals));
            }
            // The anchor grants whatever the store grants, unless the store's counts were reset.
            let acquired = ProvisionalSlots { store: &*self.inner, takes };
            let refusals = anchor.acquire(now, takes).await?;
            if refusals.is_empty() {
                acquired.confirm();
            }
            Ok(keyed.refusals(refusals))
        })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let corrections = keyed_corrections(&self.keys, corrections);
            // The anchor first: if it fails, the store's counts are unchanged.
            if let Some(anchor) = &self.anchor {
                anchor.store.correct(now, &corrections).await?;
            }
            self.inner.correct(now, &corrections).await
        })
    }

    fn available<'a>(
        &'a self,
        now: Timestamp,
        take: &'a LimitAcquisition,
    ) -> StoreFuture<'a, Option<Amount>> {
        Box::pin(async move {
            let mut least: Option<Amount> = None;
            for take in KeyedAcquisitions::new(&self.keys, std::slice::from_ref(take)).as_slice() {
                let stores =
                    std::iter::once(&self.inner).chain(self.anchor.as_ref().map(|anchor| &anchor.store));
                for store in stores {
                    if let Some(left) = store.available(now, take).await? {
                        least = Some(least.map_or(left, |least| least.min(left)));
                    }
                }
            }
            Ok(least)
        })
    }

    fn release(&self, key: &str) {
        let names = limit_names(&self.keys, key);
        // The anchor first, where nobody waits: a notified waiter finds the slot free in both.
        if let Some(anchor) = &self.anchor {
            names.iter().for_each(|name| anchor.store.release(name));
        }
        names.iter().for_each(|name| self.inner.release(name));
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.inner.slot_released()
    }
}

impl CacheStore for SealedStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        Box::pin(async move {
            let store = self.identity().await?;
            let key = &cache_name(&self.keys, space.name, key);
            let CacheLookup { entry, generation } = self.inner.cache_get(now, space, key).await?;
            let location = RecordLocation { store, key: RecordKey { space: space.name, key } };
            let entry = entry.and_then(|entry| open_cached(&self.keys, location, entry));
            // The inner store can't check the times of entries that it does not trust.
            let entry = entry.filter(|entry| entry.stored_at <= now && now < entry.expires_at);
            Ok(CacheLookup { entry, generation })
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
            let store = self.identity().await?;
            let key = &cache_name(&self.keys, space.name, key);
            let location = RecordLocation { store, key: RecordKey { space: space.name, key } };
            let entry = seal_cached(&self.keys, location, entry).map_err(seal_error)?;
            self.inner.cache_put(space, key, entry, generation).await
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.inner.cache_clear(space)
    }
}

impl RecordStore for SealedStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        Box::pin(async move {
            let store = self.identity().await?;
            let (stored, _) = self.verified_record(store, key).await?;
            Ok(stored.map(|stored| stored.envelope.into()))
        })
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let store = self.identity().await?;
            self.write(store, now, write).await
        })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let store = self.identity().await?;
            let RecordPage { records: page, more } = self.inner.records(space, after, limit).await?;
            let (keys, page): (Vec<String>, Vec<Record>) = page.into_iter().unzip();
            // Read after the records: a record that is the latest version then was the latest when it was read.
            let anchored = match &self.anchor {
                Some(anchor) => Some(anchor.anchored_records(space, &keys).await?),
                None => None,
            };
            let mut records = Vec::with_capacity(keys.len());
            for (index, (name, record)) in keys.into_iter().zip(page).enumerate() {
                let key = RecordKey { space, key: &name };
                let found = self.decrypt_record(store, key, record)?.envelope;
                let is_latest = anchored.as_ref().is_none_or(|known| {
                    known.get(index).and_then(Option::as_ref).is_some_and(|known| known.has_latest(&found))
                });
                let envelope = if is_latest {
                    found
                } else {
                    // It may have been written since, or its writer has not updated the anchor yet.
                    match self.verified_record(store, key).await?.0 {
                        Some(stored) => stored.envelope,
                        None => continue,
                    }
                };
                records.push((name, envelope.into()));
            }
            Ok(RecordPage { records, more })
        })
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        Box::pin(async move {
            let store = self.identity().await?;
            let mut records = Vec::with_capacity(keys.len());
            if self.anchor.is_some() {
                for key in keys {
                    records.push(self.verified_record(store, RecordKey { space, key }).await?.0);
                }
            } else {
                let found = self.inner.records_with_keys(space, keys).await?;
                for (key, record) in keys.iter().zip(found) {
                    let key = RecordKey { space, key };
                    records.push(record.map(|record| self.decrypt_record(store, key, record)).transpose()?);
                }
            }
            let opened = records.into_iter().map(|record| record.map(|record| record.envelope.into()));
            Ok(opened.collect())
        })
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        Box::pin(async move {
            let store = self.identity().await?;
            if self.anchor.is_some() {
                let mut records = Vec::with_capacity(keys.len());
                for key in keys {
                    records
                        .push(self.verified_record(store, *key).await?.0.map(|found| found.envelope.into()));
                }
                let is_incomplete = records.iter().any(Option::is_none);
                let has_lost_records = is_incomplete && self.has_lost_records(account).await?;
                return Ok(RecordBatch { records, has_lost_records });
            }
            let RecordBatch { records, has_lost_records } = self.inner.record_batch(keys, account).await?;
            if records.len() != keys.len() {
                let error = "the store returned another number of records than were requested";
                return Err(StoreError::Unavailable(error.to_owned()));
            }
            let open = |(key, record): (&RecordKey<'_>, Option<Record>)| {
                record.map(|record| Ok(self.decrypt_record(store, *key, record)?.envelope.into())).transpose()
            };
            let records = keys.iter().zip(records).map(open).collect::<Result<_, StoreError>>()?;
            Ok(RecordBatch { records, has_lost_records })
        })
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let lost = self.inner.has_lost_records(account).await?;
            match &self.anchor {
                Some(anchor) if !lost => anchor.store.has_lost_records(account).await,
                _ => Ok(lost),
            }
        })
    }

    fn remove_expired(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        self.inner.remove_expired(now)
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
        true
    }
}
