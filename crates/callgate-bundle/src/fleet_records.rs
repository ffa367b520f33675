//! What the instances of a fleet share about published rules, as records of their state store: which version each has, the newest version, and which
//! widening was confirmed. The store seals records, so whoever can only write the database can confirm nothing.

use std::sync::Arc;
use std::time::Duration;

use callgate::host::{Account, ConditionalWrite, Record, RecordKey, StateStore, StoreError, space};
use callgate::json::{self, Value};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::acceptance::NewestVersion;

/// Begins the keys of what instances report.
const INSTANCE: &str = "instance:";
/// Begins the key of the newest version of a bundle.
const NEWEST: &str = "newest:";
/// Begins the keys of confirmations.
const CONFIRMED: &str = "confirmed:";
/// How long a confirmation is kept: for the instances that were stopped when it was given.
const CONFIRMATION_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The maximum number of instances that are listed.
const MAX_INSTANCES: usize = 10_000;
const PAGE_SIZE: usize = 256;
/// How often a record is read again if others write it at the same time.
const MAX_ATTEMPTS: usize = 16;

/// What one instance reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceReport {
    /// The host and a random part, which is new for each process.
    pub instance: String,
    /// The version of Callgate.
    pub callgate: String,
    /// Where the bundle comes from.
    pub source: String,
    /// The name of the bundle.
    pub bundle: Option<String>,
    /// The version whose rules are in effect.
    pub version: Option<u64>,
    /// The revision of the rules in effect.
    pub revision: String,
    /// A newer version whose rules are not in effect.
    pub newer: Option<NewerBundle>,
    /// Why the last check failed.
    pub error: Option<String>,
    /// When the source was last checked with success.
    pub checked_at: Option<Timestamp>,
    /// When this was reported.
    pub reported_at: Timestamp,
}

/// A bundle whose rules are not in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewerBundle {
    /// Its version.
    pub version: u64,
    /// The digest of its document.
    pub digest: String,
    /// Why its rules are not in effect.
    #[serde(flatten)]
    pub standing: Standing,
}

/// Why the rules of a bundle are not in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Standing {
    /// They were rejected.
    Rejected {
        /// Why.
        reason: String,
    },
    /// They may allow more, and are pending confirmation.
    Pending {
        /// Their revision.
        revision: String,
        /// What they may allow.
        relaxations: Vec<String>,
    },
}

/// The confirmation of rules that may allow more: for one version of a bundle, and for the instances whose rules the approver saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The name of the bundle.
    pub bundle: String,
    /// Its version.
    pub version: u64,
    /// The digest of its document.
    pub digest: String,
    /// The revision of its rules.
    pub revision: String,
    /// The revisions of the rules that they may replace.
    pub from: Vec<String>,
}

impl Confirmation {
    /// Whether it permits what another one would permit.
    pub fn permits(&self, other: &Self) -> bool {
        self.is_for_same_rules(other) && other.from.iter().all(|from| self.from.contains(from))
    }

    fn is_for_same_rules(&self, other: &Self) -> bool {
        (&self.bundle, self.version, &self.digest, &self.revision)
            == (&other.bundle, other.version, &other.digest, &other.revision)
    }
}

/// The records of a fleet.
#[derive(Clone)]
pub struct FleetRecords(Arc<dyn StateStore>);

impl std::fmt::Debug for FleetRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetRecords").finish_non_exhaustive()
    }
}

impl FleetRecords {
    /// The records of a store.
    pub fn new(store: Arc<dyn StateStore>) -> Self {
        Self(store)
    }

    /// What the instances report, except those that have not reported for a while.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn instances(&self) -> Result<Vec<InstanceReport>, StoreError> {
        let mut found = Vec::new();
        let mut after = Some(INSTANCE.to_owned());
        while let Some(last) = after.take() {
            let page = self.0.records(space::RULES, Some(&last), PAGE_SIZE).await?;
            let is_last = page.records.iter().any(|(key, _)| !key.starts_with(INSTANCE));
            let reports = page.records.iter().filter(|(key, _)| key.starts_with(INSTANCE));
            found.extend(reports.filter_map(|(_, record)| json::from_value(record.value.clone()).ok()));
            let next = page.records.last().map(|(key, _)| key.clone());
            after = next.filter(|_| page.more && !is_last && found.len() < MAX_INSTANCES);
        }
        Ok(found)
    }

    /// Stores what an instance reports, for a while.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn report(&self, report: &InstanceReport, valid_for: Duration) -> Result<(), StoreError> {
        let valid_for = SignedDuration::try_from(valid_for).unwrap_or(SignedDuration::MAX);
        let forget_at = report.reported_at.saturating_add(valid_for).unwrap_or(Timestamp::MAX);
        let key = format!("{INSTANCE}{}", report.instance);
        self.update(&key, Some(forget_at), |_| Some(to_value(report))).await
    }

    /// The newest version that an instance has accepted.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn newest(&self, bundle: &str) -> Result<Option<NewestVersion>, StoreError> {
        let record = self.record(&format!("{NEWEST}{bundle}")).await?;
        Ok(record.and_then(|record| json::from_value(record.value).ok()))
    }

    /// Stores the newest accepted version, so that other instances fetch it, and accept no older one.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn raise_newest(&self, newest: &NewestVersion) -> Result<(), StoreError> {
        let key = format!("{NEWEST}{}", newest.name);
        self.update(&key, None, |stored| {
            let stored: Option<NewestVersion> = stored.and_then(|value| json::from_value(value.clone()).ok());
            let is_newer = stored.is_none_or(|stored| stored.version < newest.version);
            is_newer.then(|| to_value(newest))
        })
        .await
    }

    /// The confirmation of a version.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn confirmation(&self, bundle: &str, version: u64) -> Result<Option<Confirmation>, StoreError> {
        let record = self.record(&confirmation_key(bundle, version)).await?;
        Ok(record.and_then(|record| json::from_value(record.value).ok()))
    }

    /// Confirms rules for all instances, in addition to what was confirmed for the same version.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn confirm(&self, confirmation: &Confirmation, now: Timestamp) -> Result<(), StoreError> {
        let key = confirmation_key(&confirmation.bundle, confirmation.version);
        let forget_at = now.saturating_add(CONFIRMATION_AGE).unwrap_or(Timestamp::MAX);
        self.update(&key, Some(forget_at), |stored| {
            let stored: Option<Confirmation> = stored.and_then(|value| json::from_value(value.clone()).ok());
            let mut merged = confirmation.clone();
            if let Some(stored) = stored.as_ref().filter(|stored| stored.is_for_same_rules(confirmation)) {
                merged.from.extend(stored.from.iter().cloned());
                merged.from.sort();
                merged.from.dedup();
            }
            (stored.as_ref() != Some(&merged)).then(|| to_value(&merged))
        })
        .await
    }

    async fn record(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.0.record(RecordKey { space: space::RULES, key }).await
    }

    /// Replaces a record by what `change` makes of its value; it stays if that is `None`.
    async fn update(
        &self,
        key: &str,
        forget_at: Option<Timestamp>,
        change: impl Fn(Option<&Value>) -> Option<Value>,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.record(key).await?;
            let Some(value) = change(stored.as_ref().map(|record| &record.value)) else { return Ok(()) };
            let write = ConditionalWrite {
                expected_version: stored.map(|record| record.version),
                forget_at,
                ..ConditionalWrite::new(RecordKey { space: space::RULES, key }, &value, Account::NOBODY)
            };
            if self.0.write_record(Timestamp::now(), write).await? {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable(
            "other instances keep writing the same record of published rules".to_owned(),
        ))
    }
}

fn confirmation_key(bundle: &str, version: u64) -> String {
    format!("{CONFIRMED}{bundle}:{version}")
}

fn to_value(record: &impl Serialize) -> Value {
    // Strings, numbers and lists of them.
    json::to_value(record).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use callgate::state::MemoryStore;

    use super::*;

    fn records() -> FleetRecords {
        FleetRecords::new(Arc::new(MemoryStore::default()))
    }

    fn newest(version: u64) -> NewestVersion {
        NewestVersion { name: "payments".to_owned(), version, digest: format!("digest {version}") }
    }

    fn confirmation(from: &[&str]) -> Confirmation {
        Confirmation {
            bundle: "payments".to_owned(),
            version: 3,
            digest: "d".to_owned(),
            revision: "new".to_owned(),
            from: from.iter().map(|&from| from.to_owned()).collect(),
        }
    }

    fn report(instance: &str, reported_at: Timestamp) -> InstanceReport {
        InstanceReport {
            instance: instance.to_owned(),
            callgate: "0".to_owned(),
            source: "https://example.com/rules".to_owned(),
            bundle: Some("payments".to_owned()),
            version: Some(2),
            revision: "old".to_owned(),
            newer: Some(NewerBundle {
                version: 3,
                digest: "d".to_owned(),
                standing: Standing::Pending {
                    revision: "new".to_owned(),
                    relaxations: vec!["more".to_owned()],
                },
            }),
            error: None,
            checked_at: None,
            reported_at,
        }
    }

    #[tokio::test]
    async fn the_newest_version_never_goes_back() {
        let records = records();
        assert_eq!(records.newest("payments").await.unwrap(), None);
        for version in [2, 5, 3] {
            records.raise_newest(&newest(version)).await.unwrap();
        }
        assert_eq!(records.newest("payments").await.unwrap(), Some(newest(5)));
        assert_eq!(records.newest("retail").await.unwrap(), None);
    }

    #[tokio::test]
    async fn confirmations_are_for_what_the_approver_saw() {
        let (records, now) = (records(), Timestamp::now());
        records.confirm(&confirmation(&["a"]), now).await.unwrap();
        records.confirm(&confirmation(&["b"]), now).await.unwrap();
        let found = records.confirmation("payments", 3).await.unwrap().unwrap();
        assert!(found.permits(&confirmation(&["a"])) && found.permits(&confirmation(&["b"])));
        assert!(!found.permits(&confirmation(&["c"])), "other rules before");
        assert!(!found.permits(&Confirmation { revision: "other".to_owned(), ..confirmation(&["a"]) }));
        assert!(!found.permits(&Confirmation { version: 4, ..confirmation(&["a"]) }));
        assert!(!found.permits(&Confirmation { digest: "e".to_owned(), ..confirmation(&["a"]) }));
        // Other content of the same version starts again.
        let other = Confirmation { digest: "e".to_owned(), ..confirmation(&["c"]) };
        records.confirm(&other, now).await.unwrap();
        let found = records.confirmation("payments", 3).await.unwrap().unwrap();
        assert!(found.permits(&other) && !found.permits(&confirmation(&["a"])));
    }

    #[tokio::test]
    async fn all_instances_are_listed() {
        let (records, now) = (records(), Timestamp::now());
        records.raise_newest(&newest(2)).await.unwrap();
        records.confirm(&confirmation(&["a"]), now).await.unwrap();
        for number in 0..600 {
            let report = report(&format!("host-{number:03}"), now);
            records.report(&report, Duration::from_secs(600)).await.unwrap();
        }
        let again = report("host-007", now);
        records.report(&again, Duration::from_secs(600)).await.unwrap();
        let found = records.instances().await.unwrap();
        assert_eq!(found.len(), 600);
        assert!(found.contains(&again));
    }
}
