//! What all calls of an engine share while they are executed.

use std::sync::{Arc, Mutex, PoisonError};

use super::flights::Flights;
use crate::approval::Ledger;
use crate::host::{Account, Clock, StateStore, StoreError, StoreFuture, in_time};
use crate::message::ResponsePart;
use crate::seal::Keys;
use crate::state::sealed;

/// Judges one-time tokens of a host's own in answers: says whether this answer may count.
pub(crate) type AcceptsAnswer = dyn Fn(&ResponsePart) -> bool + Send + Sync;

/// The store, the keys, calls under way, and chance.
pub(crate) struct Services {
    pub(crate) store: Arc<dyn StateStore>,
    /// What is given to others is sealed and encrypted with these: the server's keys, or one that ends with the process.
    pub(crate) keys: Keys,
    /// The keys are the server's: another process may accept what is made with them.
    pub(crate) keys_last: bool,
    /// Judges tokens in answers that are not the question's.
    pub(crate) accepts_answer: Option<Box<AcceptsAnswer>>,
    pub(super) flights: Flights,
    chance: Mutex<fastrand::Rng>,
}

impl Services {
    /// Services over a store. Without keys a key is made that ends with the process.
    #[expect(clippy::expect_used, reason = "where there are no random bytes, no hash map can be made either")]
    pub(crate) fn new(
        store: Arc<dyn StateStore>,
        keys: Option<Keys>,
        accepts_answer: Option<Box<AcceptsAnswer>>,
        chance: fastrand::Rng,
    ) -> Self {
        let store = sealed(store, keys.as_ref());
        let keys_last = keys.is_some();
        let keys = keys.unwrap_or_else(|| Keys::random().expect("random bytes for a key"));
        Self {
            store,
            keys,
            keys_last,
            accepts_answer,
            flights: Flights::default(),
            chance: Mutex::new(chance),
        }
    }

    /// The ledger of the store. What is entered there is charged to the account.
    pub(crate) fn ledger<'l>(&self, clock: &'l dyn Clock, account: Account) -> Ledger<'l> {
        Ledger::new(Arc::clone(&self.store), clock).charged_to(account)
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
