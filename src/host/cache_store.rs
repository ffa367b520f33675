//! The store of cached results.

use jiff::Timestamp;

use super::Account;
use super::store_operation::StoreFuture;
use crate::json::Value;

/// One cache space: the cached results of one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSpace<'a> {
    /// The name of the space.
    pub name: &'a str,
    /// The maximum number of entries. When there are more, the account with the most entries loses the one that it used
    /// least recently.
    pub max_entries: usize,
    /// The account that uses the space. Entries that it writes are charged to its share of the store.
    pub account: Account,
}

/// A cached result.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    /// The result.
    pub output: Value,
    /// When it was written. The time to live counts from here, however often it is read.
    pub stored_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The result of a cache lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLookup {
    /// The entry, if there is one that has not expired.
    pub entry: Option<CacheEntry>,
    /// How often the space was cleared. Pass it to [`CacheStore::cache_put`], so that a result that was computed before the
    /// space was cleared is not stored afterwards.
    pub generation: u64,
}

/// Stores cached results. The times that callers pass in may step back: a lookup returns no entry that was written in the
/// future.
pub trait CacheStore: Send + Sync {
    /// Looks up a key. A hit marks the entry as used most recently; it does not extend its time to live.
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup>;

    /// Writes an entry, unless the space was cleared since `generation` was read. A store may drop the entry, for example
    /// if it is too large; the previous entry of this key is removed in any case.
    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()>;

    /// Removes every entry of a space.
    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()>;

    /// Whether others than this process can read cached results. Then the engine encrypts them, for which it needs the
    /// server's keys.
    fn exposes_cache(&self) -> bool {
        false
    }
}
