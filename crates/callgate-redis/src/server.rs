//! A server, as one open store uses it: its connections, and what the store knows of its own slots.

use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::host::{Announcer, LimitAcquisition, LimitCorrection, LimitRefusal, StoreError};

use callgate::state::capacity::Capacity;
use callgate::state::limit_algorithms::{Micros, since_epoch};
use callgate::state::recent_acquisitions::RecentAcquisitions;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::connection::{Durability, Link};
use super::error::RedisStoreError;
use super::limits::{self, AcquisitionBatch, AcquisitionReply, CorrectionBatch, quota_error, time_argument};
use super::script::Scripts;
use super::settings::RedisSettings;
use super::slots::{HeldSlots, Slot};

/// The version of the stored format. Data of another version is not used.
const FORMAT: &str = "1";
/// How often an acquisition is sent again after some limits were removed to make room.
const MAX_ATTEMPTS: usize = 64;

/// Which clock limits and the expiry of records follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StoreClock {
    /// That of the server, the same for all hosts.
    Server,
    /// The times that callers pass in.
    Callers,
}

/// A server, as one open store uses it.
pub(crate) struct Server {
    pub(crate) settings: RedisSettings,
    pub(crate) capacity: Capacity,
    pub(crate) scripts: Scripts,
    pub(crate) limits: Pool,
    pub(crate) records: Pool,
    pub(crate) cached: Pool,
    /// The name of this store among the owners of slots.
    pub(crate) owner: String,
    pub(crate) slots_freed: Notify,
    pub(crate) announcer: Announcer,
    clock: StoreClock,
    slots: Mutex<HeldSlots>,
    /// Held while releases are sent, so that an acquisition is not sent before an earlier release.
    sending_releases: tokio::sync::Mutex<()>,
    acquired_at: Mutex<RecentAcquisitions<Micros>>,
}

/// A part of the store: its keys have one hash tag, so that one node of a cluster has all of them.
pub(crate) struct Pool {
    pub(crate) link: Link,
    /// The tag, with which the names of its keys begin.
    pub(crate) tag: String,
}

impl Pool {
    /// Runs a script on the keys of this pool.
    pub(crate) async fn run<T: redis::FromRedisValue>(
        &self,
        script: &redis::Script,
        arguments: &[Vec<u8>],
        durability: Durability,
    ) -> Result<T, RedisStoreError> {
        self.link.run(script, &self.tag, arguments, durability).await
    }
}

impl Server {
    pub(crate) async fn open(
        settings: RedisSettings,
        capacity: Capacity,
        clock: StoreClock,
    ) -> Result<Self, String> {
        let pool = |name: &str| Pool {
            link: Link::new(settings.clone()),
            tag: format!("{{{}:{name}}}", settings.namespace),
        };
        let server = Self {
            limits: pool("limits"),
            records: pool("records"),
            cached: pool("cached"),
            settings: settings.clone(),
            capacity,
            scripts: Scripts::new(),
            owner: format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)),
            slots_freed: Notify::new(),
            announcer: Announcer::default(),
            clock,
            slots: Mutex::default(),
            sending_releases: tokio::sync::Mutex::default(),
            acquired_at: Mutex::default(),
        };
        server.check_format().await?;
        Ok(server)
    }

    /// Checks that the server keeps what it stores, and that the stored format is the one of this program.
    async fn check_format(&self) -> Result<(), String> {
        let failed = |error: RedisStoreError| error.opening_message();
        let format_key = format!("{}:format", self.records.tag);
        let open = &self.scripts.open;
        let arguments = [FORMAT.as_bytes().to_vec()];
        let found: String = self
            .records
            .link
            .run(open, &format_key, &arguments, Durability::Replicated)
            .await
            .map_err(failed)?;
        if found != FORMAT {
            return Err(format!(
                "the data of the namespace `{}` has version {found}, but this program reads version {FORMAT}; update it, or name another \
                 namespace with `namespace=NAME` in the URL",
                self.settings.namespace
            ));
        }
        let mut info = redis::cmd("INFO");
        info.arg("memory");
        // A user without the permission to ask is not refused.
        let Ok(memory) = self.limits.link.read::<String>(&info).await else { return Ok(()) };
        let field = |name: &str| {
            memory
                .lines()
                .find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
                .unwrap_or_default()
        };
        let policy = field("maxmemory_policy");
        if field("maxmemory") != "0" && policy.starts_with("allkeys") {
            return Err(format!(
                "`maxmemory-policy {policy}` would evict limits and approvals; set `noeviction`, or a `volatile-` policy, which evicts cached \
                 results only"
            ));
        }
        Ok(())
    }

    /// The time for scripts; `None` for the server's.
    pub(crate) fn time(&self, now: Timestamp) -> Option<Micros> {
        match self.clock {
            StoreClock::Server => None,
            StoreClock::Callers => Some(since_epoch(now)),
        }
    }

    // Every update is a single step, so a panic elsewhere leaves the slots consistent.
    pub(crate) fn slots(&self) -> MutexGuard<'_, HeldSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquired_at(&self) -> MutexGuard<'_, RecentAcquisitions<Micros>> {
        self.acquired_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a batch. Acquired slots are those of the batch; after an error they are released.
    pub(crate) async fn acquire(
        &self,
        now: Timestamp,
        takes: &[LimitAcquisition],
        batch: &AcquisitionBatch,
    ) -> Result<Result<Vec<LimitRefusal>, StoreError>, RedisStoreError> {
        if !batch.slots.is_empty() {
            // If it fails, the acquisition finds the slots in use, or fails too.
            let _ = self.send_releases().await;
        }
        let arguments = batch.arguments(self.time(now), self.capacity.limits, &self.owner);
        let script = &self.scripts.acquire;
        for _ in 0..MAX_ATTEMPTS {
            let reply: Result<Vec<String>, _> =
                self.limits.run(script, &arguments, Durability::Replicated).await;
            let answer = reply.and_then(|reply| batch.reply(&reply));
            match answer {
                Ok(AcquisitionReply::Answered { refusals, at }) => {
                    if refusals.is_empty() {
                        self.slots().hold(&batch.slots);
                        self.remember_time(now, takes, at);
                    }
                    return Ok(Ok(refusals));
                }
                Ok(AcquisitionReply::Full) => break,
                Ok(AcquisitionReply::Retry) => {}
                Err(error) => {
                    self.slots().doubt(batch.slots.clone());
                    return Err(error);
                }
            }
        }
        Ok(Err(quota_error(self.capacity.limits)))
    }

    /// Corrects estimates.
    pub(crate) async fn correct(
        &self,
        now: Timestamp,
        corrections: &[LimitCorrection],
    ) -> Result<Result<(), StoreError>, RedisStoreError> {
        let acquired_at = |correction: &LimitCorrection| match self.clock {
            StoreClock::Callers => Some(since_epoch(correction.acquired_at)),
            StoreClock::Server => {
                self.acquired_at().get(&correction.acquisition.key, since_epoch(correction.acquired_at))
            }
        };
        let (time, capacity) = (self.time(now), self.capacity.limits);
        let arguments = CorrectionBatch { corrections, now, time, capacity }.arguments(acquired_at);
        let script = &self.scripts.correct;
        for _ in 0..MAX_ATTEMPTS {
            let reply: Vec<String> = self.limits.run(script, &arguments, Durability::Replicated).await?;
            match reply.first().map(String::as_str) {
                Some("ok") => return Ok(Ok(())),
                Some("full") => break,
                _ => {}
            }
        }
        Ok(Err(quota_error(self.capacity.limits)))
    }

    /// Remembers the server's time of acquisitions that may be corrected.
    fn remember_time(&self, now: Timestamp, takes: &[LimitAcquisition], at: Micros) {
        if self.clock == StoreClock::Callers {
            return;
        }
        let mut times = self.acquired_at();
        takes.iter().for_each(|take| times.remember(&take.key, since_epoch(now), at));
    }

    /// Sends the releases that the server still has to learn of.
    pub(crate) async fn send_releases(&self) -> Result<(), RedisStoreError> {
        let _turn = self.sending_releases.lock().await;
        let released = self.slots().take_released();
        if released.is_empty() {
            return Ok(());
        }
        let mut arguments = vec![self.owner.as_bytes().to_vec()];
        for Slot { id, key } in &released {
            arguments.push(limits::number(id));
            arguments.push(key.as_bytes().to_vec());
        }
        let script = &self.scripts.release;
        let sent = self.limits.run::<String>(script, &arguments, Durability::Local).await;
        match sent {
            Ok(_) => Ok(()),
            Err(error) => {
                self.slots().put_back(released);
                Err(error)
            }
        }
    }

    /// Renews the lease of the slots, and removes what has expired.
    pub(crate) async fn maintain(&self, now: Timestamp) -> Result<(), RedisStoreError> {
        self.slots().repeat_doubtful();
        self.send_releases().await?;
        let own = self.owner.as_bytes().to_vec();
        // Without a clock of its own, the store can't tell what has expired until a caller does.
        let time = match self.clock {
            StoreClock::Server => time_argument(None),
            StoreClock::Callers => time_argument(Some(0)),
        };
        let Scripts { maintain, maintain_records, maintain_cache, .. } = &self.scripts;
        let arguments = [time.clone(), own];
        self.limits.run::<String>(maintain, &arguments, Durability::Local).await?;
        self.records.run::<u64>(maintain_records, &[time], Durability::Local).await?;
        let time = match self.clock {
            StoreClock::Server => time_argument(Some(since_epoch(now))),
            StoreClock::Callers => time_argument(Some(0)),
        };
        self.cached.run::<String>(maintain_cache, &[time], Durability::Local).await?;
        Ok(())
    }

    /// Removes all expired records. Returns how many.
    pub(crate) async fn remove_expired(&self, now: Timestamp) -> Result<u64, RedisStoreError> {
        let arguments = [time_argument(self.time(now))];
        let mut removed = 0;
        loop {
            let script = &self.scripts.maintain_records;
            let more: u64 = self.records.run(script, &arguments, Durability::Local).await?;
            removed += more;
            if more == 0 {
                return Ok(removed);
            }
        }
    }

    pub(crate) async fn close(&self) -> Result<(), RedisStoreError> {
        let arguments = [self.owner.as_bytes().to_vec()];
        self.limits.run::<String>(&self.scripts.close, &arguments, Durability::Local).await?;
        Ok(())
    }

    /// The channel on which the release of slots is published.
    pub(crate) fn slot_channel(&self) -> String {
        format!("{}:freed", self.limits.tag)
    }

    /// The channel on which changed approval requests are published.
    pub(crate) fn approval_channel(&self) -> String {
        format!("{}:approvals", self.records.tag)
    }

    /// Publishes the key of a changed approval request.
    pub(crate) async fn announce_approval(&self, key: &str) -> Result<(), RedisStoreError> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(self.approval_channel()).arg(key);
        self.records.link.read::<i64>(&publish).await?;
        Ok(())
    }
}
