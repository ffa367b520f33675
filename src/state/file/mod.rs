//! The store in a file: what is taken, kept and recorded outlives the process, and several processes share it.

mod cache;
mod failure;
mod limits;
mod open;
mod owners;
mod place;
mod records;
mod schema;
mod thread;
mod usage;
mod work;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use jiff::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::cache::Place as CachePlace;
use self::failure::Failure;
pub use self::open::FileStoreError;
use self::owners::Owner;
use self::place::Place;
use self::records::Written;
use self::thread::{Keeper, Message, Slots};
use self::work::{Asked, Needs};
use super::cache::fits;
use super::limits::{cost, since_epoch};
use super::records::check_size;
use super::shares::{Capacity, units};
use crate::host::{
    Account, BoxFuture, CacheEntry, CacheSpace, Lookup, Page, Record, RecordKey, Refusal, StateStore,
    StoreError, StoreFuture, Take, Write,
};

/// The state of policies in a file, for every process of this machine that opens it. An SQLite database on a local disk: file
/// systems of a network do not keep its locks.
///
/// Limits are exact, however many processes take at once. A record that was written, and what was taken of a limit, is on the
/// disk when that is answered; cached results may be lost when the machine goes down. A slot belongs to the open store that
/// took it: it comes free when the store is dropped and when its process ends, however it ends.
///
/// The file is made readable and writable for its owner only, as are the ones beside it: `-wal` and `-shm`, of SQLite, and
/// one `-owner-…` for each open store. A file that other users can write, or that is in a directory which other users can
/// write, is refused; on Windows that is not examined, so keep it in a directory whose access list names only the user of the
/// service. It is to be copied and moved only while nobody has it open, or with tools of SQLite.
///
/// The file is bounded to 4 GiB, and what it remembers to [`CAPACITY`](Self::CAPACITY), of which each account has a share as in a
/// [`MemoryStore`](super::MemoryStore). Where it can't be written, is held by another process for more than four seconds, was
/// removed or is damaged, each answer is an error; the store goes on when that is over.
///
/// All work is done by one thread, which ends when the store is dropped. Futures need no particular runtime.
pub struct FileStore {
    path: PathBuf,
    is_durable: bool,
    messages: Sender<Message>,
    slots: Arc<Slots>,
    thread: Option<JoinHandle<()>>,
}

/// How much goes into a file.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Whether what is written is on the disk when that is answered.
    is_durable: bool,
    capacity: Capacity,
    /// Of 4 KiB.
    pages: u32,
}

/// What stays the same for as long as a store is open.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    place: Place,
    owner: Owner,
    capacity: Capacity,
}

impl FileStore {
    /// How much it remembers, unless that is chosen: 200,000 limits, 2 GiB of records and 1 GiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 200_000, records: 524_288, cached: 262_144 };

    /// Opens a state store, or makes one where there is no file, or an empty one.
    ///
    /// # Errors
    /// When the file is another program's, of a newer version, damaged, no file, or can't be read, written or made.
    pub fn open(path: &Path) -> Result<Self, FileStoreError> {
        Self::open_with(path, Self::CAPACITY)
    }

    /// The same with another capacity. All processes that share the file are to name the same one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(path: &Path, capacity: Capacity) -> Result<Self, FileStoreError> {
        Self::bounded(path, Bounds { is_durable: true, capacity, pages: 1 << 20 })
    }

    /// Opens the anchor of a [`SealedStore`](super::SealedStore), or makes one where there is no file. What it holds outlives
    /// processes; what was written last may be lost when the machine goes down, so that nobody waits for the disk.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_anchor(path: &Path) -> Result<Self, FileStoreError> {
        Self::open_anchor_with(path, Self::CAPACITY)
    }

    /// The same with another capacity: the one of the store that it is the anchor of.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_anchor_with(path: &Path, capacity: Capacity) -> Result<Self, FileStoreError> {
        Self::bounded(path, Bounds { is_durable: false, capacity, pages: 1 << 20 })
    }

    fn bounded(path: &Path, bounds: Bounds) -> Result<Self, FileStoreError> {
        let (database, home) = open::open(path, bounds)?;
        let path = home.path.clone();
        let (messages, inbox) = mpsc::channel();
        let slots = Arc::new(Slots::default());
        let is_durable = bounds.is_durable;
        let keeper = Keeper::new(database, home, Arc::clone(&slots));
        let thread = std::thread::Builder::new()
            .name("callgate-store".to_owned())
            .spawn(move || keeper.serve(&inbox))
            .map_err(|error| FileStoreError::no_thread(&path, &error))?;
        Ok(Self { path, is_durable, messages, slots, thread: Some(thread) })
    }

    /// Has work done, and its answer made of what it came to when that is kept.
    async fn ask<T: Send + 'static, U: Send + 'static>(
        &self,
        needs: Needs,
        run: impl FnOnce(&Connection, &Home) -> Result<T, Failure> + Send + 'static,
        kept: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<U, StoreError> {
        let needs = if self.is_durable { needs } else { needs.min(Needs::Writing) };
        let (reply, answer) = oneshot::channel();
        let work = Asked { needs, run: Some(run), done: None, kept, reply };
        let ended = || StoreError::Unavailable("the state store was closed; start again".to_owned());
        self.messages.send(Message::Work(Box::new(work))).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

/// Slots that were taken. They are given back where nobody takes the answer any more.
struct Taken {
    answer: Result<Vec<Refusal>, StoreError>,
    slots: Vec<String>,
    messages: Sender<Message>,
}

impl Taken {
    fn arrive(mut self) -> Result<Vec<Refusal>, StoreError> {
        self.slots.clear();
        std::mem::replace(&mut self.answer, Ok(Vec::new()))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for key in self.slots.drain(..) {
            let _ = self.messages.send(Message::GiveBack(key));
        }
    }
}

/// One who waits for a slot.
struct Waiting<'a>(&'a Slots);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Without what it holds, which may be secret.
impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl StateStore for FileStore {
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        Box::pin(async move {
            let takes: Vec<Take> = takes.to_vec();
            if takes.iter().all(|take| cost(&take.allowance, take.cost) == 0) {
                return Ok(Vec::new());
            }
            let slots: Vec<String> =
                takes.iter().filter(|take| limits::is_slot(take)).map(|take| take.key.clone()).collect();
            // Who holds a slot is gone when the machine goes down.
            let needs = if slots.len() == takes.len() { Needs::Writing } else { Needs::Keeping };
            let messages = self.messages.clone();
            let taken = self.ask(
                needs,
                move |database, home| limits::take(database, home, since_epoch(now), &takes),
                move |answer| {
                    let all_taken = answer.as_ref().is_ok_and(Vec::is_empty);
                    Taken { answer, slots: if all_taken { slots } else { Vec::new() }, messages }
                },
            );
            taken.await?.arrive()
        })
    }

    fn give_back(&self, key: &str) {
        let _ = self.messages.send(Message::GiveBack(key.to_owned()));
    }

    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        // Made here and not when first polled: from now on no waking is missed.
        let freed = self.slots.freed.notified();
        let others = self.slots.waiting.fetch_add(1, Ordering::SeqCst);
        let waiting = Waiting(&self.slots);
        if others == 0 {
            let _ = self.messages.send(Message::Watch);
        }
        Box::pin(async move {
            freed.await;
            drop(waiting);
        })
    }

    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup> {
        let place = CachePlace::new(space, key);
        Box::pin(self.ask(
            Needs::Writing,
            move |database, _| cache::get(database, now, &place),
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
        let place = CachePlace::new(space, key);
        Box::pin(async move {
            let size = fits(&place.key, &entry.output);
            let put = move |database: &Connection, home: &Home| {
                let entry = (size.map(|_| &entry), units(size.unwrap_or(0)));
                cache::put(database, home.capacity.cached, &place, entry, generation)
            };
            self.ask(Needs::Writing, put, |()| ()).await
        })
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        let space = space.to_owned();
        // A result that was to be forgotten must not come back when the machine does.
        Box::pin(self.ask(Needs::Keeping, move |database, _| cache::clear(database, &space), |()| ()))
    }

    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        let (space, key) = (key.space.to_owned(), key.key.to_owned());
        let get = move |database: &Connection, _: &Home| {
            records::get(database, RecordKey { space: &space, key: &key })
        };
        Box::pin(self.ask(Needs::Reading, get, |record| record))
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: Write<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_size(write.value)?;
            let written = Written {
                space: write.key.space.to_owned(),
                key: write.key.key.to_owned(),
                value: write.value.to_string(),
                over: write.over,
                forget_at: write.forget_at,
                account: write.account,
                when_full: write.when_full,
            };
            let write = move |database: &Connection, home: &Home| {
                records::write(database, home.capacity.records, now, &written)
            };
            self.ask(Needs::Keeping, write, |written| written).await?
        })
    }

    fn records<'a>(&'a self, space: &'a str, after: Option<&'a str>, limit: usize) -> StoreFuture<'a, Page> {
        let (space, after) = (space.to_owned(), after.map(str::to_owned));
        let page =
            move |database: &Connection, _: &Home| records::page(database, &space, after.as_deref(), limit);
        Box::pin(self.ask(Needs::Reading, page, |page| page))
    }

    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool> {
        let account = *account;
        let has_lost = move |database: &Connection, _: &Home| records::has_lost(database, &account);
        Box::pin(self.ask(Needs::Reading, has_lost, |lost| lost))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
