//! Some of the limits of a store that keeps them elsewhere, brought here for one batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{LATE, LOOKED_AT, Limits, Tracked};
use crate::host::{Allowance, Take};
use crate::state::limits::{Micros, Spent};
use crate::state::shares::{Charges, Shares};

/// How many keys that are due are brought where there may be no room without letting them go.
const WHERE_FULL: usize = 256;

/// What is true of all limits of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Who holds how much, as far as that was brought.
    pub shares: Shares,
    /// The time that counts.
    pub now: Micros,
}

/// What is tracked of one limit.
pub struct Limit<'a> {
    pub spent: &'a Spent,
    pub charges: &'a Charges,
    pub allowance: &'a Allowance,
    /// When to look whether it can leave.
    pub due: Option<Micros>,
}

/// A limit as it lies elsewhere.
pub struct Brought {
    pub spent: Spent,
    pub charges: Charges,
    pub allowance: Allowance,
}

impl Whole {
    /// Whether a batch at this time changes every limit there is, so that all of them must be brought.
    pub fn steps_back(&self, time: Micros) -> bool {
        time < self.now.saturating_sub(LATE)
    }

    /// How many keys, the first that are due, must be brought for a batch of so many takes.
    pub fn looked_at(&self, takes: &[Take]) -> usize {
        let has_room = takes.iter().all(|take| self.shares.admits(&take.account, takes.len()));
        if has_room { LOOKED_AT } else { WHERE_FULL }
    }
}

impl Limits {
    /// A part without any limit yet.
    pub fn part(whole: Whole) -> Self {
        Self { keys: HashMap::new(), due: BTreeSet::new(), shares: whole.shares, now: whole.now }
    }

    /// Brings a limit, whose size counts already.
    pub fn bring(&mut self, key: &str, brought: Brought, due: Option<Micros>) {
        let key: Arc<str> = Arc::from(key);
        self.due.extend(due.map(|due| (due, Arc::clone(&key))));
        let Brought { spent, charges, allowance } = brought;
        self.keys.insert(key, Tracked { spent, charges, allowance, due });
    }

    /// What has become of a limit that was brought or taken of; nothing if it left.
    pub fn brought(&self, key: &str) -> Option<Limit<'_>> {
        let tracked = self.keys.get(key)?;
        let Tracked { spent, charges, allowance, due } = tracked;
        Some(Limit { spent, charges, allowance, due: *due })
    }

    /// What has become of the whole.
    pub fn whole(&self) -> Whole {
        Whole { shares: self.shares.clone(), now: self.now }
    }
}
