//! The writer thread, which owns the database. Concurrent jobs share one transaction, and so one wait for the disk.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Notify;

use super::error::SqliteStoreError;
use super::file_identity::FileIdentity;
use super::jobs::{Durability, Job};
use super::{DatabaseFile, slot_owners};
use callgate::host::StoreError;

/// The maximum number of jobs in one transaction.
const MAX_JOBS: usize = 128;

/// How often the file is checked for changes of other processes while someone waits for a slot.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// One of this many checks also looks for processes that ended without releasing their slots.
const CHECKS_PER_OWNER_CHECK: u32 = 20;

/// A message to the thread.
pub enum ThreadMessage {
    Job(Box<dyn Job>),
    ReleaseSlot(String),
    /// Someone waits for a slot.
    WatchSlots,
    Stop,
}

/// Shared by the waiters for slots and the thread.
#[derive(Debug, Default)]
pub struct SlotWaiters {
    pub freed: Notify,
    pub waiting: AtomicUsize,
}

/// The database and its state, owned by the thread.
pub struct WriterThread {
    pub database: Connection,
    pub home: DatabaseFile,
    pub slots: Arc<SlotWaiters>,
    /// Released slots that are not written yet; retried until they are.
    released: Vec<String>,
    /// The durability that the connection is set to.
    durability: Option<Durability>,
    /// The latest data version that was seen.
    data_version: Option<i64>,
    checks: u32,
}

impl WriterThread {
    pub fn new(database: Connection, home: DatabaseFile, slots: Arc<SlotWaiters>) -> Self {
        Self { database, home, slots, released: Vec::new(), durability: None, data_version: None, checks: 0 }
    }

    /// Runs until [`ThreadMessage::Stop`]. No failure ends the thread.
    pub fn run(mut self, messages: &Receiver<ThreadMessage>) {
        let mut ends = false;
        while !ends {
            let mut jobs = Vec::new();
            let restless = !self.released.is_empty() || self.slots.waiting.load(Ordering::SeqCst) > 0;
            let first = if restless {
                match messages.recv_timeout(POLL_INTERVAL) {
                    Err(RecvTimeoutError::Disconnected) => break,
                    message => message.ok(),
                }
            } else {
                match messages.recv() {
                    Err(_) => break,
                    message => message.ok(),
                }
            };
            for message in first.into_iter().chain(messages.try_iter().take(MAX_JOBS)) {
                match message {
                    ThreadMessage::Job(job) => jobs.push(job),
                    ThreadMessage::ReleaseSlot(key) => self.released.push(key),
                    ThreadMessage::WatchSlots => {}
                    ThreadMessage::Stop => ends = true,
                }
            }
            self.release_slots();
            self.run_jobs(jobs);
            if self.slots.waiting.load(Ordering::SeqCst) > 0 {
                self.check_other_processes();
            }
        }
        self.unregister();
    }

    fn release_slots(&mut self) {
        let keys = mem::take(&mut self.released);
        if keys.is_empty() {
            return;
        }
        let written = self.transaction(Durability::ProcessCrash, |database, home| {
            keys.iter()
                .try_for_each(|key| home.owner.release_slot(database, key))
                .map_err(SqliteStoreError::from)
        });
        match written {
            Ok(()) => self.slots.freed.notify_waiters(),
            Err(_) => self.released = keys,
        }
    }

    /// Runs jobs in one transaction, each in its own savepoint, and delivers their results after the commit.
    fn run_jobs(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let Some(durability) = jobs.iter().map(|job| job.durability()).max() else { return };
        let transaction_result = self.transaction(durability, |database, home| {
            // A job is skipped if its caller gave up while it waited for the file.
            for job in jobs.iter_mut().filter(|job| !job.is_abandoned()) {
                database.execute_batch("SAVEPOINT work")?;
                let stays = job.run(database, home);
                // Some failures, such as a full disk, roll back the whole transaction.
                if database.is_autocommit() {
                    return Err(SqliteStoreError::Store(
                        "the transaction that this operation shared with others failed; try again".to_owned(),
                    ));
                }
                if !stays {
                    database.execute_batch("ROLLBACK TO work")?;
                }
                database.execute_batch("RELEASE work")?;
            }
            Ok(())
        });
        for job in jobs {
            job.complete(transaction_result.clone());
        }
    }

    /// Runs one transaction; a failure rolls it back.
    fn transaction(
        &mut self,
        durability: Durability,
        run: impl FnOnce(&Connection, &DatabaseFile) -> Result<(), SqliteStoreError>,
    ) -> Result<(), StoreError> {
        let done = self.attempt(durability, run);
        done.map_err(|failure| failure.to_store_error())
    }

    fn attempt(
        &mut self,
        durability: Durability,
        run: impl FnOnce(&Connection, &DatabaseFile) -> Result<(), SqliteStoreError>,
    ) -> Result<(), SqliteStoreError> {
        self.check_file_identity()?;
        if durability > Durability::ReadOnly && self.durability != Some(durability) {
            let level = if durability == Durability::PowerFailure { "FULL" } else { "NORMAL" };
            self.database.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        let behavior = match durability {
            Durability::ReadOnly => TransactionBehavior::Deferred,
            Durability::ProcessCrash | Durability::PowerFailure => TransactionBehavior::Immediate,
        };
        let transaction = self.database.transaction_with_behavior(behavior)?;
        run(&transaction, &self.home)?;
        transaction.commit()?;
        // The file may have been moved while this was written.
        self.check_file_identity()
    }

    fn check_file_identity(&self) -> Result<(), SqliteStoreError> {
        if FileIdentity::from_path(&self.home.path) == Some(self.home.identity) {
            return Ok(());
        }
        Err(SqliteStoreError::Store(
            "its file was removed or replaced; put it back, or restart with another file".to_owned(),
        ))
    }

    /// Wakes the waiters if another process has written, or has ended.
    fn check_other_processes(&mut self) {
        let seen: Option<i64> = self.database.query_row("PRAGMA data_version", (), |row| row.get(0)).ok();
        if seen.is_none() || seen != self.data_version {
            self.slots.freed.notify_waiters();
        }
        self.data_version = seen;
        self.checks = (self.checks + 1) % CHECKS_PER_OWNER_CHECK;
        if self.checks == 0 && self.remove_dead_owners() {
            self.slots.freed.notify_waiters();
        }
    }

    fn remove_dead_owners(&mut self) -> bool {
        let dead = slot_owners::dead_owners(&self.database, &self.home.path, self.home.owner.id);
        if dead.is_ok_and(|dead| dead.is_empty()) {
            return false;
        }
        let mut removed = false;
        let done = self.transaction(Durability::ProcessCrash, |database, home| {
            removed = slot_owners::remove_dead_owners(database, &home.path, home.owner.id)?;
            Ok(())
        });
        removed && done.is_ok()
    }

    /// Removes this owner. If that fails, other processes notice that its lock is gone.
    fn unregister(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let _ = self.database.busy_timeout(PATIENCE);
        let _ = self
            .transaction(Durability::ProcessCrash, |database, home| Ok(home.owner.unregister(database)?));
    }
}
