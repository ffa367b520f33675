//! The records of a store: each operation is a job on the store's runtime.

use std::sync::Arc;

use jiff::Timestamp;

use super::records::{self, SerializedWrite};
use super::store::PostgresStore;
use callgate::host::{
    Account, Announcements, ConditionalWrite, Record, RecordBatch, RecordKey, RecordPage, RecordStore,
    StoreFuture,
};
use callgate::state::records::check_size;

impl RecordStore for PostgresStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        let (space, key, store) = (key.space.to_owned(), key.key.to_owned(), Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::get(&database, RecordKey { space: &space, key: &key }).await
        }))
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        if let Err(error) = check_size(write.value) {
            return Box::pin(async move { Err(error) });
        }
        let written = SerializedWrite {
            space: write.key.space.to_owned(),
            key: write.key.key.to_owned(),
            value: write.value.to_string(),
            expected_version: write.expected_version,
            forget_at: write.forget_at,
            account: write.account,
            when_full: write.when_full,
        };
        let store = Arc::clone(&self.shared);
        let written = self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::write(&database, store.capacity.records, now, &written).await
        });
        Box::pin(async move { written.await? })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        let (space, after, store) = (space.to_owned(), after.map(str::to_owned), Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::page(&database, &space, after.as_deref(), limit).await
        }))
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        let (space, keys, store) = (space.to_owned(), keys.to_vec(), Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::get_all(&database, &space, &keys).await
        }))
    }

    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        let keys: Vec<_> = keys.iter().map(|key| (key.space.to_owned(), key.key.to_owned())).collect();
        let (account, store) = (*account, Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::batch(&database, &keys, &account).await
        }))
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        let (account, store) = (*account, Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            records::has_lost(&database, &account).await
        }))
    }

    fn remove_expired(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let store = Arc::clone(&self.shared);
        Box::pin(self.run(async move { store.remove_expired(now).await }))
    }

    fn announce_approval(&self, key: &str) {
        let (key, store) = (key.to_owned(), Arc::clone(&self.shared));
        // It runs to its end. If it fails, listeners find the change when they read the store.
        drop(self.run_bounded(async move { store.announce_approval(&key).await }));
    }

    fn announcements(&self) -> Announcements {
        self.shared.announcer.subscribe()
    }

    fn is_shared(&self) -> bool {
        true
    }
}
