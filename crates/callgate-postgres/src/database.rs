//! A database that a store uses: its connections, and the transactions of store operations.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadpool_postgres::{Pool as Connections, Transaction};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::connection::PostgresSettings;
use super::error::{PostgresError, opening_message};
use super::limits;
use super::records::{self, SerializedWrite};
use super::schema::{self, slot_channel};
use super::slot_lease;
use super::transaction::begin;
use super::usage::Pool;
use callgate::host::{LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};
use callgate::state::capacity::Capacity;
use callgate::state::limit_algorithms::since_epoch;

/// A database, as one open store uses it.
pub(crate) struct Database {
    pub(crate) settings: PostgresSettings,
    pub(crate) pool: Connections,
    /// Its id among the owners of slots.
    owner: AtomicI64,
    pub(crate) slots_freed: Notify,
    /// The slots that were released and are still to be written: by the next transaction on limits, so that none of this store overtakes a
    /// release.
    released: Mutex<Vec<String>>,
    pub(crate) capacity: Capacity,
}

/// Released slots that a transaction writes. If it is not committed, they are still to be written.
struct WrittenReleases<'s> {
    store: &'s Database,
    keys: Vec<String>,
}

impl Drop for WrittenReleases<'_> {
    fn drop(&mut self) {
        self.store.released().append(&mut self.keys);
    }
}

impl Database {
    pub(crate) fn owner(&self) -> i64 {
        self.owner.load(Ordering::SeqCst)
    }

    pub(crate) fn set_owner(&self, owner: i64) {
        self.owner.store(owner, Ordering::SeqCst);
    }
}

impl Database {
    pub(crate) async fn open(settings: PostgresSettings, capacity: Capacity) -> Result<Self, String> {
        let pool = settings.pool()?;
        let failed = |error: PostgresError| opening_message(&error);
        let mut database = pool.get().await.map_err(|error| failed(error.into()))?;
        schema::migrate(&mut database, &settings.schema).await.map_err(failed)??;
        let owner = slot_lease::register(&database).await.map_err(failed)?;
        slot_lease::remove_expired(&database, owner).await.map_err(failed)?;
        drop(database);
        let (owner, slots_freed, released) = (AtomicI64::new(owner), Notify::new(), Mutex::default());
        Ok(Self { settings, pool, owner, slots_freed, released, capacity })
    }

    pub(crate) async fn acquire(
        &self,
        now: Timestamp,
        takes: &[LimitAcquisition],
    ) -> Result<Result<Vec<LimitRefusal>, StoreError>, PostgresError> {
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Limits).await?;
        let mut releases = self.write_releases(&transaction).await?;
        let answer =
            limits::acquire(&transaction, self.capacity.limits, since_epoch(now), takes, self.owner())
                .await?;
        transaction.commit().await?;
        releases.keys.clear();
        Ok(answer)
    }

    pub(crate) async fn correct(
        &self,
        now: Timestamp,
        corrections: &[LimitCorrection],
    ) -> Result<Result<(), StoreError>, PostgresError> {
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Limits).await?;
        let answer =
            limits::correct(&transaction, self.capacity.limits, since_epoch(now), corrections).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    pub(crate) fn released(&self) -> MutexGuard<'_, Vec<String>> {
        // Every update is a single step, so a panic elsewhere leaves the list consistent.
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the releases that no other transaction has written.
    pub(crate) async fn flush_releases(&self) -> Result<(), PostgresError> {
        if self.released().is_empty() {
            return Ok(());
        }
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Limits).await?;
        let mut releases = self.write_releases(&transaction).await?;
        transaction.commit().await?;
        releases.keys.clear();
        Ok(())
    }

    /// Writes the releases that are still to be written, and notifies all hosts with the commit.
    async fn write_releases(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<WrittenReleases<'_>, PostgresError> {
        let releases = WrittenReleases { store: self, keys: std::mem::take(&mut *self.released()) };
        for key in &releases.keys {
            slot_lease::release_slot(transaction, self.owner(), key).await?;
        }
        if !releases.keys.is_empty() {
            // The schema's name has letters, digits and `_` only.
            transaction.batch_execute(&format!("NOTIFY {}", slot_channel(&self.settings.schema))).await?;
        }
        Ok(releases)
    }

    pub(crate) async fn write_record(
        &self,
        now: Timestamp,
        written: &SerializedWrite,
    ) -> Result<Result<bool, StoreError>, PostgresError> {
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Records).await?;
        let answer = records::write(&transaction, self.capacity.records, now, written).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    /// Removes all expired records. Returns how many.
    pub(crate) async fn remove_expired(&self, now: Timestamp) -> Result<u64, PostgresError> {
        let mut removed = 0;
        loop {
            let mut database = self.pool.get().await?;
            let transaction = begin(&mut database, Pool::Records).await?;
            let more = records::remove_expired(&transaction, now, "", "").await?;
            transaction.commit().await?;
            removed += more as u64;
            if more == 0 {
                return Ok(removed);
            }
        }
    }

    pub(crate) async fn close(&self) -> Result<(), PostgresError> {
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Limits).await?;
        slot_lease::unregister(&transaction, self.owner()).await?;
        transaction.batch_execute(&format!("NOTIFY {}", slot_channel(&self.settings.schema))).await?;
        transaction.commit().await?;
        Ok(())
    }
}
