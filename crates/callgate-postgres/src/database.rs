//! A database that a store uses: its connections, and what the store knows of its limits and slots.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};

use super::cache_uses::CacheUses;
use super::connection::PostgresSettings;
use super::connection_pool::ConnectionPool;
use super::error::{PostgresError, opening_message};
use super::limit_queue::{AcquisitionAnswer, LimitQueue, WaitingAcquisition};
use super::limits::{self, LimitChange, LimitRequest};
use super::records;
use super::schema::{self, channel_name};
use super::slot_lease;
use super::slots::{HeldSlots, SlotChange};
use super::transaction::begin;
use super::usage::Pool;
use callgate::host::{Announcer, LimitAcquisition, LimitCorrection, StoreError};

use callgate::state::capacity::Capacity;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use callgate::state::limit_table::LimitTable;
use callgate::state::recent_acquisitions::RecentAcquisitions;

/// The limits that each acquisition checks for removal, so that they are removed as steadily as they are added.
const DUE_CHECKS: usize = 4;
/// The limits that are checked for removal at once if room is needed.
const DUE_CHECKS_WHEN_FULL: usize = 256;

/// Which clock limits follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StoreClock {
    /// That of the server, the same for all hosts.
    Server,
    /// The times that callers pass in.
    Callers,
}

/// A database, as one open store uses it.
pub(crate) struct Database {
    pub(crate) settings: PostgresSettings,
    pub(crate) pool: ConnectionPool,
    pub(crate) capacity: Capacity,
    pub(crate) slots_freed: Notify,
    pub(crate) announcer: Announcer,
    pub(crate) cache_uses: CacheUses,
    clock: StoreClock,
    slots: Mutex<HeldSlots>,
    queue: LimitQueue,
    /// Held while releases are written, so that an acquisition does not overtake an earlier release.
    writing_releases: tokio::sync::Mutex<()>,
    /// The server's times of acquisitions that may be corrected.
    acquired_at: Mutex<RecentAcquisitions<Micros>>,
}

impl Database {
    pub(crate) async fn open(
        settings: PostgresSettings,
        capacity: Capacity,
        clock: StoreClock,
    ) -> Result<Self, String> {
        let pool = ConnectionPool::new(&settings)?;
        let failed = |error: PostgresError| opening_message(&error);
        let mut database = pool.get().await.map_err(failed)?;
        schema::migrate(&mut database, &settings.schema).await.map_err(failed)??;
        let owner = slot_lease::register(&database).await.map_err(failed)?;
        slot_lease::remove_expired(&database).await.map_err(failed)?;
        drop(database);
        Ok(Self {
            settings,
            pool,
            capacity,
            slots_freed: Notify::new(),
            announcer: Announcer::default(),
            cache_uses: CacheUses::default(),
            clock,
            slots: Mutex::new(HeldSlots::new(owner)),
            queue: LimitQueue::new(),
            writing_releases: tokio::sync::Mutex::default(),
            acquired_at: Mutex::default(),
        })
    }

    // Every update of these is a single step, so a panic elsewhere leaves them consistent.
    pub(crate) fn slots(&self) -> MutexGuard<'_, HeldSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquired_at(&self) -> MutexGuard<'_, RecentAcquisitions<Micros>> {
        self.acquired_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires all or nothing, together with others that wait at the same time.
    pub(crate) async fn acquire(&self, now: Timestamp, takes: &[LimitAcquisition]) -> AcquisitionAnswer {
        if takes.iter().any(limits::is_slot) {
            // If it fails, the acquisition finds the slots in use, or fails too.
            let _ = self.flush_releases().await;
        }
        let (reply, mut answer) = oneshot::channel();
        self.queue.push(WaitingAcquisition { now: since_epoch(now), takes: takes.to_vec(), reply });
        // Whoever gets a turn acquires for those who came first. There are as many turns as acquisitions.
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            _turn = self.queue.turn() => {
                let group = self.queue.take_group();
                if !group.is_empty() {
                    self.acquire_group(group).await;
                }
                drop(_turn);
                answer.await
            }
        };
        answer.unwrap_or_else(|_| Err(StoreError::Unavailable("the acquisition was interrupted".to_owned())))
    }

    async fn acquire_group(&self, group: Vec<WaitingAcquisition>) {
        let acquired = self.change(&group, DUE_CHECKS * group.len()).await;
        let answers = match acquired {
            Ok((answers, due)) => {
                let mut complete = Vec::new();
                for (acquisition, answer) in group.iter().zip(answers) {
                    complete.push(match answer {
                        // There may be more limits that can be removed.
                        Err(StoreError::QuotaExceeded(_)) if due > 0 => {
                            self.acquire_when_full(acquisition).await
                        }
                        answer => answer,
                    });
                }
                complete
            }
            Err(error) => group.iter().map(|_| Err(error.to_store_error())).collect(),
        };
        for (acquisition, answer) in group.into_iter().zip(answers) {
            // A caller who does not wait any more releases its slots by itself.
            let _ = acquisition.reply.send(answer);
        }
    }

    /// Acquires after removing as many limits as necessary.
    async fn acquire_when_full(&self, acquisition: &WaitingAcquisition) -> AcquisitionAnswer {
        loop {
            let acquired = self.change(std::slice::from_ref(acquisition), DUE_CHECKS_WHEN_FULL).await;
            let (answers, due) = acquired.map_err(|error| error.to_store_error())?;
            match answers.into_iter().next() {
                Some(Err(StoreError::QuotaExceeded(_))) if due > 0 => {}
                Some(answer) => return answer,
                None => return Ok(Vec::new()),
            }
        }
    }

    /// Acquires for each of the group, in one transaction. Returns their answers, and how many limits were checked for removal.
    async fn change(
        &self,
        group: &[WaitingAcquisition],
        most_due: usize,
    ) -> Result<(Vec<AcquisitionAnswer>, usize), PostgresError> {
        let takes: Vec<LimitAcquisition> = group.iter().flat_map(|one| one.takes.iter().cloned()).collect();
        let earliest = group.iter().map(|one| one.now).min().unwrap_or_default();
        let has_slots = takes.iter().any(limits::is_slot);
        let owner = if has_slots { self.slots().begin_acquisition() } else { 0 };
        let request = LimitRequest { owner, ..self.request(&takes, earliest, most_due) };
        let changed =
            limits::change(&self.pool, &request, |limits, time| self.acquire_all(group, limits, time));
        let changed = self.pool.bounded(changed).await;
        if has_slots {
            let acquired = changed.as_ref().map_or(&[][..], |((answers, _), _)| answers);
            let acquired = group.iter().zip(acquired).filter(|(_, answer)| is_acquired(answer));
            let keys: Vec<String> = acquired.flat_map(|(one, _)| limits::slot_keys(&one.takes)).collect();
            self.slots().end_acquisition(owner, &keys, slot_change(&changed));
        }
        let (answers, due) = changed?;
        let mut times = self.acquired_at();
        let (answers, at) = answers;
        if self.clock == StoreClock::Server {
            let acquired = group.iter().zip(&answers).filter(|(_, answer)| is_acquired(answer));
            for (one, _) in acquired {
                one.takes.iter().for_each(|take| times.remember(&take.key, one.now, at));
            }
        }
        Ok((answers, due))
    }

    /// The answers, and the time at which everything counts.
    fn acquire_all(
        &self,
        group: &[WaitingAcquisition],
        limits: &mut LimitTable,
        time: Micros,
    ) -> LimitChange<(Vec<AcquisitionAnswer>, Micros)> {
        let acquire = |one: &WaitingAcquisition| {
            let time = if self.clock == StoreClock::Server { time } else { one.now };
            limits.acquire(time, &one.takes)
        };
        let answers: Vec<AcquisitionAnswer> = group.iter().map(acquire).collect();
        let acquired = group.iter().zip(&answers).filter(|(_, answer)| is_acquired(answer));
        let slots =
            acquired.flat_map(|(one, _)| limits::slot_keys(&one.takes)).map(String::into_bytes).collect();
        // An error has removed what could be removed.
        let is_changed = answers.iter().any(|answer| answer.is_err() || is_acquired(answer));
        LimitChange { answer: (answers, limits.latest_time()), is_changed, slots }
    }

    fn request<'r>(&self, takes: &'r [LimitAcquisition], now: Micros, most_due: usize) -> LimitRequest<'r> {
        let time = (self.clock == StoreClock::Callers).then_some(now);
        // A correction acquires no slots.
        LimitRequest { takes, time, most_due, capacity: self.capacity.limits, owner: 0 }
    }

    pub(crate) async fn correct(
        &self,
        now: Timestamp,
        corrections: &[LimitCorrection],
    ) -> Result<Result<(), StoreError>, PostgresError> {
        let takes: Vec<LimitAcquisition> =
            corrections.iter().map(|correction| correction.acquisition.clone()).collect();
        let now = since_epoch(now);
        let mut most_due = DUE_CHECKS;
        loop {
            let request = self.request(&takes, now, most_due);
            let corrected = limits::change(&self.pool, &request, |limits, time| {
                let corrections = self.with_times_of_limits(corrections, now, time);
                LimitChange {
                    answer: limits.correct(time, &corrections),
                    is_changed: true,
                    slots: Vec::new(),
                }
            });
            match self.pool.bounded(corrected).await? {
                (Err(StoreError::QuotaExceeded(_)), due) if due > 0 => most_due = DUE_CHECKS_WHEN_FULL,
                (answer, _) => return Ok(answer),
            }
        }
    }

    /// Corrections that name the time that the limits count their acquisition at, and not that of the caller.
    fn with_times_of_limits(
        &self,
        corrections: &[LimitCorrection],
        now: Micros,
        time: Micros,
    ) -> Vec<LimitCorrection> {
        let mut corrections = corrections.to_vec();
        if self.clock == StoreClock::Callers {
            return corrections;
        }
        let times = self.acquired_at();
        for correction in &mut corrections {
            let told = since_epoch(correction.acquired_at);
            let known = times.get(&correction.acquisition.key, told);
            // Another process acquired it, or it was long ago.
            let at = known.unwrap_or_else(|| time.saturating_sub(now.saturating_sub(told)));
            correction.acquired_at = Timestamp::from_microsecond(at).unwrap_or(correction.acquired_at);
        }
        corrections
    }

    /// Writes the releases that are still to be written, and notifies all hosts.
    pub(crate) async fn flush_releases(&self) -> Result<(), PostgresError> {
        let _turn = self.writing_releases.lock().await;
        self.flush_in_turn().await
    }

    async fn flush_in_turn(&self) -> Result<(), PostgresError> {
        let channel = channel_name(&self.settings.schema);
        let released = self.slots().take_released();
        let mut result = Ok(());
        for (owner, keys) in released {
            // After a failure, the rest would fail, too.
            if result.is_err() {
                self.slots().end_release(owner, keys, SlotChange::NotDone);
                continue;
            }
            let written = self.pool.bounded(async {
                let database = self.pool.get().await?;
                slot_lease::release(&database, owner, &keys, &channel).await
            });
            result = written.await;
            self.slots().end_release(owner, keys, slot_change(&result));
        }
        result
    }

    /// Writes which cached results were used.
    pub(crate) async fn write_cache_uses(&self) -> Result<(), PostgresError> {
        let written = async {
            self.cache_uses.write(&self.pool.get().await?).await;
            Ok(())
        };
        self.pool.bounded(written).await
    }

    /// Renews the leases of slots. Gives new slots another owner if the lease has ended or it is unknown which ones it has, and removes slots
    /// that it has by a lost reply.
    pub(crate) async fn maintain_slots(&self) -> Result<(), PostgresError> {
        let _turn = self.writing_releases.lock().await;
        self.pool.bounded(self.renew_leases()).await?;
        self.flush_in_turn().await?;
        self.pool.bounded(self.correct_retired()).await
    }

    async fn renew_leases(&self) -> Result<(), PostgresError> {
        let database = self.pool.get().await?;
        let owners = self.slots().owner_ids();
        for owner in owners {
            if !slot_lease::renew(&database, owner).await? {
                self.slots().remove_owner(owner);
            }
        }
        if self.slots().needs_owner() {
            let owner = slot_lease::register(&database).await?;
            self.slots().add_owner(owner);
        }
        slot_lease::remove_expired(&database).await
    }

    async fn correct_retired(&self) -> Result<(), PostgresError> {
        let database = self.pool.get().await?;
        let retired: Vec<_> = self.slots().retired().map(|owner| (owner.id, owner.stored())).collect();
        for (owner, held) in retired {
            slot_lease::correct(&database, owner, &held, &channel_name(&self.settings.schema)).await?;
            if held.is_empty() {
                slot_lease::unregister(&database, owner).await?;
                self.slots().remove_owner(owner);
            }
        }
        Ok(())
    }

    /// Removes all expired records. Returns how many.
    pub(crate) async fn remove_expired(&self, now: Timestamp) -> Result<u64, PostgresError> {
        let mut removed = 0;
        loop {
            let batch = async {
                let database = self.pool.get().await?;
                records::remove_expired(&database, now).await
            };
            let more = self.pool.bounded(batch).await?;
            removed += more;
            if more == 0 {
                return Ok(removed);
            }
        }
    }

    pub(crate) async fn close(&self) -> Result<(), PostgresError> {
        let mut database = self.pool.get().await?;
        let transaction = begin(&mut database, Pool::Limits).await?;
        let owners = self.slots().owner_ids();
        for owner in owners {
            slot_lease::unregister(&transaction, owner).await?;
        }
        transaction.batch_execute(&format!("NOTIFY {}", channel_name(&self.settings.schema))).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// How an operation on slots has ended.
fn slot_change<T>(result: &Result<T, PostgresError>) -> SlotChange {
    match result {
        Ok(_) => SlotChange::Done,
        Err(error) if error.is_reply_lost() => SlotChange::Unknown,
        Err(_) => SlotChange::NotDone,
    }
}

fn is_acquired(answer: &AcquisitionAnswer) -> bool {
    answer.as_ref().is_ok_and(Vec::is_empty)
}
