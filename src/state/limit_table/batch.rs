//! The limits that a batch uses, of a store that holds them elsewhere: what is loaded before, and what is written back afterwards.
//!
//! The store reads and writes; which limits, and what of them, is decided here.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::LimitTable;
use super::subset::{LoadedLimit, SharedLimitState};
use crate::host::{Account, Allowance, LimitAcquisition};
use crate::state::capacity::{AccountCharges, CapacityShares};
use crate::state::limit_algorithms::{LimitUsage, Micros, encoding};

/// A limit as a store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredLimit {
    /// It is not in use.
    Absent,
    /// Its usage.
    Row(LimitRow),
    /// So many slots are held. They are stored with their owners.
    Slots(u64),
}

/// The stored usage of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The usage with the allowance of the latest acquisition, encoded.
    pub taken: Vec<u8>,
    /// When to check whether it can be removed.
    pub due: Option<Micros>,
    /// The accounts that are charged for it, encoded.
    pub charges: Vec<u8>,
}

/// The stored usage of this limit can't be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state of the limit `{0}` is damaged; restore a backup")]
pub struct DamagedLimit(pub String);

/// Which limits a batch loads beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FurtherLimits {
    /// All, because the clock has stepped back.
    All,
    /// The first ones that are due by this time, at most so many.
    Due {
        /// The time.
        by: Micros,
        /// The most of them.
        most: usize,
    },
}

/// Loads the limits of a batch.
pub struct BatchLoader<'t> {
    takes: &'t [LimitAcquisition],
    before: SharedLimitState,
    /// The shares, with held slots charged to the caller for the duration of the batch.
    shares: CapacityShares,
    stored: HashMap<String, StoredLimit>,
    loaded: Vec<(String, LoadedLimit)>,
    due_by_now: usize,
}

/// The loaded limits of a batch.
pub struct LimitBatch {
    /// The limits.
    pub limits: LimitTable,
    /// What the limits shared before.
    pub before: SharedLimitState,
    /// How many were loaded because they are due for removal.
    pub due_by_now: usize,
    stored: HashMap<String, StoredLimit>,
    tenants: BTreeSet<Vec<u8>>,
}

/// What a batch has changed.
pub struct BatchChanges<'b> {
    /// The limits whose usage is removed.
    pub removed: Vec<&'b str>,
    /// The limits whose slots are removed.
    pub without_slots: Vec<&'b str>,
    /// The limits whose usage is written.
    pub written: Vec<(&'b str, LimitRow)>,
    /// What the limits share now.
    pub after: SharedLimitState,
}

/// The keys of a batch: of what costs nothing too, because a correction may find that it did.
pub fn keys_of(takes: &[LimitAcquisition]) -> BTreeSet<&str> {
    takes.iter().map(|take| take.key.as_str()).collect()
}

impl<'t> BatchLoader<'t> {
    /// Begins a batch. `before` has the usage of the accounts of `takes`.
    pub fn new(takes: &'t [LimitAcquisition], before: SharedLimitState) -> Self {
        let shares = before.shares.clone();
        Self { takes, before, shares, stored: HashMap::new(), loaded: Vec::new(), due_by_now: 0 }
    }

    /// Adds one of the limits that the batch acquires.
    ///
    /// # Errors
    /// It can't be decoded.
    pub fn add(&mut self, key: &str, stored: StoredLimit) -> Result<(), DamagedLimit> {
        match &stored {
            StoredLimit::Absent => {}
            StoredLimit::Row(row) => self.loaded.push((key.to_owned(), decode(key, row)?)),
            StoredLimit::Slots(held) => {
                let (usage, allowance) = (LimitUsage::Slots(*held), Allowance::Slots { max: 0 });
                let mut limit = LoadedLimit { usage, charges: AccountCharges::default(), allowance };
                if let Some(take) = self.takes.iter().find(|take| take.key == key) {
                    limit.charges.update(&mut self.shares, 1, &take.account);
                }
                self.loaded.push((key.to_owned(), limit));
            }
        }
        self.stored.insert(key.to_owned(), stored);
        Ok(())
    }

    /// Which limits are loaded beside those of the batch, at this time.
    pub fn further_limits(&self, time: Micros) -> FurtherLimits {
        match self.before.is_step_back(time) {
            true => FurtherLimits::All,
            false => FurtherLimits::Due {
                by: self.before.now.max(time),
                most: self.before.due_keys_to_load(self.takes),
            },
        }
    }

    /// Adds one of the further limits, unless it is one of the batch.
    ///
    /// # Errors
    /// It can't be decoded.
    pub fn add_further(
        &mut self,
        further: FurtherLimits,
        key: String,
        row: LimitRow,
    ) -> Result<(), DamagedLimit> {
        self.due_by_now += usize::from(further != FurtherLimits::All);
        if let Entry::Vacant(unseen) = self.stored.entry(key) {
            self.loaded.push((unseen.key().clone(), decode(unseen.key(), &row)?));
            unseen.insert(StoredLimit::Row(row));
        }
        Ok(())
    }

    /// The further accounts that are charged for loaded limits, whose usage is to be loaded.
    pub fn charged_accounts(&self) -> BTreeSet<Account> {
        let stored = self
            .loaded
            .iter()
            .filter(|(key, _)| !matches!(self.stored.get(key), Some(StoredLimit::Slots(_))));
        let charged = stored.flat_map(|(_, limit)| limit.charges.iter().map(|(account, _)| *account));
        charged.filter(|account| self.takes.iter().all(|take| take.account != *account)).collect()
    }

    /// The shares into which the usage of these accounts is loaded.
    pub fn shares_mut(&mut self) -> [&mut CapacityShares; 2] {
        [&mut self.before.shares, &mut self.shares]
    }

    /// The loaded limits.
    pub fn finish(self) -> LimitBatch {
        let tenants = self.takes.iter().map(|take| take.account.tenant().to_vec());
        let charged = self.loaded.iter().flat_map(|(_, limit)| limit.charges.iter());
        let tenants = tenants.chain(charged.map(|(account, _)| account.tenant().to_vec())).collect();
        let Self { before, shares, stored, loaded, due_by_now, .. } = self;
        let mut limits = LimitTable::subset(SharedLimitState { shares, now: before.now });
        for (key, limit) in loaded {
            let due = if let Some(StoredLimit::Row(row)) = stored.get(&key) { row.due } else { None };
            limits.load(&key, limit, due);
        }
        LimitBatch { limits, before, due_by_now, stored, tenants }
    }
}

impl LimitBatch {
    /// The tenants among the holders of capacity.
    pub fn tenants(&self) -> &BTreeSet<Vec<u8>> {
        &self.tenants
    }

    /// What is to be written.
    pub fn changes(&self) -> BatchChanges<'_> {
        let after = self.limits.shared_state();
        let mut changes =
            BatchChanges { removed: Vec::new(), without_slots: Vec::new(), written: Vec::new(), after };
        for (key, stored) in &self.stored {
            let updated = match self.limits.get(key) {
                None => StoredLimit::Absent,
                Some(limit) => match limit.usage {
                    LimitUsage::Slots(held) => {
                        // The number of held slots is stored with their owners.
                        limit.charges.clone().release(&mut changes.after.shares);
                        StoredLimit::Slots(*held)
                    }
                    usage => StoredLimit::Row(LimitRow {
                        taken: encoding::encode(usage, limit.allowance),
                        due: limit.due,
                        charges: limit.charges.to_bytes(),
                    }),
                },
            };
            match (&updated, stored) {
                (StoredLimit::Row(_), StoredLimit::Slots(_)) => changes.without_slots.push(key),
                (StoredLimit::Absent | StoredLimit::Slots(_), StoredLimit::Row(_)) => {
                    changes.removed.push(key)
                }
                _ => {}
            }
            if updated != *stored
                && let StoredLimit::Row(row) = updated
            {
                changes.written.push((key, row));
            }
        }
        changes
    }
}

fn decode(key: &str, row: &LimitRow) -> Result<LoadedLimit, DamagedLimit> {
    let decoded = encoding::decode(&row.taken).zip(AccountCharges::from_bytes(&row.charges));
    let ((usage, allowance), charges) = decoded.ok_or_else(|| DamagedLimit(key.to_owned()))?;
    Ok(LoadedLimit { usage, charges, allowance })
}
