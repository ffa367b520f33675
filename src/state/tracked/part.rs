//! A subset of the limits of a store that holds them elsewhere, loaded for one batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{LATE, LOOKED_AT, Limits, Tracked};
use crate::host::{Allowance, Take};
use crate::state::limits::{Micros, Spent};
use crate::state::shares::{Charges, Shares};

/// How many due keys are loaded if room is needed, so that they can be removed.
const WHERE_FULL: usize = 256;

/// The state that all limits of the store share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The usage by account, as far as it was loaded.
    pub shares: Shares,
    /// The latest known time.
    pub now: Micros,
}

/// The state of one limit.
pub struct Limit<'a> {
    pub spent: &'a Spent,
    pub charges: &'a Charges,
    pub allowance: &'a Allowance,
    /// When to check whether it can be removed.
    pub due: Option<Micros>,
}

/// A limit as loaded from the store.
pub struct Brought {
    pub spent: Spent,
    pub charges: Charges,
    pub allowance: Allowance,
}

impl Whole {
    /// Whether a batch at this time changes every limit, so that all of them must be loaded.
    pub fn steps_back(&self, time: Micros) -> bool {
        time < self.now.saturating_sub(LATE)
    }

    /// How many of the first due keys must be loaded for a batch.
    pub fn looked_at(&self, takes: &[Take]) -> usize {
        let has_room = takes.iter().all(|take| self.shares.admits(&take.account, takes.len()));
        if has_room { LOOKED_AT } else { WHERE_FULL }
    }
}

impl Limits {
    /// A subset without any limit yet.
    pub fn part(whole: Whole) -> Self {
        Self { keys: HashMap::new(), due: BTreeSet::new(), shares: whole.shares, now: whole.now }
    }

    /// Loads a limit; the shares already include its size.
    pub fn bring(&mut self, key: &str, brought: Brought, due: Option<Micros>) {
        let key: Arc<str> = Arc::from(key);
        self.due.extend(due.map(|due| (due, Arc::clone(&key))));
        let Brought { spent, charges, allowance } = brought;
        self.keys.insert(key, Tracked { spent, charges, allowance, due });
    }

    /// The current state of a limit that was loaded or acquired. Returns `None` if it was removed.
    pub fn brought(&self, key: &str) -> Option<Limit<'_>> {
        let tracked = self.keys.get(key)?;
        let Tracked { spent, charges, allowance, due } = tracked;
        Some(Limit { spent, charges, allowance, due: *due })
    }

    /// The current shared state.
    pub fn whole(&self) -> Whole {
        Whole { shares: self.shares.clone(), now: self.now }
    }
}
