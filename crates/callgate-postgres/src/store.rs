//! The store: operations → transactions on a runtime of its own.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::cache::{self, EntryKey};
use super::connection::PostgresSettings;
use super::database::{Database, StoreClock};
use super::error::{PostgresError, PostgresOpenError};
use super::limits;
use super::tasks;
use callgate::host::{
    BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, LimitAcquisition, LimitCorrection,
    LimitRefusal, LimitStore, StoreError, StoreFuture,
};
use callgate::state::cache::entry_size;
use callgate::state::capacity::{Capacity, units};
use callgate::state::limit_algorithms::cost;

/// How long opening may take, with the migration of the tables.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long those who wait for a slot rely on notifications, before they ask again: an owner that died notifies nobody.
const SLOT_WAIT: Duration = Duration::from_secs(2);

/// A state store in PostgreSQL, for every process on any machine that reaches the database.
///
/// Limits are exact, whatever the concurrency: changes of one limit happen one at a time, and count at the time of the server's clock.
/// A written record and an acquired limit are committed before the operation returns (`synchronous_commit` of the server decides what that
/// means). A slot belongs to the open store that acquired it; it is released when the store is dropped, and 15 seconds after its process
/// ended or lost the database.
///
/// While the database can't be reached or written, every operation is an error; the store recovers when the cause is gone. After a
/// connection was lost during a write, it is unknown whether the write was committed.
///
/// The store does its work in a runtime of its own, which ends when it is dropped. The futures need no particular runtime.
pub struct PostgresStore {
    pub(crate) shared: Arc<Database>,
    runtime: Option<Runtime>,
}

/// Omits the content, which may be secret.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// The default capacity: 2,000,000 limits, 128 GiB of records (33 million of up to 4 KiB) and 4 GiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 2_000_000, records: 33_554_432, cached: 1_048_576 };

    /// Connects to a database. Missing tables are created, and older ones are brought to the present version. Must not be called within an
    /// async runtime, because it waits.
    ///
    /// # Errors
    /// The database can't be reached or written, or its tables belong to another program or to a newer version.
    pub fn open(settings: PostgresSettings) -> Result<Self, PostgresOpenError> {
        Self::open_with(settings, Self::CAPACITY)
    }

    /// Connects with this capacity. All processes that share the database must use the same one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(settings: PostgresSettings, capacity: Capacity) -> Result<Self, PostgresOpenError> {
        Self::open_at(settings, capacity, StoreClock::Server)
    }

    /// Connects, for simulations and tests: limits follow the times that callers pass in, instead of the server's clock.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_for_simulation(
        settings: PostgresSettings,
        capacity: Capacity,
    ) -> Result<Self, PostgresOpenError> {
        Self::open_at(settings, capacity, StoreClock::Callers)
    }

    fn open_at(
        settings: PostgresSettings,
        capacity: Capacity,
        clock: StoreClock,
    ) -> Result<Self, PostgresOpenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("callgate-store")
            .enable_all()
            .build()
            .map_err(|error| PostgresOpenError(format!("the async runtime can't be started: {error}")))?;
        let (reply, opened) = std::sync::mpsc::channel();
        // In the runtime and not on this thread, which may be one of another runtime.
        runtime.spawn(async move {
            let opened = tokio::time::timeout(OPEN_TIMEOUT, Database::open(settings, capacity, clock)).await;
            let _ =
                reply.send(opened.unwrap_or_else(|_| Err("the database did not answer in time".to_owned())));
        });
        let shared = opened.recv().unwrap_or_else(|_| Err("the runtime of the store has ended".to_owned()));
        let shared = match shared {
            Ok(shared) => Arc::new(shared),
            Err(why) => {
                runtime.shutdown_background();
                return Err(PostgresOpenError(format!("the database can't be used as a state store: {why}")));
            }
        };
        runtime.spawn(tasks::maintain(Arc::downgrade(&shared)));
        runtime.spawn(tasks::listen(Arc::downgrade(&shared)));
        Ok(Self { shared, runtime: Some(runtime) })
    }

    /// Runs a job for as long as an operation may take, also if the caller drops the future.
    pub(crate) fn run_bounded<T, J>(
        &self,
        job: J,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: Future<Output = Result<T, PostgresError>> + Send + 'static,
    {
        let store = Arc::clone(&self.shared);
        self.run(async move { store.pool.bounded(job).await })
    }

    /// Runs a job to its end, also if the caller drops the future.
    pub(crate) fn run<T, J>(&self, job: J) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: Future<Output = Result<T, PostgresError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                // A result without a receiver is dropped, which reverts it where necessary.
                let _ = reply.send(job.await);
            });
        }
        async move {
            let ended =
                || StoreError::Unavailable("the state store was closed; restart the process".to_owned());
            answer.await.map_err(|_| ended())?.map_err(|error| error.to_store_error())
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let shared = Arc::clone(&self.shared);
        let (reply, closed) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            // Without the database, the lease of the slots ends by itself.
            let _ = tokio::time::timeout(SLOT_WAIT, shared.close()).await;
            let _ = reply.send(());
        });
        let _ = closed.recv();
        runtime.shutdown_background();
    }
}

/// Acquired slots. They are released if the caller drops the future before it gets them.
struct AcquiredSlots {
    answer: Result<Vec<LimitRefusal>, StoreError>,
    slots: Vec<String>,
    store: Arc<Database>,
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
        for key in self.slots.drain(..) {
            self.store.slots().release(&key);
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.flush_releases().await });
        }
    }
}

impl LimitStore for PostgresStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        if takes.iter().all(|take| cost(&take.allowance, take.cost) == 0) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        let (takes, store) = (takes.to_vec(), Arc::clone(&self.shared));
        let acquired = self.run(async move {
            let answer = store.acquire(now, &takes).await;
            let has_acquired = answer.as_ref().is_ok_and(Vec::is_empty);
            let slots = if has_acquired { limits::slot_keys(&takes).collect() } else { Vec::new() };
            Ok(AcquiredSlots { answer, slots, store })
        });
        Box::pin(async move { acquired.await?.into_answer() })
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        let (corrections, store) = (corrections.to_vec(), Arc::clone(&self.shared));
        let corrected = self.run(async move { store.correct(now, &corrections).await });
        Box::pin(async move { corrected.await? })
    }

    fn release(&self, key: &str) {
        let store = Arc::clone(&self.shared);
        // At once, so that an acquisition from now on finds it.
        store.slots().release(key);
        drop(self.run(async move { store.flush_releases().await }));
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        // Created here and not on the first poll: no notification is missed from now on.
        let mut freed = Box::pin(self.shared.slots_freed.notified());
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

impl CacheStore for PostgresStore {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        let (entry_key, store) = (EntryKey::new(space, key), Arc::clone(&self.shared));
        Box::pin(
            self.run_bounded(
                async move { cache::get(&store.pool, &store.cache_uses, now, &entry_key).await },
            ),
        )
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        let size = entry_size(key, &entry.output);
        let (entry_key, store) = (EntryKey::new(space, key), Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let entry = (size.map(|_| &entry), units(size.unwrap_or(0)));
            let Database { pool, cache_uses, capacity, .. } = &*store;
            cache::put(pool, cache_uses, capacity.cached, &entry_key, entry, generation).await
        }))
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        let (space, store) = (space.to_owned(), Arc::clone(&self.shared));
        Box::pin(self.run_bounded(async move {
            let database = store.pool.get().await?;
            cache::clear(&database, &space).await
        }))
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}
