//! Cached results: entries → the arguments of scripts, and replies → entries.

use callgate::host::{CacheEntry, CacheLookup, CacheSpace};
use callgate::json;
use callgate::state::limit_algorithms::since_epoch;
use jiff::Timestamp;

use super::error::RedisStoreError;
use super::limits::{account_argument, number};

/// The longest time to live of the server's own, in milliseconds: a thousand years.
const LONGEST_TTL_MS: i128 = 31_557_600_000_000;

/// The arguments of a lookup.
pub(crate) fn lookup_arguments(now: Timestamp, space: CacheSpace<'_>, key: &str) -> Vec<Vec<u8>> {
    let CacheSpace { name, max_entries, .. } = space;
    vec![number(since_epoch(now)), name.as_bytes().to_vec(), number(max_entries), key.as_bytes().to_vec()]
}

/// A write of an entry.
pub(crate) struct CacheWrite<'w> {
    pub(crate) space: CacheSpace<'w>,
    pub(crate) key: &'w str,
    pub(crate) entry: &'w CacheEntry,
    /// The units that the entry takes. Without any, only the earlier entry is removed.
    pub(crate) units: Option<usize>,
    /// The generation of the space that the entry was computed in.
    pub(crate) generation: u64,
}

impl CacheWrite<'_> {
    /// The arguments of the script, for a cache with this capacity in units.
    pub(crate) fn arguments(&self, capacity: usize) -> Vec<Vec<u8>> {
        let Self { space, key, entry, units, generation } = self;
        let lifetime = (entry.expires_at.as_nanosecond() - entry.stored_at.as_nanosecond()).max(0);
        let output = if units.is_some() { entry.output.to_string() } else { String::new() };
        vec![
            number(capacity),
            number(generation),
            space.name.as_bytes().to_vec(),
            number(space.max_entries),
            key.as_bytes().to_vec(),
            account_argument(&space.account),
            units.map(number).unwrap_or_default(),
            output.into_bytes(),
            number(entry.stored_at),
            number(entry.expires_at),
            number(since_epoch(entry.stored_at)),
            number(since_epoch(entry.expires_at)),
            number((lifetime / 1_000_000 + 1).min(LONGEST_TTL_MS)),
        ]
    }
}

/// The result of a lookup.
pub(crate) fn lookup_of(now: Timestamp, reply: &[String]) -> Result<CacheLookup, RedisStoreError> {
    let damaged = || RedisStoreError::Damaged("the cached results are damaged".to_owned());
    let (generation, rest) = reply.split_first().ok_or_else(damaged)?;
    let generation = generation.parse().map_err(|_| damaged())?;
    // An unreadable entry counts as missing.
    let entry = match rest {
        [output, stored_at, expires_at] => read_entry(output, stored_at, expires_at),
        _ => None,
    };
    let entry = entry.filter(|entry| entry.stored_at <= now && now < entry.expires_at);
    Ok(CacheLookup { entry, generation })
}

fn read_entry(output: &str, stored_at: &str, expires_at: &str) -> Option<CacheEntry> {
    Some(CacheEntry {
        output: json::parse(output).ok()?,
        stored_at: stored_at.parse().ok()?,
        expires_at: expires_at.parse().ok()?,
    })
}
