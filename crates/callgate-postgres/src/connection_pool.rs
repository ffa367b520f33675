//! The pool of a store's connections. Every operation ends in time, and after a failure that another connection may not have, all
//! connections are replaced.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};

use super::connection::{CONNECT_TIMEOUT, PostgresSettings};
use super::error::PostgresError;

/// How long an operation may take. It is longer than a statement may take at the server, which then names the cause, and shorter than the
/// timeout of a store operation, so that its caller receives the reason.
const OPERATION_TIMEOUT: Duration = Duration::from_millis(4_500);

/// The connections of an open store, beside the one that listens.
pub(crate) struct ConnectionPool {
    pool: Pool,
    /// Connections from before this time are not used again.
    replaced_at: Arc<Mutex<Option<Instant>>>,
}

impl ConnectionPool {
    pub(crate) fn new(settings: &PostgresSettings) -> Result<Self, String> {
        // A connection that was lost is noticed by the operation that uses it, and replaced for the next one.
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(settings.config(), settings.connector()?, manager_config);
        let replaced_at: Arc<Mutex<Option<Instant>>> = Arc::default();
        let replaced = Arc::clone(&replaced_at);
        let pool = Pool::builder(manager)
            .max_size(settings.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CONNECT_TIMEOUT))
            .create_timeout(Some(CONNECT_TIMEOUT))
            .pre_recycle(Hook::sync_fn(move |_, metrics| {
                let replaced = *replaced.lock().unwrap_or_else(PoisonError::into_inner);
                match replaced.is_some_and(|replaced| metrics.created <= replaced) {
                    true => Err(HookError::message("the connection is replaced")),
                    false => Ok(()),
                }
            }))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { pool, replaced_at })
    }

    pub(crate) async fn get(&self) -> Result<Object, PostgresError> {
        Ok(self.pool.get().await?)
    }

    /// Awaits an operation for as long as it may take. It is dropped then, and so are its connections: their server may never answer.
    pub(crate) async fn bounded<T>(
        &self,
        operation: impl Future<Output = Result<T, PostgresError>>,
    ) -> Result<T, PostgresError> {
        let mut operation = pin!(operation);
        let result = match tokio::time::timeout(OPERATION_TIMEOUT, &mut operation).await {
            Ok(result) => result,
            Err(_) => Err(PostgresError::Timeout),
        };
        // Before the operation is dropped, which returns its connections to the pool.
        if result.as_ref().is_err_and(PostgresError::needs_reconnect) {
            *self.replaced_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        result
    }
}
