//! The services that all calls of an engine share: store, keys, clock, observers, random numbers, single flight.

use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::HEXLOWER;

use super::completed_call::CompletedCalls;
use super::observed_store::ObservedStore;
use super::observers::Observers;
use super::wrappers::single_flight::SingleFlight;
use crate::approval::Ledger;
use crate::host::{
    Account, Clock, LimitCorrection, Observer, StateStore, StoreError, StoreFuture, with_store_timeout,
};
use crate::message::ResponsePart;
use crate::seal::Keys;
use crate::state::seal_store;

/// A host's own check of one-time tokens in answers: whether this answer may count.
pub(crate) type AcceptsAnswer = dyn Fn(&ResponsePart) -> bool + Send + Sync;

/// The services of an engine.
pub(crate) struct EngineServices {
    pub(crate) store: Arc<dyn StateStore>,
    /// Seal and encrypt what others hold: the server's keys, or one that ends with the process.
    pub(crate) keys: Keys,
    /// The keys are the server's: another process may accept what is sealed with them.
    pub(crate) has_server_keys: bool,
    /// Checks tokens in answers that are not the request's own.
    pub(crate) accepts_answer: Option<Box<AcceptsAnswer>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Observers,
    /// Evaluates completed calls again, under candidate rules.
    pub(crate) candidate: Option<Arc<dyn CompletedCalls>>,
    pub(super) single_flight: SingleFlight,
    /// Costs that the store does not have yet.
    pub(super) debts: CostDebts,
    random: Mutex<fastrand::Rng>,
}

/// Costs beyond their estimates that the store may not have yet. Until it has them, nothing else is acquired of limits with `cost_after`:
/// the store would admit too much.
#[derive(Default)]
pub(crate) struct CostDebts(tokio::sync::Mutex<Vec<LimitCorrection>>);

/// What a host gives an engine for its calls.
pub(crate) struct HostServices {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) keys: Option<Keys>,
    pub(crate) accepts_answer: Option<Box<AcceptsAnswer>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) random: fastrand::Rng,
}

impl EngineServices {
    /// Services over a store, which is sealed with the keys. Without keys, a key is made that ends with the process.
    #[expect(clippy::expect_used, reason = "where there are no random bytes, no hash map can be made either")]
    pub(crate) fn new(host: HostServices) -> Self {
        let HostServices { store, keys, accepts_answer, clock, observers, random } = host;
        let observers = Observers::new(observers, Arc::clone(&clock));
        let store = seal_store(store, keys.as_ref());
        let store = match observers.is_empty() {
            true => store,
            false => Arc::new(ObservedStore::new(store, observers.clone())),
        };
        Self {
            store,
            has_server_keys: keys.is_some(),
            keys: keys.unwrap_or_else(|| Keys::random().expect("random bytes for a key")),
            accepts_answer,
            clock,
            observers,
            candidate: None,
            single_flight: SingleFlight::default(),
            debts: CostDebts::default(),
            random: Mutex::new(random),
        }
    }

    /// The ledger of the store. New entries are charged to the account.
    pub(crate) fn ledger(&self, account: Account) -> Ledger<'_> {
        Ledger::new(self.store.clone(), &*self.clock).with_account(account)
    }

    /// Asks the store, with the time limit of all its operations.
    pub(crate) async fn ask<'q, T: 'q>(
        &self,
        operation: impl FnOnce() -> StoreFuture<'q, T>,
    ) -> Result<T, StoreError> {
        with_store_timeout(&*self.clock, operation).await
    }

    /// Stores the corrections that the store does not have yet, if there are any.
    pub(super) async fn store_corrections(&self) -> Result<(), StoreError> {
        self.correct_limits(Vec::new()).await
    }

    /// Stores corrections. A refund is not tried again: it might be made twice.
    pub(super) async fn correct_limits(
        &self,
        mut corrections: Vec<LimitCorrection>,
    ) -> Result<(), StoreError> {
        let mut missing = self.debts.0.lock().await;
        let debts = corrections.iter().filter(|correction| !correction.is_refund()).cloned();
        let known = missing.len();
        missing.extend(debts);
        corrections.extend(missing.iter().take(known).cloned());
        if corrections.is_empty() {
            return Ok(());
        }
        self.ask(|| self.store.correct(self.clock.now(), &corrections)).await?;
        missing.clear();
        Ok(())
    }

    /// A random number from 0 to 1.
    pub(super) fn random(&self) -> f64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }

    /// A name that no other session has.
    pub(crate) fn unique_name(&self) -> String {
        let number = self.random.lock().unwrap_or_else(PoisonError::into_inner).u128(..);
        HEXLOWER.encode(&number.to_be_bytes())
    }
}
