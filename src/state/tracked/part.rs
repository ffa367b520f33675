//! Some of the limits of a store that keeps them elsewhere, brought here for one batch.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{LATE, LOOKED_AT, Limits, Tracked};
use crate::host::Allowance;
use crate::state::limits::{Micros, Spent};

/// How many keys that are due are brought where there may be no room without letting them go.
const WHERE_FULL: usize = 256;

/// What is true of all limits of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The sum of what they take.
    pub size: usize,
    /// The time that counts.
    pub now: Micros,
}

/// What is tracked of one limit.
pub struct Limit<'a> {
    pub spent: &'a Spent,
    pub allowance: &'a Allowance,
    /// When to look whether it can leave.
    pub due: Option<Micros>,
}

impl Whole {
    /// Whether a batch at this time changes every limit there is, so that all of them must be brought.
    pub fn steps_back(self, time: Micros) -> bool {
        time < self.now.saturating_sub(LATE)
    }

    /// How many keys, the first that are due, must be brought for a batch of so many takes.
    pub fn looked_at(self, capacity: usize, takes: usize) -> usize {
        if self.size.saturating_add(takes) > capacity { WHERE_FULL } else { LOOKED_AT }
    }
}

impl Limits {
    /// A part without any limit yet.
    pub fn part(capacity: usize, whole: Whole) -> Self {
        Self { keys: HashMap::new(), due: BTreeSet::new(), size: whole.size, capacity, now: whole.now }
    }

    /// Brings a limit, whose size counts already.
    pub fn bring(&mut self, key: &str, spent: Spent, allowance: Allowance, due: Option<Micros>) {
        let key: Arc<str> = Arc::from(key);
        self.due.extend(due.map(|due| (due, Arc::clone(&key))));
        self.keys.insert(key, Tracked { spent, allowance, due });
    }

    /// What has become of a limit that was brought or taken of; nothing if it left.
    pub fn brought(&self, key: &str) -> Option<Limit<'_>> {
        let tracked = self.keys.get(key)?;
        Some(Limit { spent: &tracked.spent, allowance: &tracked.allowance, due: tracked.due })
    }

    /// What has become of the whole.
    pub fn whole(&self) -> Whole {
        Whole { size: self.size, now: self.now }
    }
}
