//! The versions of records as this process has read them, so that a write over one of them needs no further read: the inner store compares
//! its own version.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::host::RecordKey;

/// How many records are remembered.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A version of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownVersion {
    /// As callers know it.
    pub version: u64,
    /// As the inner store counts it.
    pub inner: u64,
    /// The serial number in its envelope.
    pub serial: u64,
}

/// The versions that were read last.
pub struct KnownVersions(Mutex<LruCache<(String, String), KnownVersion>>);

impl KnownVersions {
    pub fn new() -> Self {
        Self(Mutex::new(LruCache::new(MAX_KNOWN)))
    }

    pub fn remember(&self, key: RecordKey<'_>, version: KnownVersion) {
        // Every update is a single step, so a panic elsewhere leaves the cache consistent.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.put((key.space.to_owned(), key.key.to_owned()), version);
    }

    /// Removes and returns what is known of a version: it is about to be replaced.
    pub fn take(&self, key: RecordKey<'_>, version: u64) -> Option<KnownVersion> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.pop(&(key.space.to_owned(), key.key.to_owned())).filter(|known| known.version == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_that_was_read_last_is_known() {
        let key = RecordKey { space: "s", key: "k" };
        let known = KnownVersions::new();
        let (old, new) = (
            KnownVersion { version: 7, inner: 1, serial: 1 },
            KnownVersion { version: 8, inner: 2, serial: 2 },
        );
        known.remember(key, old);
        known.remember(key, new);
        assert_eq!(known.take(RecordKey { space: "other", key: "k" }, 8), None);
        assert_eq!(known.take(key, 7), None);
        known.remember(key, new);
        assert_eq!(known.take(key, 8), Some(new));
        assert_eq!(known.take(key, 8), None, "it was replaced");
    }
}
