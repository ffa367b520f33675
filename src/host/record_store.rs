//! The store of records: versioned values that are written with compare-and-swap, such as calls, approvals and sessions.

use jiff::Timestamp;

use super::store_operation::StoreFuture;
use super::{Account, Announcements};
use crate::json::Value;

/// The largest value of a record, in bytes of JSON. A larger value is not written, nor is one that is nested too deeply to
/// be read back.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// The spaces that Callgate stores records in.
pub mod space {
    /// The identity of the store.
    pub const OWNER: &str = "owner";
    /// Calls, with their approval requests and answers.
    pub const CALLS: &str = "calls";
    /// Grants: approvals that apply to later calls.
    pub const GRANTS: &str = "grants";
    /// Session state.
    pub const SESSIONS: &str = "sessions";
    /// Usage of budgets.
    pub const BUDGETS: &str = "budgets";
    /// The first request number for calls with equal arguments.
    pub const LATEST: &str = "latest";
    /// What instances share about published rules: their versions, and confirmations.
    pub const RULES: &str = "rules";
    /// All spaces except [`OWNER`].
    pub const ALL: [&str; 6] = [CALLS, GRANTS, SESSIONS, BUDGETS, LATEST, RULES];
}

/// The key of a record: its space and its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordKey<'a> {
    /// The space, which says what kind of record it is.
    pub space: &'a str,
    /// The key in this space.
    pub key: &'a str,
}

/// A record as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The value.
    pub value: Value,
    /// Changes with each write. A record that expired and is written again never gets an earlier version.
    pub version: u64,
}

/// A conditional write of a record.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalWrite<'a> {
    /// The record to write.
    pub key: RecordKey<'a>,
    /// The new value.
    pub value: &'a Value,
    /// The version that the stored record must have; `None` if no record may exist.
    pub expected_version: Option<u64>,
    /// When the store may delete the record; `None` for never.
    pub forget_at: Option<Timestamp>,
    /// The account whose share of the store is charged. An existing record stays charged to the account that it was first
    /// written for.
    pub account: Account,
    /// What to do if the share of the account is full.
    pub when_full: OnQuotaExceeded,
}

impl<'a> ConditionalWrite<'a> {
    /// A write of a new record that never expires, and that is refused if the share of the account is full.
    pub fn new(key: RecordKey<'a>, value: &'a Value, account: Account) -> Self {
        Self {
            key,
            value,
            expected_version: None,
            forget_at: None,
            account,
            when_full: OnQuotaExceeded::Refuse,
        }
    }
}

/// The behaviour of a write when the share of its account is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnQuotaExceeded {
    /// The write is refused.
    #[default]
    Refuse,
    /// The oldest records of the same account in the same space are evicted.
    EvictOldest,
}

/// A page of the records of one space, ordered by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordPage {
    /// Keys and records.
    pub records: Vec<(String, Record)>,
    /// Whether more records follow the last one.
    pub more: bool,
}

/// Records that were read together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordBatch {
    /// The records, in the order of the keys.
    pub records: Vec<Option<Record>>,
    /// If one of them is missing: whether records of the account were refused or evicted, as
    /// [`has_lost_records`](RecordStore::has_lost_records) returns after the records were read.
    pub has_lost_records: bool,
}

/// Stores the records of calls, approvals, sessions and budgets.
pub trait RecordStore: Send + Sync {
    /// The record of this key, if it exists.
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>>;

    /// Writes a record if the stored version is the expected one; returns whether it did. Of several concurrent writes
    /// over the same version, one succeeds. From then on, every process that shares the store reads the new value, also
    /// after a crash if the store is persistent.
    ///
    /// # Errors
    /// If it is unknown whether the record was written; if the store or the account's share is full (a record is deleted
    /// only after its expiry, or evicted for another record of the same account); or if the value is larger than
    /// [`MAX_RECORD_BYTES`].
    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool>;

    /// Up to `limit` records of a space whose keys come after `after`, ordered by key.
    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage>;

    /// The records of a space with these keys, in the same order. A store to which each request costs time answers all in one.
    fn records_with_keys<'a>(
        &'a self,
        space: &'a str,
        keys: &'a [String],
    ) -> StoreFuture<'a, Vec<Option<Record>>> {
        Box::pin(async move {
            let mut records = Vec::with_capacity(keys.len());
            for key in keys {
                records.push(self.record(RecordKey { space, key }).await?);
            }
            Ok(records)
        })
    }

    /// Whether records of this account were refused or evicted because its share was full. Then a missing record may have
    /// existed: its content is unknown, not empty. A store that never refuses or evicts because of an account's share
    /// returns `false`; a store that wraps another one delegates to it.
    fn has_lost_records<'a>(&'a self, account: &'a Account) -> StoreFuture<'a, bool>;

    /// Records of any spaces, and whether the account has lost records if one of them is missing. A store to which each request
    /// costs time answers all in one, and reads the losses no earlier than the records.
    fn record_batch<'a>(
        &'a self,
        keys: &'a [RecordKey<'a>],
        account: &'a Account,
    ) -> StoreFuture<'a, RecordBatch> {
        Box::pin(async move {
            let mut records = Vec::with_capacity(keys.len());
            for key in keys {
                records.push(self.record(*key).await?);
            }
            let is_incomplete = records.iter().any(Option::is_none);
            let has_lost_records = is_incomplete && self.has_lost_records(account).await?;
            Ok(RecordBatch { records, has_lost_records })
        })
    }

    /// Removes records that have expired, as writes do, too. Returns how many; a store whose writes remove all of them removes none here.
    fn remove_expired(&self, now: Timestamp) -> StoreFuture<'_, u64> {
        let _ = now;
        Box::pin(async { Ok(0) })
    }

    /// Tells the processes that share the store that an approval request was made or answered: the key of its record in [`space::CALLS`].
    /// Returns at once. It may be lost, so whoever listens also reads the store from time to time.
    fn announce_approval(&self, key: &str) {
        let _ = key;
    }

    /// What this and other processes announce from now on.
    fn announcements(&self) -> Announcements {
        Announcements::none()
    }

    /// Whether the store is persistent and other processes see what this one writes.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether the store authenticates its records itself, as a [`SealedStore`](crate::state::SealedStore) does.
    fn is_sealed(&self) -> bool {
        false
    }
}
