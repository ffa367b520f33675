//! A subset of the limits of a store that holds them elsewhere, loaded for one batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{CLOCK_TOLERANCE, DUE_CHECKS, LimitTable, TrackedLimit};
use crate::host::{Allowance, LimitAcquisition};
use crate::state::capacity::{AccountCharges, CapacityShares};
use crate::state::limit_algorithms::{LimitUsage, Micros};

/// How many due keys are loaded if room is needed, so that they can be removed.
const DUE_CHECKS_WHEN_FULL: usize = 256;

/// The state that all limits of the store share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimitState {
    /// The usage by account, as far as it was loaded.
    pub shares: CapacityShares,
    /// The latest known time.
    pub now: Micros,
}

/// The state of one limit.
pub struct LimitView<'a> {
    pub usage: &'a LimitUsage,
    pub charges: &'a AccountCharges,
    pub allowance: &'a Allowance,
    /// When to check whether it can be removed.
    pub due: Option<Micros>,
}

/// A limit as loaded from the store.
pub struct LoadedLimit {
    pub usage: LimitUsage,
    pub charges: AccountCharges,
    pub allowance: Allowance,
}

impl SharedLimitState {
    /// Whether a batch at this time changes every limit, so that all of them must be loaded.
    pub fn is_step_back(&self, time: Micros) -> bool {
        time < self.now.saturating_sub(CLOCK_TOLERANCE)
    }

    /// How many of the first due keys must be loaded for a batch.
    pub fn due_keys_to_load(&self, takes: &[LimitAcquisition]) -> usize {
        let has_room = takes.iter().all(|take| self.shares.admits(&take.account, takes.len()));
        if has_room { DUE_CHECKS } else { DUE_CHECKS_WHEN_FULL }
    }
}

impl LimitTable {
    /// A subset without any limit yet.
    pub fn subset(whole: SharedLimitState) -> Self {
        Self { keys: HashMap::new(), due: BTreeSet::new(), shares: whole.shares, now: whole.now }
    }

    /// Loads a limit; the shares already include its size.
    pub fn load(&mut self, key: &str, loaded: LoadedLimit, due: Option<Micros>) {
        let key: Arc<str> = Arc::from(key);
        self.due.extend(due.map(|due| (due, Arc::clone(&key))));
        let LoadedLimit { usage, charges, allowance } = loaded;
        self.keys.insert(key, TrackedLimit { usage, charges, allowance, due });
    }

    /// The current state of a limit that was loaded or acquired. Returns `None` if it was removed.
    pub fn get(&self, key: &str) -> Option<LimitView<'_>> {
        let tracked = self.keys.get(key)?;
        let TrackedLimit { usage, charges, allowance, due } = tracked;
        Some(LimitView { usage, charges, allowance, due: *due })
    }

    /// The latest known time.
    pub fn latest_time(&self) -> Micros {
        self.now
    }

    /// The current shared state.
    pub fn shared_state(&self) -> SharedLimitState {
        SharedLimitState { shares: self.shares.clone(), now: self.now }
    }
}
