//! Cached results as text, for a host's own cache.

use callgate::host::CacheEntry;
use callgate::json;
use jiff::Timestamp;

/// The text of an entry.
pub fn write_entry(entry: &CacheEntry) -> String {
    format!("{} {} {}", entry.stored_at, entry.expires_at, entry.output)
}

/// Reads the text of an entry. Returns `None` if it has expired, was written in the future, or is something else.
pub fn read_entry(text: &str, now: Timestamp) -> Option<CacheEntry> {
    let mut parts = text.splitn(3, ' ');
    let mut time = || parts.next()?.parse::<Timestamp>().ok();
    let (stored_at, expires_at) = (time()?, time()?);
    let output = json::parse(parts.next()?).ok()?;
    (stored_at <= now && now < expires_at).then_some(CacheEntry { output, stored_at, expires_at })
}
