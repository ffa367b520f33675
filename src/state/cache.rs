//! Cached results in memory, grouped into spaces. When there are too many, the account with the most loses its least
//! recently used entries.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use jiff::Timestamp;
use lru::LruCache;

use super::capacity::{heaviest_accounts, units};
use crate::host::{Account, CacheEntry, CacheSpace};
use crate::json::{MAX_DEPTH, Value};

/// The maximum number of spaces; each policy that caches uses one.
pub const MAX_SPACES: usize = 1024;

/// The maximum size of an entry with its key, in bytes of JSON.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// All cache spaces of a store.
#[derive(Debug)]
pub struct CacheSpaces {
    spaces: LruCache<String, CachedSpace>,
    /// The capacity in units.
    capacity: usize,
    /// The units that each account holds in all spaces.
    units_by_account: HashMap<Account, usize>,
    used: usize,
    /// How often anything was cleared.
    cleared: u64,
    /// The generation of every space that is not stored. It changes when a space is dropped, so that a result computed
    /// before its space was cleared is not stored afterwards, even if the space was never written or was dropped long ago.
    unstored_generation: u64,
}

#[derive(Debug)]
struct CachedSpace {
    entries: LruCache<String, CachedResult>,
    /// The number of entries that each account has in this space.
    entries_by_account: HashMap<Account, usize>,
    generation: u64,
}

#[derive(Debug)]
struct CachedResult {
    entry: Arc<CacheEntry>,
    account: Account,
    units: usize,
}

impl CacheSpaces {
    /// Caches with this capacity in units.
    pub fn new(capacity: usize) -> Self {
        let (spaces, units_by_account) = (LruCache::unbounded(), HashMap::new());
        Self { spaces, capacity, units_by_account, used: 0, cleared: 0, unstored_generation: 0 }
    }

    /// The entry, if it has not expired, and the generation of the space.
    pub fn get(
        &mut self,
        now: Timestamp,
        space: CacheSpace<'_>,
        key: &str,
    ) -> (Option<Arc<CacheEntry>>, u64) {
        self.evict_from_space(space);
        let Some(cached_space) = self.spaces.get_mut(space.name) else {
            return (None, self.unstored_generation);
        };
        // An entry from the future was written before the clock stepped back: its age is unknown.
        let alive = |entry: &CacheEntry| entry.stored_at <= now && now < entry.expires_at;
        let found = cached_space.entries.get(key).map(|result| &result.entry);
        let entry = found.filter(|entry| alive(entry)).map(Arc::clone);
        let generation = cached_space.generation;
        if entry.is_none() {
            self.remove(space.name, key);
        }
        (entry, generation)
    }

    /// Stores an entry that [`entry_size`], with its size in bytes, unless the generation of the space has changed. Replaces an
    /// earlier entry.
    pub fn put(
        &mut self,
        space: CacheSpace<'_>,
        key: &str,
        entry: Option<(Arc<CacheEntry>, usize)>,
        generation: u64,
    ) {
        if generation
            != self
                .spaces
                .peek(space.name)
                .map_or(self.unstored_generation, |cached_space| cached_space.generation)
        {
            return;
        }
        if !self.spaces.contains(space.name) && entry.is_some() && space.max_entries > 0 {
            self.spaces.put(space.name.to_owned(), CachedSpace::new(generation));
            self.drop_excess_spaces();
        }
        self.remove(space.name, key);
        if let (Some((entry, size)), Some(cached_space)) = (entry, self.spaces.get_mut(space.name)) {
            let (account, units) = (space.account, units(size));
            cached_space.entries.put(key.to_owned(), CachedResult { entry, account, units });
            *cached_space.entries_by_account.entry(account).or_default() += 1;
            *self.units_by_account.entry(account).or_default() += units;
            self.used += units;
        }
        self.evict_from_space(space);
        self.evict_to_capacity();
    }

    /// Removes the entries of a space, and invalidates results that are still being computed for it.
    pub fn clear(&mut self, space: &str) {
        self.cleared += 1;
        let generation = self.cleared;
        match self
            .spaces
            .get_mut(space)
            .map(|cached_space| mem::replace(cached_space, CachedSpace::new(generation)))
        {
            Some(cleared) => self.release_all(cleared),
            None => self.unstored_generation = self.cleared,
        }
    }

    fn drop_excess_spaces(&mut self) {
        while self.spaces.len() > MAX_SPACES {
            if let Some((_, space)) = self.spaces.pop_lru() {
                self.release_all(space);
            }
            self.cleared += 1;
            self.unstored_generation = self.cleared;
        }
    }

    /// Evicts the excess entries of one space.
    fn evict_from_space(&mut self, space: CacheSpace<'_>) {
        while let Some(cached_space) = self.spaces.peek(space.name) {
            if cached_space.entries.len() <= space.max_entries {
                return;
            }
            let heaviest = heaviest_accounts(
                cached_space.entries_by_account.iter().map(|(account, held)| (*account, *held)),
            );
            let Some(key) = cached_space.least_recently_used(&heaviest) else { return };
            self.remove(space.name, &key);
        }
    }

    /// Evicts entries until all spaces fit the capacity.
    fn evict_to_capacity(&mut self) {
        while self.used > self.capacity {
            let heaviest =
                heaviest_accounts(self.units_by_account.iter().map(|(account, held)| (*account, *held)));
            // The least recently used space comes last.
            let is_stored = |space: &CachedSpace| {
                heaviest.iter().any(|account| space.entries_by_account.contains_key(account))
            };
            let found = self.spaces.iter().rev().find(|(_, space)| is_stored(space));
            let found =
                found.and_then(|(name, space)| Some((name.clone(), space.least_recently_used(&heaviest)?)));
            let Some((name, key)) = found else { return };
            self.remove(&name, &key);
        }
    }

    fn remove(&mut self, space: &str, key: &str) {
        let Some(space) = self.spaces.peek_mut(space) else { return };
        if let Some(result) = space.entries.pop(key) {
            release(&mut space.entries_by_account, result.account, 1);
            self.release(&result);
        }
    }

    fn release_all(&mut self, space: CachedSpace) {
        for (_, result) in &space.entries {
            self.release(result);
        }
    }

    fn release(&mut self, result: &CachedResult) {
        release(&mut self.units_by_account, result.account, result.units);
        self.used = self.used.saturating_sub(result.units);
    }
}

impl CachedSpace {
    fn new(generation: u64) -> Self {
        Self { entries: LruCache::unbounded(), entries_by_account: HashMap::new(), generation }
    }

    /// The key of the least recently used entry of these accounts.
    fn least_recently_used(&self, accounts: &HashSet<Account>) -> Option<String> {
        let oldest = self.entries.iter().rev().find(|(_, result)| accounts.contains(&result.account));
        oldest.map(|(key, _)| key.clone())
    }
}

fn release(held: &mut HashMap<Account, usize>, account: Account, less: usize) {
    if let Some(own) = held.get_mut(&account) {
        *own = own.saturating_sub(less);
        if *own == 0 {
            held.remove(&account);
        }
    }
}

/// The estimated size of a result with its key, in bytes, without serialising it. Returns `None` if it can't be stored:
/// larger than `MAX_ENTRY_BYTES`, or nested too deeply.
pub fn entry_size(key: &str, output: &Value) -> Option<usize> {
    let room = remaining_room(output, MAX_ENTRY_BYTES.checked_sub(key.len())?, MAX_DEPTH)?;
    Some(MAX_ENTRY_BYTES - room)
}

/// The capacity that remains after storing a value as JSON. Returns `None` if the value does not fit, or is nested too
/// deeply.
pub fn remaining_room(value: &Value, room: usize, depth: usize) -> Option<usize> {
    // The comma after the value, or the closing bracket of its container.
    let room = room.checked_sub(1)?;
    match value {
        Value::Null | Value::Bool(_) => room.checked_sub(5),
        Value::Number(number) => room.checked_sub(number.text().len()),
        Value::String(text) => room.checked_sub(text.len() + 2),
        Value::Array(items) => {
            let (room, depth) = (room.checked_sub(1)?, depth.checked_sub(1)?);
            items.iter().try_fold(room, |room, item| remaining_room(item, room, depth))
        }
        Value::Object(entries) => {
            let (room, depth) = (room.checked_sub(1)?, depth.checked_sub(1)?);
            entries.iter().try_fold(room, |room, (key, value)| {
                remaining_room(value, room.checked_sub(key.len() + 3)?, depth)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    fn here(name: &str) -> CacheSpace<'_> {
        CacheSpace { name, max_entries: 10, account: Account::NOBODY }
    }

    fn entry() -> Option<(Arc<CacheEntry>, usize)> {
        let (stored_at, expires_at) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        Some((Arc::new(CacheEntry { output: json!(1), stored_at, expires_at }), 1))
    }

    fn put(caches: &mut CacheSpaces, name: &str) {
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here(name), "k");
        caches.put(here(name), "k", entry(), generation);
    }

    fn holds(caches: &mut CacheSpaces, name: &str) -> bool {
        caches.get(Timestamp::UNIX_EPOCH, here(name), "k").0.is_some()
    }

    #[test]
    fn estimated_sizes_are_close_to_serialised_sizes() {
        for value in [
            json!(null),
            json!([true, false, 1, -2.5e10, "text", {"key": {"other": []}}]),
            json!(vec!["0123456789"; 500]),
            json!((0..500).map(|key| (key.to_string(), json!(key))).collect::<crate::json::Map>()),
        ] {
            let text = value.to_string().len();
            let size = MAX_ENTRY_BYTES - remaining_room(&value, MAX_ENTRY_BYTES, MAX_DEPTH).unwrap();
            assert!(size >= text && size <= text + text / 10 + 8, "{size} for {text}");
        }
    }

    #[test]
    fn rejects_values_that_are_too_large_or_too_deep() {
        let half = "x".repeat(MAX_ENTRY_BYTES / 2);
        assert!(entry_size("k", &json!({"a": half})).is_some());
        assert!(entry_size("k", &json!({"a": half, "b": half})).is_none());
        assert!(entry_size(&half, &json!(half)).is_none());
        assert!(entry_size("k", &json!(vec![0; MAX_ENTRY_BYTES])).is_none());
        let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
        assert!(entry_size("k", &nested(MAX_DEPTH)).is_some());
        assert!(entry_size("k", &nested(MAX_DEPTH + 1)).is_none());
    }

    #[test]
    fn an_entry_that_does_not_fit_removes_the_earlier_one() {
        let mut caches = CacheSpaces::new(10_000);
        put(&mut caches, "s");
        assert!(holds(&mut caches, "s"));
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("s"), "k");
        caches.put(here("s"), "k", None, generation);
        assert!(!holds(&mut caches, "s"));
    }

    #[test]
    fn drops_the_least_recently_used_space() {
        let mut caches = CacheSpaces::new(10_000);
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("late"), "k");
        put(&mut caches, "first");
        for number in 0..MAX_SPACES {
            assert!(holds(&mut caches, "first"));
            put(&mut caches, &format!("s{number}"));
        }
        assert_eq!(caches.spaces.len(), MAX_SPACES);
        assert!(!holds(&mut caches, "s0"));
        assert!(holds(&mut caches, "first"));
        // The generation from before the space was dropped is rejected: the space may have been cleared since.
        caches.put(here("late"), "k", entry(), generation);
        assert!(!holds(&mut caches, "late"));
        put(&mut caches, "late");
        assert!(holds(&mut caches, "late"));
    }

    #[test]
    fn usage_by_account_matches_the_entries() {
        let accounts = [1, 2].map(|name| Account::from_context(&json!({ "principal": name.to_string() })));
        let mut caches = CacheSpaces::new(8);
        for (number, account) in accounts.iter().cycle().take(40).enumerate() {
            let name = ["a", "b", "c"][number % 3];
            let space = CacheSpace { name, max_entries: 4, account: *account };
            let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, space, "k");
            let entry = entry().map(|(entry, _)| (entry, number * 100));
            caches.put(space, &number.to_string(), entry, generation);
            if number % 11 == 10 {
                caches.clear("a");
            }
            let all = caches.spaces.iter().flat_map(|(_, space)| space.entries.iter());
            assert_eq!(caches.used, all.map(|(_, result)| result.units).sum::<usize>());
            assert_eq!(caches.used, caches.units_by_account.values().sum::<usize>());
            assert!(caches.used <= 8);
            for (_, space) in &caches.spaces {
                assert_eq!(space.entries.len(), space.entries_by_account.values().sum::<usize>());
            }
        }
    }

    #[test]
    fn spaces_without_entries_are_not_created() {
        let mut caches = CacheSpaces::new(10_000);
        assert!(!holds(&mut caches, "read"));
        caches.clear("cleared");
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("large"), "k");
        caches.put(here("large"), "k", None, generation);
        caches.put(CacheSpace { max_entries: 0, ..here("none") }, "k", entry(), generation);
        assert_eq!(caches.spaces.len(), 0);
    }
}
