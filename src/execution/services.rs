//! What all calls of an engine share while they are executed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::flights::Flights;
use super::guard::{before, guarded};
use crate::host::{Clock, StateStore, StoreError, StoreFuture};

/// A store that takes longer than this does not answer.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// The store, calls under way, and chance.
pub(crate) struct Services {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) flights: Flights,
    chance: Mutex<fastrand::Rng>,
}

impl Services {
    /// Services over a store.
    pub(crate) fn new(store: Arc<dyn StateStore>, chance: fastrand::Rng) -> Self {
        Self { store, flights: Flights::default(), chance: Mutex::new(chance) }
    }

    /// What a store answers, in time. A panic is an error, too.
    pub(super) async fn ask<'q, T: 'q>(
        &self,
        clock: &dyn Clock,
        question: impl FnOnce() -> StoreFuture<'q, T>,
    ) -> Result<T, StoreError> {
        let in_time = before(async { question().await }, || clock.sleep(STORE_PATIENCE));
        match guarded(in_time).await {
            Ok(Some(answer)) => answer,
            Err(_) => Err(StoreError("the store panicked".to_owned())),
            Ok(None) => Err(StoreError(format!("no answer within {}s", STORE_PATIENCE.as_secs()))),
        }
    }

    /// A number from 0 to 1.
    pub(super) fn chance(&self) -> f64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }

    /// A name that no other session has.
    pub(crate) fn unique_name(&self) -> String {
        format!("{:032x}", self.chance.lock().unwrap_or_else(PoisonError::into_inner).u128(..))
    }
}
