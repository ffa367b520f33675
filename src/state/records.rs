//! Records in memory: exchanged whole, and forgotten only after their time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use jiff::Timestamp;

use super::cache::room_beside;
use crate::host::{LARGEST_RECORD, Page, Record, RecordKey, StoreError, Write};
use crate::json::{MAX_DEPTH, Value};

/// How many there are at most.
const CAPACITY: usize = 100_000;

/// All records, by space and key.
#[derive(Debug, Default)]
pub struct Records {
    spaces: HashMap<String, BTreeMap<String, Kept>>,
    /// What may be forgotten, in order.
    due: BTreeSet<(Timestamp, String, String)>,
    count: usize,
    /// The last version that was given.
    version: u64,
}

#[derive(Debug)]
struct Kept {
    record: Record,
    forget_at: Option<Timestamp>,
}

impl Records {
    /// The record of this key.
    pub fn get(&self, key: RecordKey<'_>) -> Option<Record> {
        Some(self.spaces.get(key.space)?.get(key.key)?.record.clone())
    }

    /// Writes one, if what stands there is what it is to be written over.
    pub fn write(&mut self, now: Timestamp, write: Write<'_>) -> Result<bool, StoreError> {
        check_size(write.value)?;
        let Write { key: RecordKey { space, key }, value, over, forget_at } = write;
        self.forget_until(now);
        let standing = self.spaces.get(space).and_then(|records| records.get(key));
        if standing.map(|kept| kept.record.version) != over {
            return Ok(false);
        }
        match standing.map(|kept| kept.forget_at) {
            None if self.count >= CAPACITY => {
                return Err(StoreError::Unavailable(format!(
                    "all {CAPACITY} records that there is room for are in use"
                )));
            }
            None => self.count += 1,
            Some(None) => {}
            Some(Some(due)) => {
                self.due.remove(&(due, space.to_owned(), key.to_owned()));
            }
        }
        self.due.extend(forget_at.map(|due| (due, space.to_owned(), key.to_owned())));
        self.version += 1;
        let record = Record { value: value.clone(), version: self.version };
        self.spaces.entry(space.to_owned()).or_default().insert(key.to_owned(), Kept { record, forget_at });
        Ok(true)
    }

    /// Records whose keys come after this one.
    pub fn page(&self, space: &str, after: Option<&str>, limit: usize) -> Page {
        let Some(records) = self.spaces.get(space) else { return Page::default() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = records.range::<str, _>((from, Bound::Unbounded));
        let records =
            rest.by_ref().take(limit).map(|(key, kept)| (key.clone(), kept.record.clone())).collect();
        Page { records, more: rest.next().is_some() }
    }

    fn forget_until(&mut self, now: Timestamp) {
        while let Some((due, space, key)) = self.due.pop_first() {
            if due > now {
                self.due.insert((due, space, key));
                return;
            }
            if let Some(records) = self.spaces.get_mut(&space) {
                self.count -= usize::from(records.remove(&key).is_some());
            }
        }
    }
}

/// Whether a value is small enough to be kept, by an estimate that does not write it out, and can be read again.
pub fn check_size(value: &Value) -> Result<(), StoreError> {
    match room_beside(value, LARGEST_RECORD, MAX_DEPTH - 1) {
        Some(_) => Ok(()),
        None => Err(StoreError::Unavailable(format!(
            "a record of more than {} MiB, or nested {MAX_DEPTH} deep, is not kept",
            LARGEST_RECORD >> 20
        ))),
    }
}
