//! The SQLite store: limits, caches and records in a file that is persistent and shared by processes.

mod cache;
mod error;
mod limits;
mod open;
mod slot_owners;
mod file_identity;
mod records;
mod schema;
mod store_url;
mod writer_thread;
mod usage;
mod jobs;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::cache::EntryKey as CachePlace;
use self::error::SqliteStoreError;
use self::file_identity::FileIdentity;
use self::jobs::{ClosureJob, Durability};
pub use self::open::SqliteOpenError;
use self::records::SerializedWrite;
use self::slot_owners::SlotOwner;
pub use self::store_url::{StoreUrlError, file_path, open as open_store};
use self::writer_thread::{SlotWaiters, ThreadMessage, WriterThread};
use callgate::host::{
    Account, BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, Record, RecordKey, RecordPage, RecordStore, StoreError,
    StoreFuture,
};
use callgate::state::cache::entry_size;
use callgate::state::capacity::{Capacity, units};
use callgate::state::limit_algorithms::{cost, since_epoch};
use callgate::state::records::check_size;

/// A state store in a file, for every process of this machine that opens it. The file is an SQLite database on a local
/// disk; network file systems do not support its locks.
///
/// Limits are exact, whatever the concurrency of processes. A written record and an acquired limit are on the disk before
/// the operation returns; cached results may be lost in a power failure. A slot belongs to the open store that acquired it:
/// it is released when the store is dropped and when its process ends for any reason.
///
/// The file is created readable and writable only for its owner, as are the files beside it: SQLite's `-wal` and `-shm`,
/// and one `-owner-…` for each open store. A file or a directory that other users can write is refused; this is not checked on Windows, so use a
/// directory whose access list names only the user of the service. Copy or move the file only while it is not open, or with
/// SQLite's tools.
///
/// The file is bounded to 4 GiB, and its content to [`CAPACITY`](Self::CAPACITY), of which each account has a share as in a
/// [`MemoryStore`](callgate::state::MemoryStore). While the file can't be written, is locked by another process for more than four
/// seconds, was removed or is damaged, every operation is an error; the store recovers when the cause is gone.
///
/// One thread does all the work and ends when the store is dropped. The futures need no particular runtime.
pub struct SqliteStore {
    path: PathBuf,
    is_durable: bool,
    messages: Sender<ThreadMessage>,
    slots: Arc<SlotWaiters>,
    thread: Option<JoinHandle<()>>,
}

/// The durability and bounds of a file.
#[derive(Clone, Copy, Debug)]
struct FileBounds {
    /// Whether a write is on the disk before its operation returns.
    is_durable: bool,
    capacity: Capacity,
    /// The maximum size, in pages of 4 KiB.
    max_pages: u32,
}

/// What stays the same while a store is open.
#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    identity: FileIdentity,
    owner: SlotOwner,
    capacity: Capacity,
}

impl SqliteStore {
    /// The default capacity: 200,000 limits, 2 GiB of records and 1 GiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 200_000, records: 524_288, cached: 262_144 };

    /// Opens a store. A missing file is created, and an empty file is initialised.
    ///
    /// # Errors
    /// If the file belongs to another program, has a newer format, is damaged or not a file, or can't be read, written or
    /// created.
    pub fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_with(path, Self::CAPACITY)
    }

    /// Opens a store with this capacity. All processes that share the file must use the same one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(path: &Path, capacity: Capacity) -> Result<Self, SqliteOpenError> {
        Self::open_bounded(path, FileBounds { is_durable: true, capacity, max_pages: 1 << 20 })
    }

    /// Opens the anchor of a [`SealedStore`](callgate::state::SealedStore). A missing file is created. Its content is persistent; the
    /// last writes may be lost in a power failure, because no operation waits for the disk.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_anchor(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_anchor_with(path, Self::CAPACITY)
    }

    /// Opens an anchor with this capacity, which must be that of its store.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_anchor_with(path: &Path, capacity: Capacity) -> Result<Self, SqliteOpenError> {
        Self::open_bounded(path, FileBounds { is_durable: false, capacity, max_pages: 1 << 20 })
    }

    fn open_bounded(path: &Path, bounds: FileBounds) -> Result<Self, SqliteOpenError> {
        let (database, home) = open::open(path, bounds)?;
        let path = home.path.clone();
        let (messages, inbox) = mpsc::channel();
        let slots = Arc::new(SlotWaiters::default());
        let is_durable = bounds.is_durable;
        let keeper = WriterThread::new(database, home, Arc::clone(&slots));
        let thread = std::thread::Builder::new()
            .name("callgate-store".to_owned())
            .spawn(move || keeper.run(&inbox))
            .map_err(|error| SqliteOpenError::thread_failed(&path, &error))?;
        Ok(Self { path, is_durable, messages, slots, thread: Some(thread) })
    }

    /// Runs a job on the thread, and converts its result after the commit.
    async fn run_job<T: Send + 'static, U: Send + 'static>(
        &self,
        durability: Durability,
        run: impl FnOnce(&Connection, &DatabaseFile) -> Result<T, SqliteStoreError> + Send + 'static,
        convert: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<U, StoreError> {
        let durability = if self.is_durable { durability } else { durability.min(Durability::ProcessCrash) };
        let (reply, answer) = oneshot::channel();
        let job = ClosureJob { durability, run: Some(run), result: None, convert, reply };
        let ended = || StoreError::Unavailable("the state store was closed; restart the process".to_owned());
        self.messages.send(ThreadMessage::Job(Box::new(job))).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

/// Acquired slots. They are released if the caller drops the future before it gets them.
struct AcquiredSlots {
    answer: Result<Vec<LimitRefusal>, StoreError>,
    slots: Vec<String>,
    messages: Sender<ThreadMessage>,
}

impl AcquiredSlots {
    fn into_answer(mut self) -> Result<Vec<LimitRefusal>, StoreError> {
        self.slots.clear();
        std::mem::replace(&mut self.answer, Ok(Vec::new()))
    }
}

impl Drop for AcquiredSlots {
    fn drop(&mut self) {
        for key in self.slots.drain(..) {
            let _ = self.messages.send(ThreadMessage::ReleaseSlot(key));
        }
    }
}

/// A waiter for a slot, counted until dropped.
struct SlotWaiter<'a>(&'a SlotWaiters);

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Omits the content, which may be secret.
impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        let _ = self.messages.send(ThreadMessage::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl LimitStore for SqliteStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move {
            let takes: Vec<LimitAcquisition> = takes.to_vec();
            if takes.iter().all(|take| cost(&take.allowance, take.cost) == 0) {
                return Ok(Vec::new());
            }
            let slots: Vec<String> =
                takes.iter().filter(|take| limits::is_slot(take)).map(|take| take.key.clone()).collect();
            // After a power failure the holders of slots are gone, so slots need not be on the disk.
            let durability =
                if slots.len() == takes.len() { Durability::ProcessCrash } else { Durability::PowerFailure };
            let messages = self.messages.clone();
            let acquired = self.run_job(
                durability,
                move |database, home| limits::acquire(database, home, since_epoch(now), &takes),
                move |answer| {
                    let all_acquired = answer.as_ref().is_ok_and(Vec::is_empty);
                    AcquiredSlots { answer, slots: if all_acquired { slots } else { Vec::new() }, messages }
                },
            );
            acquired.await?.into_answer()
        })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let corrections = corrections.to_vec();
            let corrected = self.run_job(
                Durability::PowerFailure,
                move |database, home| limits::correct(database, home, since_epoch(now), &corrections),
                std::convert::identity,
            );
            corrected.await?
        })
    }

    fn release(&self, key: &str) {
        let _ = self.messages.send(ThreadMessage::ReleaseSlot(key.to_owned()));
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        // Created here and not on the first poll: no notification is missed from now on.
        let freed = self.slots.freed.notified();
        let others = self.slots.waiting.fetch_add(1, Ordering::SeqCst);
        let waiting = SlotWaiter(&self.slots);
        if others == 0 {
            let _ = self.messages.send(ThreadMessage::WatchSlots);
        }
        Box::pin(async move {
            freed.await;
            drop(waiting);
        })
    }

    fn exposes_limits(&self) -> bool {
        true
    }
}

impl CacheStore for SqliteStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        let entry_key = CachePlace::new(space, key);
        Box::pin(self.run_job(
            Durability::ProcessCrash,
            move |database, _| cache::get(database, now, &entry_key),
            |lookup| lookup,
        ))
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        let entry_key = CachePlace::new(space, key);
        Box::pin(async move {
            let size = entry_size(&entry_key.key, &entry.output);
            let put = move |database: &Connection, home: &DatabaseFile| {
                let entry = (size.map(|_| &entry), units(size.unwrap_or(0)));
                cache::put(database, home.capacity.cached, &entry_key, entry, generation)
            };
            self.run_job(Durability::ProcessCrash, put, |()| ()).await
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        let space = space.to_owned();
        // A cleared result must not come back after a power failure.
        Box::pin(self.run_job(
            Durability::PowerFailure,
            move |database, _| cache::clear(database, &space),
            |()| (),
        ))
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}

impl RecordStore for SqliteStore {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        let (space, key) = (key.space.to_owned(), key.key.to_owned());
        let get = move |database: &Connection, _: &DatabaseFile| {
            records::get(database, RecordKey { space: &space, key: &key })
        };
        Box::pin(self.run_job(Durability::ReadOnly, get, |record| record))
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_size(write.value)?;
            let written = SerializedWrite {
                space: write.key.space.to_owned(),
                key: write.key.key.to_owned(),
                value: write.value.to_string(),
                expected_version: write.expected_version,
                forget_at: write.forget_at,
                account: write.account,
                when_full: write.when_full,
            };
            let write = move |database: &Connection, home: &DatabaseFile| {
                records::write(database, home.capacity.records, now, &written)
            };
            self.run_job(Durability::PowerFailure, write, |written| written).await?
        })
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        let (space, after) = (space.to_owned(), after.map(str::to_owned));
        let page = move |database: &Connection, _: &DatabaseFile| {
            records::page(database, &space, after.as_deref(), limit)
        };
        Box::pin(self.run_job(Durability::ReadOnly, page, |page| page))
    }

    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        let (space, keys) = (space.to_owned(), keys.to_vec());
        let get = move |database: &Connection, _: &DatabaseFile| {
            keys.iter().map(|key| records::get(database, RecordKey { space: &space, key })).collect()
        };
        Box::pin(self.run_job(Durability::ReadOnly, get, |records| records))
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        let account = *account;
        let has_lost = move |database: &Connection, _: &DatabaseFile| records::has_lost(database, &account);
        Box::pin(self.run_job(Durability::ReadOnly, has_lost, |lost| lost))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
