//! Results kept for their time, in spaces that each let go what was used longest ago.

use std::sync::Arc;

use jiff::Timestamp;
use lru::LruCache;
use serde_json::Value;

use crate::host::{CacheEntry, CacheSpace};
use crate::json::MAX_DEPTH;

/// How many spaces are kept; there is one for each policy that caches.
const SPACES: usize = 1024;

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
fn room_beside(value: &Value, room: usize, depth: usize) -> Option<usize> {
    // A comma or a bracket comes with every value.
    let room = room.checked_sub(1)?;
    match value {
        Value::Null | Value::Bool(_) => room.checked_sub(4),
        Value::Number(number) => room.checked_sub(number.as_str().len()),
        Value::String(text) => room.checked_sub(text.len() + 2),
        Value::Array(items) => {
            let depth = depth.checked_sub(1)?;
            items.iter().try_fold(room, |room, item| room_beside(item, room, depth))
        }
        Value::Object(entries) => {
            let depth = depth.checked_sub(1)?;
            entries.iter().try_fold(room, |room, (key, value)| {
                room_beside(value, room.checked_sub(key.len() + 3)?, depth)
            })
        }
    }
}
