//! What all calls of an engine share while they are executed.

use std::sync::{Arc, Mutex, PoisonError};

use super::flights::Flights;
use crate::host::{Clock, StateStore, StoreError, StoreFuture, in_time};

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

    /// What a store answers, in time.
    pub(super) async fn ask<'q, T: 'q>(
        &self,
        clock: &dyn Clock,
        question: impl FnOnce() -> StoreFuture<'q, T>,
    ) -> Result<T, StoreError> {
        in_time(clock, question).await
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
