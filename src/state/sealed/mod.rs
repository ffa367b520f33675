//! Sealed stores: any [`StateStore`], with each record and cached result encrypted and authenticated by the server's keys.
//!
//! An attacker who can write the inner store, but has neither the keys nor the anchor, can make calls fail, but can't
//! approve a call, run one again, or reset a limit.

mod anchor;
mod copy;
mod envelope;
mod identity;
mod keyed_names;
mod keyless_store;
mod known_versions;
mod operations;

use std::array;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::json::Value;
use jiff::Timestamp;
use tokio::sync::{Mutex, OnceCell};

use self::anchor::{Anchor, VersionStatus};
pub use self::copy::{CopiedRecords, CopyError};
use self::envelope::{Envelope, RecordLocation};
pub use self::identity::{IntegrityError, has_seals};
use self::keyless_store::KeylessStore;
use self::known_versions::{KnownVersion, KnownVersions};
use super::cache::remaining_room;
use super::limit_algorithms::since_epoch;
use crate::host::{
    Allowance, Clock, ConditionalWrite, LimitAcquisition, OnQuotaExceeded, Record, RecordKey, StateStore,
    StoreError,
};
use crate::json::MAX_DEPTH;
use crate::seal::Keys;

/// A store whose records and cached results are encrypted and authenticated with the server's keys.
///
/// | data | in the inner store |
/// | --- | --- |
/// | values of records, cached results | encrypted and authenticated, bound to the store, their location and their serial number |
/// | keys of limits and of cached results | keyed digests |
/// | names of spaces, keys and serial numbers of records, times, counts of limits | in plain text |
///
/// A seal binds the value to its store, its location and its serial number, so that records can't be swapped. A seal alone
/// does not show that a record is the latest version. That needs an *anchor*: a second store that a writer of the first one
/// can't change, such as a file beside the keys. The anchor stores the latest serial number of each record and the usage of
/// limits. With it, a record that was removed or replaced by an older version results in [`StoreError::Altered`], one of
/// two concurrent writes of a record succeeds whatever the store reports, and a limit that was reset still refuses.
///
/// Not detected: a store and an anchor that are both replaced by older copies; changes of the last writes before a power
/// failure, if the anchor did not reach the disk and an attacker then restores older records; and a cached result that is
/// restored after its removal, until its time to live ends.
pub struct SealedStore {
    inner: Arc<dyn StateStore>,
    keys: Keys,
    anchor: Option<Anchor>,
    /// The name of the store, once it is known.
    identity: OnceCell<String>,
    /// Writers of the same record in this process are serialised, so that none is overtaken before the anchor has its
    /// version. The hash of a record's key selects the lock.
    write_locks: [Mutex<()>; WRITE_LOCKS],
    hasher: RandomState,
    known: KnownVersions,
}

/// How many records can be written concurrently.
const WRITE_LOCKS: usize = 64;
/// How often a record is read again after concurrent writes.
const MAX_ATTEMPTS: usize = 64;

/// Wraps a store for use with the server's keys: sealed, if other processes can read or write any part of it. Without keys,
/// every operation of such a store fails.
pub fn seal_store(store: Arc<dyn StateStore>, keys: Option<&Keys>) -> Arc<dyn StateStore> {
    let exposes_records = store.is_shared() && !store.is_sealed();
    match keys {
        _ if !exposes_records && !store.exposes_limits() && !store.exposes_cache() => store,
        Some(keys) => Arc::new(SealedStore::new(store, keys.clone())),
        None => Arc::new(KeylessStore),
    }
}

/// The record that a write replaces.
struct ReplacedRecord {
    /// Its version in the inner store; `None` if there is no record.
    version: Option<u64>,
    /// The serial number of the write.
    serial: u64,
}

/// A record with a valid seal that is the latest version.
struct VerifiedRecord {
    envelope: Envelope,
    /// The version in the inner store.
    version: u64,
}

impl SealedStore {
    /// The largest value of a record, in bytes of JSON.
    pub const MAX_RECORD_BYTES: usize = 3 << 20;

    /// Seals the records of a store, without an anchor: a record that is replaced by an older version is not detected.
    pub fn new(inner: Arc<dyn StateStore>, keys: Keys) -> Self {
        let write_locks = array::from_fn(|_| Mutex::default());
        let (identity, hasher, known) = (OnceCell::new(), RandomState::new(), KnownVersions::new());
        Self { inner, keys, anchor: None, identity, write_locks, hasher, known }
    }

    /// Seals the records of a store, and stores their latest versions in `anchor`. `clock` decides whether a record may
    /// have expired.
    pub fn with_anchor(
        inner: Arc<dyn StateStore>,
        keys: Keys,
        anchor: Arc<dyn StateStore>,
        clock: impl Clock + 'static,
    ) -> Self {
        Self { anchor: Some(Anchor::new(anchor, clock)), ..Self::new(inner, keys) }
    }

    /// Verifies that the store belongs to the holders of the keys and to the anchor. A store without records becomes
    /// theirs. Records that are sealed with an older key are sealed again with the current one.
    ///
    /// The first use of the store does the same.
    ///
    /// # Errors
    /// If the store is rejected or unavailable.
    pub async fn open(&self) -> Result<(), IntegrityError> {
        let identity = self.identify(false).await?;
        // A concurrent call has found the same.
        let _ = self.identity.set(identity);
        Ok(())
    }

    /// Accepts the store as it is now for a new anchor: after a backup was restored, or to start again with an empty store.
    /// Records still need a valid seal.
    ///
    /// # Errors
    /// If the store was sealed with other keys, or is unavailable.
    pub async fn accept(&self) -> Result<(), IntegrityError> {
        let identity = self.identify(true).await?;
        let _ = self.identity.set(identity);
        Ok(())
    }

    async fn identity(&self) -> Result<&str, StoreError> {
        let identity = self.identity.get_or_try_init(|| async { self.identify(false).await }).await;
        identity.map(String::as_str).map_err(StoreError::from)
    }

    /// The record with this key, and the serial number for the next write.
    async fn verified_record(
        &self,
        store: &str,
        key: RecordKey<'_>,
    ) -> Result<(Option<VerifiedRecord>, u64), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            if let Some(found) = self.try_verified_record(store, key).await? {
                return Ok(found);
            }
        }
        Err(StoreError::Unavailable(format!(
            "the record `{}` of `{}` is being written by too many writers; try again",
            key.key, key.space
        )))
    }

    /// The same. Returns `None` if so many writes followed that it is unknown whether the record is valid.
    async fn try_verified_record(
        &self,
        store: &str,
        key: RecordKey<'_>,
    ) -> Result<Option<(Option<VerifiedRecord>, u64)>, StoreError> {
        // Read before the record: a version that is written in between is newer than the anchor's, never older.
        let known = match &self.anchor {
            Some(anchor) => anchor.anchored_record(key).await?,
            None => None,
        };
        let found = self.inner.record(key).await?;
        let stored = match found {
            Some(record) => Some(self.decrypt_record(store, key, record)?),
            None => None,
        };
        let latest = known.as_ref().map_or(0, |known| known.latest());
        if let Some(anchor) = &self.anchor {
            let envelope = stored.as_ref().map(|stored| &stored.envelope);
            if let VersionStatus::Overtaken = anchor.check(key, known, envelope).await? {
                return Ok(None);
            }
        }
        let serial = stored.as_ref().map_or(latest, |stored| stored.envelope.serial.max(latest));
        Ok(Some((stored, serial.saturating_add(1))))
    }

    fn decrypt_record(
        &self,
        store: &str,
        key: RecordKey<'_>,
        record: Record,
    ) -> Result<VerifiedRecord, StoreError> {
        match Envelope::open(&self.keys, RecordLocation { store, key }, &record.value) {
            Some(envelope) => {
                let (version, serial) = (envelope.version(), envelope.serial);
                self.known.remember(key, KnownVersion { version, inner: record.version, serial });
                Ok(VerifiedRecord { envelope, version: record.version })
            }
            None => {
                Err(altered_error(key, "was changed, or was not written by a holder of the server's keys"))
            }
        }
    }

    /// What a write replaces. `None` if the stored version is not the expected one.
    async fn replaced_record(
        &self,
        store: &str,
        now: Timestamp,
        key: RecordKey<'_>,
        expected_version: Option<u64>,
    ) -> Result<Option<ReplacedRecord>, StoreError> {
        if self.anchor.is_none() {
            // The inner store checks whether it is still the stored one.
            match expected_version {
                // Later than all of an earlier record with this key.
                None => {
                    let serial = since_epoch(now).unsigned_abs();
                    return Ok(Some(ReplacedRecord { version: None, serial }));
                }
                Some(version) => {
                    if let Some(KnownVersion { inner, serial, .. }) = self.known.take(key, version) {
                        let (version, serial) = (Some(inner), serial.saturating_add(1));
                        return Ok(Some(ReplacedRecord { version, serial }));
                    }
                }
            }
        }
        let (stored, serial) = self.verified_record(store, key).await?;
        // The inner store deletes expired records before it checks the version.
        let is_due = |stored: &VerifiedRecord| stored.envelope.forget_at.is_some_and(|at| at <= now);
        let version = match (&stored, expected_version) {
            (None, None) => None,
            (Some(stored), None) if is_due(stored) => None,
            (Some(stored), Some(expected_version)) if stored.envelope.version() == expected_version => {
                Some(stored.version)
            }
            _ => return Ok(None),
        };
        Ok(Some(ReplacedRecord { version, serial }))
    }

    async fn write(
        &self,
        store: &str,
        now: Timestamp,
        write: ConditionalWrite<'_>,
    ) -> Result<bool, StoreError> {
        let ConditionalWrite { key, value, expected_version, forget_at, account, when_full } = write;
        let _turn =
            match self.write_locks.get(self.hasher.hash_one((key.space, key.key)) as usize % WRITE_LOCKS) {
                Some(turn) => Some(turn.lock().await),
                None => None,
            };
        let Some(ReplacedRecord { version: expected_version, serial }) =
            self.replaced_record(store, now, key, expected_version).await?
        else {
            return Ok(false);
        };
        check_size(value)?;
        let sealed = Envelope::seal(&self.keys, RecordLocation { store, key }, serial, forget_at, value);
        let (envelope, value) = sealed.map_err(seal_error)?;
        // An eviction is indistinguishable from a removal by an attacker, so nothing is evicted if an anchor would report
        // it.
        let when_full = if self.anchor.is_some() { OnQuotaExceeded::Refuse } else { when_full };
        let sealed = ConditionalWrite { value: &value, expected_version, when_full, ..write };
        if !self.inner.write_record(now, sealed).await? {
            return Ok(false);
        }
        match &self.anchor {
            Some(anchor) => match anchor.advance(now, key, &envelope, account).await? {
                VersionStatus::Valid => Ok(true),
                VersionStatus::Overtaken => Err(StoreError::Unavailable(format!(
                    "so many writes of the record `{}` of `{}` followed that the outcome of this write is unknown",
                    key.key, key.space
                ))),
            },
            None => Ok(true),
        }
    }
}

impl From<Envelope> for Record {
    fn from(envelope: Envelope) -> Self {
        Self { version: envelope.version(), value: envelope.value }
    }
}

/// The error for a record that no holder of the keys wrote, or that is not the latest version.
fn altered_error(key: RecordKey<'_>, how: &str) -> StoreError {
    let RecordKey { space, key } = key;
    StoreError::Altered(format!("the record `{key}` of `{space}` {how}"))
}

fn seal_error(error: impl fmt::Display) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Checks that the ciphertext of a value, which is a third larger, fits into the inner store.
fn check_size(value: &Value) -> Result<(), StoreError> {
    match remaining_room(value, SealedStore::MAX_RECORD_BYTES, MAX_DEPTH - 1) {
        Some(_) => Ok(()),
        None => Err(StoreError::Unavailable(format!(
            "a record of a sealed store must be at most {} MiB and nested less than {MAX_DEPTH} levels deep",
            SealedStore::MAX_RECORD_BYTES >> 20
        ))),
    }
}

fn is_slot(take: &LimitAcquisition) -> bool {
    matches!(take.allowance, Allowance::Slots { .. })
}

/// Slots that were acquired in the store; released on drop unless the anchor grants them too.
struct ProvisionalSlots<'t> {
    store: &'t dyn StateStore,
    takes: &'t [LimitAcquisition],
}

impl ProvisionalSlots<'_> {
    fn confirm(mut self) {
        self.takes = &[];
    }
}

impl Drop for ProvisionalSlots<'_> {
    fn drop(&mut self) {
        self.takes.iter().filter(|take| is_slot(take)).for_each(|take| self.store.release(&take.key));
    }
}

/// Omits the content, which may be secret.
impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("is_anchored", &self.anchor.is_some()).finish_non_exhaustive()
    }
}
