//! The store: it opens a server, and runs operations on a runtime of its own.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use super::error::{RedisOpenError, RedisStoreError};
use super::server::{Server, StoreClock};
use super::settings::RedisSettings;
use super::tasks;
use callgate::host::StoreError;
use callgate::state::capacity::Capacity;

/// How long closing waits for the server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A state store in Redis or Valkey, for every process on any machine that reaches the server.
///
/// Limits are exact, whatever the concurrency: each batch is one script, which the server runs atomically by its own clock. A slot belongs
/// to the open store that acquired it; it is released when the store is dropped, and 15 seconds after its process ended or lost the server.
///
/// What the server confirms survives its crash only if it writes it to disk first (`appendonly yes`, `appendfsync always`), and the loss of
/// the server only if replicas have it (`replicas` of the URL).
///
/// While the server can't be reached or written, every operation is an error; the store recovers when the cause is gone. After a
/// connection was lost during a write, it is unknown whether the write was done.
///
/// The store does its work in a runtime of its own, which ends when it is dropped. The futures need no particular runtime.
pub struct RedisStore {
    pub(crate) server: Arc<Server>,
    pub(crate) runtime: Option<Runtime>,
}

/// Omits the content, which may be secret.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("settings", &self.server.settings).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// The default capacity: 1,000,000 limits, 4 GiB of records and 1 GiB of cached results.
    pub const CAPACITY: Capacity = Capacity { limits: 1_000_000, records: 1_048_576, cached: 262_144 };

    /// Connects to a server. Must not be called within an async runtime, because it waits.
    ///
    /// # Errors
    /// The server can't be reached or written, may evict what it stores, or holds data of another version in this namespace.
    pub fn open(settings: RedisSettings) -> Result<Self, RedisOpenError> {
        Self::open_with(settings, Self::CAPACITY)
    }

    /// Connects with this capacity. All processes that share a namespace must use the same one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with(settings: RedisSettings, capacity: Capacity) -> Result<Self, RedisOpenError> {
        Self::open_at(settings, capacity, StoreClock::Server)
    }

    /// Connects, for simulations and tests: limits and the expiry of records follow the times that callers pass in, instead of the server's
    /// clock.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_for_simulation(settings: RedisSettings, capacity: Capacity) -> Result<Self, RedisOpenError> {
        Self::open_at(settings, capacity, StoreClock::Callers)
    }

    fn open_at(
        settings: RedisSettings,
        capacity: Capacity,
        clock: StoreClock,
    ) -> Result<Self, RedisOpenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("callgate-store")
            .enable_all()
            .build()
            .map_err(|error| RedisOpenError(format!("the async runtime can't be started: {error}")))?;
        let (reply, opened) = std::sync::mpsc::channel();
        // In the runtime and not on this thread, which may be one of another runtime.
        runtime.spawn(async move {
            let _ = reply.send(Server::open(settings, capacity, clock).await);
        });
        let server = opened.recv().unwrap_or_else(|_| Err("the runtime of the store has ended".to_owned()));
        let server = match server {
            Ok(server) => Arc::new(server),
            Err(why) => {
                runtime.shutdown_background();
                return Err(RedisOpenError(format!("the server can't be used as a state store: {why}")));
            }
        };
        runtime.spawn(tasks::maintain(Arc::downgrade(&server)));
        runtime.spawn(tasks::listen(Arc::downgrade(&server)));
        Ok(Self { server, runtime: Some(runtime) })
    }

    /// Runs a job to its end, also if the caller drops the future.
    pub(crate) fn run<T, J>(&self, job: J) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, J>
    where
        T: Send + 'static,
        J: Future<Output = Result<T, RedisStoreError>> + Send + 'static,
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

impl Drop for RedisStore {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let server = Arc::clone(&self.server);
        let (reply, closed) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            // Without the server, the lease of the slots ends by itself.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, server.close()).await;
            let _ = reply.send(());
        });
        let _ = closed.recv();
        runtime.shutdown_background();
    }
}
