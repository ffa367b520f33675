//! `Members`: the members of an object that nothing else shares. Few are found one by one, which is faster than hashing a key; more are
//! found by hash.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::Key;
use crate::json::Value;

/// As many members are found one by one.
const LISTED: usize = 8;

/// Members in insertion order. Each key is there once.
#[derive(Clone, Default)]
pub(crate) struct Members {
    entries: Vec<(Key, Value)>,
    /// Present exactly if there are more than [`LISTED`] members.
    positions: Option<Box<Positions>>,
}

/// The positions of keys, by hash.
///
/// Each object has its own random seed, so that an attacker cannot choose colliding keys.
#[derive(Clone, Default)]
struct Positions {
    seed: RandomState,
    table: HashTable<usize>,
}

impl Members {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), positions: None }
    }

    pub(super) fn entries(&self) -> &[(Key, Value)] {
        &self.entries
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Key, &mut Value)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }

    pub(super) fn into_entries(self) -> Vec<(Key, Value)> {
        self.entries
    }

    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        match &self.positions {
            None => self.entries.iter().position(|(name, _)| name == key),
            Some(positions) => positions.find(&self.entries, key),
        }
    }

    pub(super) fn value_mut(&mut self, position: usize) -> Option<&mut Value> {
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// Adds a member with a key that no other has.
    pub(crate) fn push(&mut self, key: Key, value: Value) {
        self.entries.push((key, value));
        match &mut self.positions {
            Some(positions) => positions.add_last(&self.entries),
            None if self.entries.len() > LISTED => self.index(),
            None => {}
        }
    }

    /// Sets the value of a key. Returns the replaced value.
    pub(crate) fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        let Some(position) = self.position(&key) else {
            self.push(key, value);
            return None;
        };
        self.value_mut(position).map(|before| std::mem::replace(before, value))
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "the position was found, or is that of the member just added"
    )]
    pub(super) fn get_or_insert_with(&mut self, key: Key, value: impl FnOnce() -> Value) -> &mut Value {
        let position = self.position(&key).unwrap_or_else(|| {
            self.push(key, value());
            self.entries.len() - 1
        });
        &mut self.entries[position].1
    }

    /// Adds a member with a key that no other has at a position, or at the end.
    pub(super) fn insert_at(&mut self, position: usize, key: Key, value: Value) {
        let position = position.min(self.entries.len());
        if position == self.entries.len() {
            return self.push(key, value);
        }
        self.entries.insert(position, (key, value));
        self.index();
    }

    /// Removes the member at a position that there is.
    pub(super) fn remove(&mut self, position: usize) -> (Key, Value) {
        if let Some(positions) = &mut self.positions {
            positions.remove(&self.entries, position);
        }
        let removed = self.entries.remove(position);
        if self.entries.len() <= LISTED {
            self.positions = None;
        }
        removed
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Key, &mut Value) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
        self.index();
    }

    pub(super) fn sort_keys(&mut self) {
        self.entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.index();
    }

    /// Finds all positions again.
    fn index(&mut self) {
        self.positions = (self.entries.len() > LISTED).then(|| Box::new(Positions::of(&self.entries)));
    }
}

impl Positions {
    fn of(entries: &[(Key, Value)]) -> Self {
        let mut positions =
            Self { seed: RandomState::default(), table: HashTable::with_capacity(2 * LISTED) };
        for count in 1..=entries.len() {
            positions.add_last(entries.get(..count).unwrap_or_default());
        }
        positions
    }

    fn find(&self, entries: &[(Key, Value)], key: &str) -> Option<usize> {
        let is_key = |position: &usize| entries.get(*position).is_some_and(|(name, _)| name == key);
        self.table.find(self.seed.hash_one(key), is_key).copied()
    }

    /// Removes the position of an entry. Those after it follow, without their keys being hashed again.
    fn remove(&mut self, entries: &[(Key, Value)], removed: usize) {
        let Some((key, _)) = entries.get(removed) else { return };
        let is_removed = |position: &usize| *position == removed;
        if let Ok(found) = self.table.find_entry(self.seed.hash_one(key.as_str()), is_removed) {
            found.remove();
        }
        for position in self.table.iter_mut().filter(|position| **position > removed) {
            *position -= 1;
        }
    }

    /// Adds the position of the last entry.
    fn add_last(&mut self, entries: &[(Key, Value)]) {
        let Some((last, (key, _))) = entries.len().checked_sub(1).zip(entries.last()) else { return };
        let seed = &self.seed;
        let hash_at =
            |position: &usize| entries.get(*position).map_or(0, |(name, _)| seed.hash_one(name.as_str()));
        self.table.insert_unique(seed.hash_one(key.as_str()), last, hash_at);
    }
}
