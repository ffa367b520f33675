//! The thread that owns the file. Work that waits at the same time is done in one transaction, so that all of it shares
//! one wait for the disk.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Notify;

use super::failure::Failure;
use super::place::Place;
use super::work::{Needs, Work};
use super::{Home, owners};
use crate::host::StoreError;

/// How much work is done in one transaction.
const TOGETHER: usize = 128;

/// How often it is looked what other processes did, while someone waits for a slot.
const PAUSE: Duration = Duration::from_millis(25);

/// Of so many looks, one is for processes that ended without giving back what they held.
const LOOKS: u32 = 20;

/// What the thread is told.
pub enum Message {
    Work(Box<dyn Work>),
    GiveBack(String),
    /// Someone waits for a slot.
    Watch,
    End,
}

/// What those who wait for slots and the thread know of one another.
#[derive(Debug, Default)]
pub struct Slots {
    pub freed: Notify,
    pub waiting: AtomicUsize,
}

/// The file, in the hands of its thread.
pub struct Keeper {
    pub database: Connection,
    pub home: Home,
    pub slots: Arc<Slots>,
    /// What was given back and is not written yet. It is tried until it is.
    given_back: Vec<String>,
    /// What the connection is told to need.
    needs: Option<Needs>,
    /// The version of the file that was seen last.
    seen: Option<i64>,
    looks: u32,
}

impl Keeper {
    pub fn new(database: Connection, home: Home, slots: Arc<Slots>) -> Self {
        Self { database, home, slots, given_back: Vec::new(), needs: None, seen: None, looks: 0 }
    }

    /// Works until it is told to end. No failure ends it.
    pub fn serve(mut self, messages: &Receiver<Message>) {
        let mut ends = false;
        while !ends {
            let mut works = Vec::new();
            let restless = !self.given_back.is_empty() || self.slots.waiting.load(Ordering::SeqCst) > 0;
            let first = if restless {
                match messages.recv_timeout(PAUSE) {
                    Err(RecvTimeoutError::Disconnected) => break,
                    message => message.ok(),
                }
            } else {
                match messages.recv() {
                    Err(_) => break,
                    message => message.ok(),
                }
            };
            for message in first.into_iter().chain(messages.try_iter().take(TOGETHER)) {
                match message {
                    Message::Work(work) => works.push(work),
                    Message::GiveBack(key) => self.given_back.push(key),
                    Message::Watch => {}
                    Message::End => ends = true,
                }
            }
            self.give_back();
            self.together(works);
            if self.slots.waiting.load(Ordering::SeqCst) > 0 {
                self.look();
            }
        }
        self.leave();
    }

    fn give_back(&mut self) {
        let keys = mem::take(&mut self.given_back);
        if keys.is_empty() {
            return;
        }
        let written = self.transaction(Needs::Writing, |database, home| {
            keys.iter().try_for_each(|key| home.owner.give_back(database, key)).map_err(Failure::from)
        });
        match written {
            Ok(()) => self.slots.freed.notify_waiters(),
            Err(_) => self.given_back = keys,
        }
    }

    /// Does these, each for itself, and answers them when it is known what is kept.
    fn together(&mut self, mut works: Vec<Box<dyn Work>>) {
        let Some(needs) = works.iter().map(|work| work.needs()).max() else { return };
        let kept = self.transaction(needs, |database, home| {
            // Who waited for the file longer than anyone waited for him is passed over.
            for work in works.iter_mut().filter(|work| !work.is_given_up()) {
                database.execute_batch("SAVEPOINT work")?;
                let stays = work.run(database, home);
                // Some failures, as of a full disk, undo the whole transaction.
                if database.is_autocommit() {
                    return Err(Failure::Told(
                        "what was done with others could not be written; try again".to_owned(),
                    ));
                }
                if !stays {
                    database.execute_batch("ROLLBACK TO work")?;
                }
                database.execute_batch("RELEASE work")?;
            }
            Ok(())
        });
        for work in works {
            work.answer(kept.clone());
        }
    }

    /// One transaction, of which nothing stays if it fails.
    fn transaction(
        &mut self,
        needs: Needs,
        run: impl FnOnce(&Connection, &Home) -> Result<(), Failure>,
    ) -> Result<(), StoreError> {
        let done = self.attempt(needs, run);
        done.map_err(|failure| failure.in_use())
    }

    fn attempt(
        &mut self,
        needs: Needs,
        run: impl FnOnce(&Connection, &Home) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.still_there()?;
        if needs > Needs::Reading && self.needs != Some(needs) {
            let level = if needs == Needs::Keeping { "FULL" } else { "NORMAL" };
            self.database.pragma_update(None, "synchronous", level)?;
            self.needs = Some(needs);
        }
        let behavior = match needs {
            Needs::Reading => TransactionBehavior::Deferred,
            Needs::Writing | Needs::Keeping => TransactionBehavior::Immediate,
        };
        let transaction = self.database.transaction_with_behavior(behavior)?;
        run(&transaction, &self.home)?;
        transaction.commit()?;
        // It may have been moved away while this was written.
        self.still_there()
    }

    fn still_there(&self) -> Result<(), Failure> {
        if Place::of(&self.home.path) == Some(self.home.place) {
            return Ok(());
        }
        Err(Failure::Told(
            "its file was removed, or another was put in its place; put it back, or start again with another"
                .to_owned(),
        ))
    }

    /// Wakes those who wait if another process wrote something, or ended.
    fn look(&mut self) {
        let seen: Option<i64> = self.database.query_row("PRAGMA data_version", (), |row| row.get(0)).ok();
        if seen.is_none() || seen != self.seen {
            self.slots.freed.notify_waiters();
        }
        self.seen = seen;
        self.looks = (self.looks + 1) % LOOKS;
        if self.looks == 0 && self.remove_gone() {
            self.slots.freed.notify_waiters();
        }
    }

    fn remove_gone(&mut self) -> bool {
        let gone = owners::gone(&self.database, &self.home.path, self.home.owner.id);
        if gone.is_ok_and(|gone| gone.is_empty()) {
            return false;
        }
        let mut removed = false;
        let done = self.transaction(Needs::Writing, |database, home| {
            removed = owners::remove_gone(database, &home.path, home.owner.id)?;
            Ok(())
        });
        removed && done.is_ok()
    }

    /// Should this fail, the lock that ends with the owner tells the others.
    fn leave(&mut self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let _ = self.database.busy_timeout(PATIENCE);
        let _ = self.transaction(Needs::Writing, |database, home| Ok(home.owner.leave(database)?));
    }
}
