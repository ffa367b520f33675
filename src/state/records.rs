//! Records in memory: versioned values with compare-and-swap, deleted only after their expiry, or evicted for a newer
//! record of the same account.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use jiff::Timestamp;

use super::cache::remaining_room;
use super::capacity::{CapacityShares, UNITS_PER_MIB, units};
use crate::host::{
    Account, ConditionalWrite, MAX_RECORD_BYTES, OnQuotaExceeded, Record, RecordKey, RecordPage, StoreError,
};
use crate::json::{MAX_DEPTH, Value};

/// The number of accounts whose lost records are tracked. Beyond it, any account counts as having lost records.
const MAX_TRACKED_LOSSES: usize = 100_000;

/// All records, by space and key.
#[derive(Debug)]
pub struct RecordTable {
    spaces: HashMap<String, BTreeMap<String, StoredRecord>>,
    /// Expiry times, in order.
    due: BTreeSet<(Timestamp, String, String)>,
    /// The records of each account, in the order in which they were written.
    written: BTreeSet<(Account, String, u64, String)>,
    shares: CapacityShares,
    lost: HashSet<Account>,
    anyone_lost: bool,
    /// The latest version number.
    version: u64,
}

#[derive(Debug)]
struct StoredRecord {
    record: Record,
    forget_at: Option<Timestamp>,
    account: Account,
    units: usize,
}

impl RecordTable {
    /// Records with this capacity in units.
    pub fn new(capacity: usize) -> Self {
        Self {
            spaces: HashMap::new(),
            due: BTreeSet::new(),
            written: BTreeSet::new(),
            shares: CapacityShares::new(capacity),
            lost: HashSet::new(),
            anyone_lost: false,
            version: 0,
        }
    }

    /// The record with this key.
    pub fn get(&self, key: RecordKey<'_>) -> Option<Record> {
        Some(self.spaces.get(key.space)?.get(key.key)?.record.clone())
    }

    /// Whether records of an account were refused or evicted.
    pub fn has_lost(&self, account: &Account) -> bool {
        self.anyone_lost || self.lost.contains(account)
    }

    /// Writes a record, if the stored version is the expected one.
    pub fn write(&mut self, now: Timestamp, write: ConditionalWrite<'_>) -> Result<bool, StoreError> {
        let units = units(check_size(write.value)?);
        let ConditionalWrite { key, value, expected_version, forget_at, account, when_full } = write;
        self.remove_expired(now);
        let stored = self.spaces.get(key.space).and_then(|records| records.get(key.key));
        if stored.map(|stored| stored.record.version) != expected_version {
            return Ok(false);
        }
        let (account, held) = stored.map_or((account, 0), |stored| (stored.account, stored.units));
        let more = units.saturating_sub(held);
        while !self.shares.admits(&account, more) {
            self.mark_lost(account);
            let oldest =
                (when_full == OnQuotaExceeded::EvictOldest).then(|| self.oldest(&account, key)).flatten();
            let Some((space, oldest)) = oldest else { return Err(quota_error(self.shares.capacity())) };
            self.remove(&space, &oldest);
        }
        self.remove(key.space, key.key);
        self.version += 1;
        let record = Record { value: value.clone(), version: self.version };
        let (space, key) = (key.space.to_owned(), key.key.to_owned());
        self.due.extend(forget_at.map(|due| (due, space.clone(), key.clone())));
        self.written.insert((account, space.clone(), self.version, key.clone()));
        self.shares.charge(&account, units);
        self.spaces.entry(space).or_default().insert(key, StoredRecord { record, forget_at, account, units });
        Ok(true)
    }

    /// The oldest record of an account in a space, except one.
    fn oldest(&self, account: &Account, but: RecordKey<'_>) -> Option<(String, String)> {
        let from = (*account, but.space.to_owned(), 0, String::new());
        let is_of =
            |(other, space, ..): &&(Account, String, u64, String)| other == account && space == but.space;
        let mut others = self.written.range(from..).take_while(is_of).filter(|(.., key)| key != but.key);
        others.next().map(|(_, space, _, key)| (space.clone(), key.clone()))
    }

    fn mark_lost(&mut self, account: Account) {
        self.lost.insert(account);
        if self.lost.len() > MAX_TRACKED_LOSSES {
            self.lost.clear();
            self.anyone_lost = true;
        }
    }

    fn remove(&mut self, space: &str, key: &str) {
        let Some(removed) = self.spaces.get_mut(space).and_then(|records| records.remove(key)) else {
            return;
        };
        self.shares.release(&removed.account, removed.units);
        let (space, key) = (space.to_owned(), key.to_owned());
        if let Some(due) = removed.forget_at {
            self.due.remove(&(due, space.clone(), key.clone()));
        }
        self.written.remove(&(removed.account, space, removed.record.version, key));
    }

    /// Records whose keys come after `after`.
    pub fn page(&self, space: &str, after: Option<&str>, limit: usize) -> RecordPage {
        let Some(records) = self.spaces.get(space) else { return RecordPage::default() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = records.range::<str, _>((from, Bound::Unbounded));
        let records =
            rest.by_ref().take(limit).map(|(key, stored)| (key.clone(), stored.record.clone())).collect();
        RecordPage { records, more: rest.next().is_some() }
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while let Some((due, space, key)) = self.due.first().cloned() {
            if due > now {
                return;
            }
            self.remove(&space, &key);
        }
    }
}

/// The error of a write when the account's share is full.
pub fn quota_error(capacity: usize) -> StoreError {
    StoreError::QuotaExceeded(format!(
        "this caller's share of the store's {} MiB for records is full",
        capacity / UNITS_PER_MIB
    ))
}

/// The estimated size of a value in bytes, without serialising it.
///
/// # Errors
/// If it is too large, or nested too deeply to be read back.
pub fn check_size(value: &Value) -> Result<usize, StoreError> {
    match remaining_room(value, MAX_RECORD_BYTES, MAX_DEPTH - 1) {
        Some(room) => Ok(MAX_RECORD_BYTES - room),
        None => Err(StoreError::Unavailable(format!(
            "a record must be at most {} MiB and nested less than {MAX_DEPTH} levels deep",
            MAX_RECORD_BYTES >> 20
        ))),
    }
}
