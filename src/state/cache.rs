//! Results kept for their time, in spaces that each let go what was used longest ago.

use std::sync::Arc;

use jiff::Timestamp;
use lru::LruCache;

use crate::host::{CacheEntry, CacheSpace};
use crate::json::{MAX_DEPTH, Value};

/// How many spaces are kept; there is one for each policy that caches.
pub const SPACES: usize = 1024;

/// What an entry with its key may measure, in bytes of JSON.
const LARGEST_ENTRY: usize = 1 << 20;

/// Every space of a store.
#[derive(Debug)]
pub struct Caches {
    spaces: LruCache<String, Space>,
    /// How often anything was cleared.
    cleared: u64,
    /// The generation of every space that is not kept. It is a new one when a space is let go, so that what was on its way
    /// to a space is not kept after the space was cleared, even if the space was never written or is long forgotten.
    elsewhere: u64,
}

#[derive(Debug)]
struct Space {
    entries: LruCache<String, Arc<CacheEntry>>,
    generation: u64,
}

impl Default for Caches {
    fn default() -> Self {
        Self { spaces: LruCache::unbounded(), cleared: 0, elsewhere: 0 }
    }
}

impl Caches {
    /// The entry if it has not expired, and the generation of the space.
    pub fn get(
        &mut self,
        now: Timestamp,
        space: CacheSpace<'_>,
        key: &str,
    ) -> (Option<Arc<CacheEntry>>, u64) {
        let Some(kept) = self.spaces.get_mut(space.name) else { return (None, self.elsewhere) };
        kept.shrink_to(space.max_entries);
        // An entry of the future was written before the clock stepped back: how old it is can't be known.
        let alive = |entry: &CacheEntry| entry.stored_at <= now && now < entry.expires_at;
        let entry = kept.entries.get(key).filter(|entry| alive(entry)).map(Arc::clone);
        if entry.is_none() {
            kept.entries.pop(key);
        }
        (entry, kept.generation)
    }

    /// Keeps an entry that [`fits`], in place of an earlier one, unless the space is of another generation.
    pub fn put(&mut self, space: CacheSpace<'_>, key: &str, entry: Option<Arc<CacheEntry>>, generation: u64) {
        if generation != self.spaces.peek(space.name).map_or(self.elsewhere, |kept| kept.generation) {
            return;
        }
        if !self.spaces.contains(space.name) && entry.is_some() && space.max_entries > 0 {
            self.spaces.put(space.name.to_owned(), Space { entries: LruCache::unbounded(), generation });
            self.let_spaces_go();
        }
        let Some(kept) = self.spaces.get_mut(space.name) else { return };
        match entry {
            Some(entry) => kept.entries.put(key.to_owned(), entry),
            None => kept.entries.pop(key),
        };
        kept.shrink_to(space.max_entries);
    }

    /// Drops the entries of a space, and what is on its way to it.
    pub fn clear(&mut self, space: &str) {
        self.cleared += 1;
        match self.spaces.get_mut(space) {
            Some(kept) => *kept = Space { entries: LruCache::unbounded(), generation: self.cleared },
            None => self.elsewhere = self.cleared,
        }
    }

    fn let_spaces_go(&mut self) {
        while self.spaces.len() > SPACES {
            self.spaces.pop_lru();
            self.cleared += 1;
            self.elsewhere = self.cleared;
        }
    }
}

impl Space {
    fn shrink_to(&mut self, max_entries: usize) {
        while self.entries.len() > max_entries {
            self.entries.pop_lru();
        }
    }
}

/// Whether a result with its key is small enough to be kept: at most [`LARGEST_ENTRY`], by an estimate that does not
/// write it out.
pub fn fits(key: &str, output: &Value) -> bool {
    let room = LARGEST_ENTRY.checked_sub(key.len());
    room.and_then(|room| room_beside(output, room, MAX_DEPTH)).is_some()
}

/// What is left of so much room beside a value as JSON. Nothing if it has no room, or is nested too deeply.
pub fn room_beside(value: &Value, room: usize, depth: usize) -> Option<usize> {
    // The comma after it, or the bracket that closes what it is in.
    let room = room.checked_sub(1)?;
    match value {
        Value::Null | Value::Bool(_) => room.checked_sub(5),
        Value::Number(number) => room.checked_sub(number.text().len()),
        Value::String(text) => room.checked_sub(text.len() + 2),
        Value::Array(items) => {
            let (room, depth) = (room.checked_sub(1)?, depth.checked_sub(1)?);
            items.iter().try_fold(room, |room, item| room_beside(item, room, depth))
        }
        Value::Object(entries) => {
            let (room, depth) = (room.checked_sub(1)?, depth.checked_sub(1)?);
            entries.iter().try_fold(room, |room, (key, value)| {
                room_beside(value, room.checked_sub(key.len() + 3)?, depth)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    fn here(name: &str) -> CacheSpace<'_> {
        CacheSpace { name, max_entries: 10 }
    }

    fn entry() -> Option<Arc<CacheEntry>> {
        let (stored_at, expires_at) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        Some(Arc::new(CacheEntry { output: json!(1), stored_at, expires_at }))
    }

    fn put(caches: &mut Caches, name: &str) {
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here(name), "k");
        caches.put(here(name), "k", entry(), generation);
    }

    fn holds(caches: &mut Caches, name: &str) -> bool {
        caches.get(Timestamp::UNIX_EPOCH, here(name), "k").0.is_some()
    }

    #[test]
    fn sizes_are_near_those_of_the_text() {
        for value in [
            json!(null),
            json!([true, false, 1, -2.5e10, "text", {"key": {"other": []}}]),
            json!(vec!["0123456789"; 500]),
            json!((0..500).map(|key| (key.to_string(), json!(key))).collect::<crate::json::Map>()),
        ] {
            let text = value.to_string().len();
            let size = LARGEST_ENTRY - room_beside(&value, LARGEST_ENTRY, MAX_DEPTH).unwrap();
            assert!(size >= text && size <= text + text / 10 + 8, "{size} for {text}");
        }
    }

    #[test]
    fn what_is_too_large_or_too_deep_does_not_fit() {
        let half = "x".repeat(LARGEST_ENTRY / 2);
        assert!(fits("k", &json!({"a": half})));
        assert!(!fits("k", &json!({"a": half, "b": half})));
        assert!(!fits(&half, &json!(half)));
        assert!(!fits("k", &json!(vec![0; LARGEST_ENTRY])));
        let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
        assert!(fits("k", &nested(MAX_DEPTH)));
        assert!(!fits("k", &nested(MAX_DEPTH + 1)));
    }

    #[test]
    fn what_does_not_fit_leaves_nothing_in_its_place() {
        let mut caches = Caches::default();
        put(&mut caches, "s");
        assert!(holds(&mut caches, "s"));
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("s"), "k");
        caches.put(here("s"), "k", None, generation);
        assert!(!holds(&mut caches, "s"));
    }

    #[test]
    fn too_many_spaces_let_go_the_one_used_longest_ago() {
        let mut caches = Caches::default();
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("late"), "k");
        put(&mut caches, "first");
        for number in 0..SPACES {
            assert!(holds(&mut caches, "first"));
            put(&mut caches, &format!("s{number}"));
        }
        assert_eq!(caches.spaces.len(), SPACES);
        assert!(!holds(&mut caches, "s0"));
        assert!(holds(&mut caches, "first"));
        // What was told before the space was let go is not believed: it may have been cleared since.
        caches.put(here("late"), "k", entry(), generation);
        assert!(!holds(&mut caches, "late"));
        put(&mut caches, "late");
        assert!(holds(&mut caches, "late"));
    }

    #[test]
    fn a_space_without_entries_is_not_made() {
        let mut caches = Caches::default();
        assert!(!holds(&mut caches, "read"));
        caches.clear("cleared");
        let (_, generation) = caches.get(Timestamp::UNIX_EPOCH, here("large"), "k");
        caches.put(here("large"), "k", None, generation);
        caches.put(CacheSpace { name: "none", max_entries: 0 }, "k", entry(), generation);
        assert_eq!(caches.spaces.len(), 0);
    }
}
