//! The anchor of a sealed store: the latest serial number of each record, in a second store that a writer of the first one
//! can't change.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::altered_error;
use super::envelope::Envelope;
use crate::host::{
    Account, Allowance, Amount, Clock, ConditionalWrite, LimitAcquisition, LimitRefusal, Record, RecordKey,
    StateStore, StoreError,
};
use crate::json::{Value, canonical_text, json};

/// The space of serial numbers.
const RECORDS: &str = "records";
/// The record that names the anchored store.
const LINK_KEY: RecordKey<'static> = RecordKey { space: "bound", key: "store" };
/// How many versions of a record are stored by name. If more than this many concurrent writes overtake a write of the same
/// record, it is refused, because nobody can tell whether it took effect.
const MAX_VERSIONS: usize = 16;
/// How often a change is retried after concurrent writes.
const MAX_ATTEMPTS: usize = 256;

/// The anchor of a store.
pub struct Anchor {
    /// The second store. Acquired limits are counted here as well.
    pub store: Arc<dyn StateStore>,
    clock: Box<dyn Clock>,
    /// When limits were last counted, in microseconds since the epoch.
    counted_at: AtomicI64,
}

/// What the anchor stores about a record.
pub struct AnchoredRecord {
    /// Serial numbers with version names, latest last.
    versions: Vec<(u64, String)>,
    forget_at: Option<Timestamp>,
    /// The version of the anchor's own record.
    version: u64,
}

impl AnchoredRecord {
    /// The latest serial number.
    pub fn latest(&self) -> u64 {
        self.versions.last().map_or(0, |(serial, _)| *serial)
    }

    /// Whether this is the latest version.
    pub fn has_latest(&self, found: &Envelope) -> bool {
        self.versions.last().is_some_and(|(serial, name)| *serial == found.serial && *name == found.name)
    }

    fn read(value: &Value, version: u64) -> Option<Self> {
        let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_str()?.to_owned()));
        let versions: Vec<_> = value.get("versions")?.as_array()?.iter().map(pair).collect::<Option<_>>()?;
        let forget_at = match value.get("forget_at")? {
            Value::Null => None,
            time => Some(time.as_str()?.parse().ok()?),
        };
        (!versions.is_empty()).then_some(Self { versions, forget_at, version })
    }
}

/// The verdict on a version that was read or written.
pub enum VersionStatus {
    /// It is or was the latest version.
    Valid,
    /// So many versions followed that nobody can tell.
    Overtaken,
}

/// The link between an anchor and its store.
#[derive(Clone, Debug, PartialEq)]
pub struct AnchorLink {
    /// The anchor's name, which is also in the store.
    pub anchor: String,
    /// The store's name.
    pub store: String,
    /// Whether the store has recorded the anchor. Until then, a store without a name is new, and not lost.
    pub is_confirmed: bool,
}

impl Anchor {
    pub fn new(store: Arc<dyn StateStore>, clock: impl Clock + 'static) -> Self {
        // It is unknown whether the clock stepped back before: the first time counts as a step.
        Self { store, clock: Box::new(clock), counted_at: AtomicI64::new(i64::MAX) }
    }

    /// Acquires the limits that the store has granted.
    pub async fn acquire(
        &self,
        now: Timestamp,
        takes: &[LimitAcquisition],
    ) -> Result<Vec<LimitRefusal>, StoreError> {
        self.counted_at.store(now.as_microsecond(), Ordering::Relaxed);
        self.store.acquire(now, takes).await
    }

    /// Passes a clock that stepped back to the limits, if the store refuses and nothing is acquired: everything then counts
    /// as acquired at that time.
    pub async fn sync_clock(&self, now: Timestamp) -> Result<(), StoreError> {
        let time = now.as_microsecond();
        if time >= self.counted_at.swap(time, Ordering::Relaxed) {
            return Ok(());
        }
        // Never admitted.
        let nothing = Allowance::Total { limit: Amount::ZERO, keep: Duration::from_secs(1) };
        let (key, account) = (String::new(), Account::NOBODY);
        let take = LimitAcquisition { key, account, allowance: nothing, cost: Amount::from_whole(1) };
        self.store.acquire(now, &[take]).await.map(|_| ())
    }

    /// The store that the anchor belongs to, and the version of that record.
    pub async fn link(&self) -> Result<Option<(AnchorLink, u64)>, StoreError> {
        let Some(record) = self.store.record(LINK_KEY).await? else { return Ok(None) };
        let text = |name: &str| Some(record.value.get(name)?.as_str()?.to_owned());
        let read = || {
            let is_done = record.value.get("is_done")?.as_bool()?;
            Some(AnchorLink { anchor: text("anchor")?, store: text("store")?, is_confirmed: is_done })
        };
        Ok(Some((read().ok_or_else(damaged_error)?, record.version)))
    }

    /// Records the store that the anchor belongs to. Returns `false` after a concurrent write.
    pub async fn write_link(
        &self,
        bound: &AnchorLink,
        expected_version: Option<u64>,
    ) -> Result<bool, StoreError> {
        let value = json!({ "anchor": bound.anchor, "store": bound.store, "is_done": bound.is_confirmed });
        let write =
            ConditionalWrite { expected_version, ..ConditionalWrite::new(LINK_KEY, &value, Account::NOBODY) };
        self.store.write_record(self.clock.now(), write).await
    }

    /// What the anchor stores about a record.
    pub async fn anchored_record(&self, key: RecordKey<'_>) -> Result<Option<AnchoredRecord>, StoreError> {
        let at = anchor_key(key);
        let Some(record) = self.store.record(RecordKey { space: RECORDS, key: &at }).await? else {
            return Ok(None);
        };
        AnchoredRecord::read(&record.value, record.version).map(Some).ok_or_else(damaged_error)
    }

    /// What the anchor stores about records of a space, in the order of the keys.
    pub async fn anchored_records(
        &self,
        space: &str,
        keys: &[String],
    ) -> Result<Vec<Option<AnchoredRecord>>, StoreError> {
        let keys: Vec<String> = keys.iter().map(|key| anchor_key(RecordKey { space, key })).collect();
        let records = self.store.records_with_keys(RECORDS, &keys).await?;
        let read =
            |record: Record| AnchoredRecord::read(&record.value, record.version).ok_or_else(damaged_error);
        records.into_iter().map(|record| record.map(read).transpose()).collect()
    }

    /// Checks that the stored record is the latest version, or one that is newer than `known`, which was read before it.
    pub async fn check(
        &self,
        key: RecordKey<'_>,
        known: Option<AnchoredRecord>,
        found: Option<&Envelope>,
    ) -> Result<VersionStatus, StoreError> {
        match (known, found) {
            (None, None) => Ok(VersionStatus::Valid),
            (Some(known), None) => {
                // The store deletes a record at its expiry, the anchor only at its next write.
                let forgotten = known.forget_at.is_some_and(|at| at <= self.clock.now());
                if forgotten { Ok(VersionStatus::Valid) } else { Err(altered_error(key, "was removed")) }
            }
            (Some(known), Some(found)) if found.serial < known.latest() => {
                Err(altered_error(key, "was replaced by an older version"))
            }
            (Some(known), Some(found)) if found.serial == known.latest() => check_version(key, &known, found),
            // Its writer has not updated the anchor yet, or never will.
            (_, Some(found)) => self.advance(self.clock.now(), key, found, Account::NOBODY).await,
        }
    }

    /// Makes a written version the latest one. Of two with the same serial number, the first one wins.
    pub async fn advance(
        &self,
        now: Timestamp,
        key: RecordKey<'_>,
        written: &Envelope,
        account: Account,
    ) -> Result<VersionStatus, StoreError> {
        let at = anchor_key(key);
        for _ in 0..MAX_ATTEMPTS {
            let known = self.anchored_record(key).await?;
            let (mut versions, expected_version) = match known {
                Some(known) if written.serial <= known.latest() => {
                    return check_version(key, &known, written);
                }
                Some(known) => (known.versions, Some(known.version)),
                None => (Vec::new(), None),
            };
            versions.push((written.serial, written.name.clone()));
            versions.drain(..versions.len().saturating_sub(MAX_VERSIONS));
            let forget_at = written.forget_at.map(|at| at.to_string());
            let value = json!({ "versions": versions, "forget_at": forget_at });
            let key = RecordKey { space: RECORDS, key: &at };
            let write = ConditionalWrite {
                expected_version,
                forget_at: written.forget_at,
                ..ConditionalWrite::new(key, &value, account)
            };
            if self.store.write_record(now, write).await? {
                return Ok(VersionStatus::Valid);
            }
        }
        Err(StoreError::Unavailable(
            "the anchor of the store is being changed by too many writers; try again".to_owned(),
        ))
    }
}

/// Checks a version whose serial number is not newer than the latest one against the stored name.
fn check_version(
    key: RecordKey<'_>,
    known: &AnchoredRecord,
    found: &Envelope,
) -> Result<VersionStatus, StoreError> {
    let is_it = |(serial, name): &(u64, String)| *serial == found.serial && *name == found.name;
    if known.versions.iter().any(is_it) {
        return Ok(VersionStatus::Valid);
    }
    if known.versions.first().is_some_and(|(oldest, _)| found.serial < *oldest) {
        return Ok(VersionStatus::Overtaken);
    }
    Err(altered_error(key, "was written twice at the same time, and the other write won"))
}

/// The key of the anchor's data about a record.
fn anchor_key(key: RecordKey<'_>) -> String {
    canonical_text(&json!([key.space, key.key]))
}

fn damaged_error() -> StoreError {
    StoreError::Altered("the anchor of the store is damaged".to_owned())
}
