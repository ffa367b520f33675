//! The operations of a store: each is a job on the store's runtime, which sends a script or a command.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use redis::cmd;
use tokio::runtime::Runtime;

use super::cache::{self, CacheWrite};
use super::connection::Durability;
use super::error::RedisStoreError;
use super::limits::{AcquisitionBatch, account_argument, number, time_argument};
use super::records::{self, MAX_PAGE_BYTES};
use super::server::Server;
use super::slots::Slot;
use super::store::RedisStore;
use callgate::host::{
    Account, Announcements, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite,
    LimitAcquisition, LimitCorrection, LimitRefusal, LimitStore, OnQuotaExceeded, Record, RecordBatch,
    RecordKey, RecordPage, RecordStore, StoreError, StoreFuture,
};
use callgate::state::cache::entry_size;
use callgate::state::capacity::units;
use callgate::state::records::{check_size, quota_error};
use data_encoding::HEXLOWER;

/// How long those who wait for a slot rely on notifications, before they ask again: an owner that died notifies nobody.
const SLOT_WAIT: Duration = Duration::from_secs(2);
/// The most records of a page.
const MAX_PAGE: usize = 1 << 40;

/// Acquired slots. They are released if the caller drops the future before it gets them.
struct AcquiredSlots {
    answer: Result<Vec<LimitRefusal>, StoreError>,
    slots: Vec<Slot>,
    server: Arc<Server>,
}

impl AcquiredSlots {
    fn into_answer(mut self) -> Result<Vec<LimitRefusal>, StoreError> {
        self.slots.clear();
        std::mem::replace(&mut self.answer, Ok(Vec::new()))
    }
}

impl Drop for AcquiredSlots {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for slot in self.slots.drain(..) {
            self.server.slots().release(&slot.key);
            let server = Arc::clone(&self.server);
            runtime.spawn(async move { server.send_releases().await });
        }
    }
}

impl LimitStore for RedisStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        let server = Arc::clone(&self.server);
        let batch = AcquisitionBatch::new(takes, |key| server.slots().new_slot(key));
        let batch = match batch {
            Ok(batch) if batch.is_empty() => return Box::pin(async { Ok(Vec::new()) }),
            Ok(batch) => batch,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        let takes = takes.to_vec();
        let acquired = self.run(async move {
            let answer = server.acquire(now, &takes, &batch).await?;
            let has_acquired = answer.as_ref().is_ok_and(Vec::is_empty);
            let slots = if has_acquired { batch.slots } else { Vec::new() };
            Ok(AcquiredSlots { answer, slots, server })
        });
        Box::pin(async move { acquired.await?.into_answer() })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        let (corrections, server) = (corrections.to_vec(), Arc::clone(&self.server));
        let corrected = self.run(async move { server.correct(now, &corrections).await });
        Box::pin(async move { corrected.await? })
    }

    fn release(&self, key: &str) {
        // At once, so that an acquisition from now on sends it first.
        if self.server.slots().release(key) {
            let server = Arc::clone(&self.server);
            drop(self.run(async move { server.send_releases().await }));
        }
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        // Created here and not on the first poll: no notification is missed from now on.
        let mut freed = Box::pin(self.server.slots_freed.notified());
        let handle = self.runtime.as_ref().map(Runtime::handle).cloned();
        freed.as_mut().enable();
        Box::pin(async move {
            // The timer of the store's own runtime, because that of the caller may have none.
            let waited = handle.map(|handle| handle.spawn(async { tokio::time::sleep(SLOT_WAIT).await }));
            match waited {
                Some(waited) => {
                    tokio::select! { () = freed => {} _ = waited => {} }
                }
                None => freed.await,
            }
        })
    }

    fn exposes_limits(&self) -> bool {
        true
    }
}

impl CacheStore for RedisStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        let (arguments, server) = (cache::lookup_arguments(now, space, key), Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let reply: Vec<String> =
                server.cached.run(&server.scripts.cache_get, &arguments, Durability::Local).await?;
            cache::lookup_of(now, &reply)
        }))
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        let units = entry_size(key, &entry.output).map(units);
        let write = CacheWrite { space, key, entry: &entry, units, generation };
        let arguments = write.arguments(self.server.capacity.cached);
        let server = Arc::clone(&self.server);
        Box::pin(self.run(async move {
            let script = &server.scripts.cache_put;
            server.cached.run::<String>(script, &arguments, Durability::Local).await?;
            Ok(())
        }))
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        let (arguments, server) = ([space.as_bytes().to_vec()], Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let script = &server.scripts.cache_clear;
            server.cached.run::<String>(script, &arguments, Durability::Local).await?;
            Ok(())
        }))
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}

impl RecordStore for RedisStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        let (space, key, server) = (key.space.to_owned(), key.key.to_owned(), Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let command = records::read_command(&server.records.tag, &space, &key);
            let (value, version) = server.records.link.read(&command).await?;
            records::record_of(RecordKey { space: &space, key: &key }, value, version)
        }))
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        if let Err(error) = check_size(write.value) {
            return Box::pin(async move { Err(error) });
        }
        let ConditionalWrite { key, value, expected_version, forget_at, account, when_full } = write;
        let (server, value) = (Arc::clone(&self.server), value.to_string());
        let capacity = server.capacity.records;
        let arguments = [
            time_argument(server.time(now)),
            number(capacity),
            key.space.as_bytes().to_vec(),
            key.key.as_bytes().to_vec(),
            value.clone().into_bytes(),
            expected_version.map(number).unwrap_or_default(),
            forget_at.map(|at| number(records::expiry_micros(at))).unwrap_or_default(),
            account_argument(&account),
            number(units(value.len())),
            number(u8::from(when_full == OnQuotaExceeded::EvictOldest)),
        ];
        let written = self.run(async move {
            let script = &server.scripts.write_record;
            let reply: String = server.records.run(script, &arguments, Durability::Replicated).await?;
            match reply.as_str() {
                "written" => Ok(Ok(true)),
                "conflict" => Ok(Ok(false)),
                "full" => Ok(Err(quota_error(capacity))),
                _ => Err(RedisStoreError::Damaged("the server gave an unexpected answer".to_owned())),
            }
        });
        Box::pin(async move { written.await? })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        let from = match after {
            Some(key) => [b"(", key.as_bytes()].concat(),
            None => b"-".to_vec(),
        };
        let arguments =
            [space.as_bytes().to_vec(), from, number(limit.min(MAX_PAGE)), number(MAX_PAGE_BYTES)];
        let (space, server) = (space.to_owned(), Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let script = &server.scripts.read_page;
            let reply: Vec<String> = server.records.run(script, &arguments, Durability::Local).await?;
            records::page_of(&space, &reply)
        }))
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        if keys.is_empty() {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let (space, keys, server) = (space.to_owned(), keys.to_vec(), Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let Server { records: pool, .. } = &*server;
            // Sent at once, and answered in one round trip.
            let commands: Vec<_> =
                keys.iter().map(|key| records::read_command(&pool.tag, &space, key)).collect();
            let replies =
                futures_util::future::try_join_all(commands.iter().map(|command| pool.link.read(command)));
            let rows: Vec<(Option<String>, Option<u64>)> = replies.await?;
            let rows = keys.iter().zip(rows);
            rows.map(|(key, (value, version))| {
                records::record_of(RecordKey { space: &space, key }, value, version)
            })
            .collect()
        }))
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        let keys: Vec<_> = keys.iter().map(|key| (key.space.to_owned(), key.key.to_owned())).collect();
        let names = keys.iter().flat_map(|(space, key)| [space.as_bytes().to_vec(), key.as_bytes().to_vec()]);
        let mut arguments = vec![HEXLOWER.encode(account.caller()).into_bytes()];
        arguments.extend(names);
        let server = Arc::clone(&self.server);
        Box::pin(self.run(async move {
            let script = &server.scripts.read_batch;
            let reply: Vec<String> = server.records.run(script, &arguments, Durability::Local).await?;
            records::batch_of(&keys, reply)
        }))
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        let (caller, server) = (HEXLOWER.encode(account.caller()), Arc::clone(&self.server));
        Box::pin(self.run(async move {
            let Server { records: pool, .. } = &*server;
            let (mut own, mut anyone) = (cmd("SISMEMBER"), cmd("EXISTS"));
            own.arg(format!("{}:lost", pool.tag)).arg(caller);
            anyone.arg(format!("{}:anyone_lost", pool.tag));
            let (own, anyone): (bool, bool) =
                tokio::try_join!(pool.link.read(&own), pool.link.read(&anyone))?;
            Ok(own || anyone)
        }))
    }

    fn remove_expired(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let server = Arc::clone(&self.server);
        Box::pin(self.run(async move { server.remove_expired(now).await }))
    }

    fn announce_approval(&self, key: &str) {
        let (key, server) = (key.to_owned(), Arc::clone(&self.server));
        // It runs to its end. If it fails, listeners find the change when they read the store.
        drop(self.run(async move { server.announce_approval(&key).await }));
    }

    fn announcements(&self) -> Announcements {
        self.server.announcer.subscribe()
    }

    fn is_shared(&self) -> bool {
        true
    }
}
