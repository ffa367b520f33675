//! The ledger of calls and grants in a store's records. Every update compares versions, so of several processes that claim a call
//! only one runs it.

mod grants;
mod key;

use std::sync::Arc;

use jiff::{Timestamp, ToSpan};

use super::bound_request::BoundRequest;
use super::ledger_entry::{CallStage, LedgerEntry, StoredVersion};
use super::ledger_error::LedgerError;
use crate::call::{ApprovalRequest, Outcome, SingleUseGuarantee};
use crate::host::{
    Account, Clock, ConditionalWrite, Record, RecordKey, RecordStore, StoreError, space, with_store_timeout,
};
use crate::json::{self, json};
use crate::message::ResponsePart;
use crate::seal::Keys;

pub use key::LedgerKey;

/// How many times to retry a conditional write when others write concurrently.
pub(super) const MAX_TRIES: usize = 64;
/// The number of entries on a page.
const PAGE_SIZE: usize = 256;

/// The result of claiming a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimResult {
    /// The caller may run it.
    Won {
        /// Observers were notified of the approvers' decision before.
        was_notified: bool,
    },
    /// Another process was first, or the entry has changed; the current entry.
    Lost(Box<LedgerEntry>),
}

/// An entry with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedEntry {
    /// Its name.
    pub key: LedgerKey,
    /// The entry itself.
    pub entry: LedgerEntry,
}

/// The calls and grants of a store.
#[derive(Clone)]
pub struct Ledger<'l> {
    store: Arc<dyn RecordStore>,
    clock: &'l dyn Clock,
    account: Account,
}

impl std::fmt::Debug for Ledger<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").finish_non_exhaustive()
    }
}

impl<'l> Ledger<'l> {
    /// The ledger of a store.
    pub fn new(store: Arc<dyn RecordStore>, clock: &'l dyn Clock) -> Self {
        Self { store, clock, account: Account::NOBODY }
    }

    /// Charges new entries to an account. An existing entry stays charged to its first account, so approvers need not know the
    /// owner.
    #[must_use]
    pub fn with_account(self, account: Account) -> Self {
        Self { account, ..self }
    }

    /// What keeps an answer from being used twice.
    pub fn used_once_by(&self) -> SingleUseGuarantee {
        if self.store.is_shared() { SingleUseGuarantee::Store } else { SingleUseGuarantee::History }
    }

    /// The entry of a call in its record.
    pub fn parse_record(name: &LedgerKey, record: Record) -> Result<LedgerEntry, LedgerError> {
        parse_entry(name, record)
    }

    /// The entry of a call.
    pub async fn find(&self, name: &LedgerKey) -> Result<Option<LedgerEntry>, LedgerError> {
        self.read_entry(name).await
    }

    /// Records an approval request and returns the recorded one. If an equivalent request is pending, it stays, with its answers.
    /// The inner `Err` is an entry that has completed, that another process runs, or that is about another call. `claimed`: the
    /// caller itself runs the call, and stops for another approval.
    pub async fn record_request(
        &self,
        name: &LedgerKey,
        fresh: &LedgerEntry,
        question: &BoundRequest,
        request: &ApprovalRequest,
        keys: &Keys,
        claimed: bool,
    ) -> Result<Result<ApprovalRequest, Box<LedgerEntry>>, LedgerError> {
        let mut is_new = false;
        let recorded = self
            .update(name, |current| {
                is_new = false;
                let mut entry = current.unwrap_or_else(|| fresh.clone());
                let free = match entry.stage {
                    CallStage::Waiting => true,
                    CallStage::Claimed { .. } => claimed,
                    CallStage::Settled { .. } => false,
                };
                if !free || !entry.is_for_same_call(fresh) {
                    return Ok((None, Err(Box::new(entry))));
                }
                let recorded = entry.bound_request(keys).and_then(Result::ok).map(|(recorded, _)| recorded);
                if let (Some(known), Some(recorded), CallStage::Waiting) =
                    (&entry.request, recorded, &entry.stage)
                    && recorded.is_equivalent_to(question)
                {
                    return Ok((None, Ok(known.clone())));
                }
                entry.stage = CallStage::Waiting;
                entry.set_request(request.clone());
                is_new = true;
                Ok((Some(entry), Ok(request.clone())))
            })
            .await?;
        if is_new {
            self.store.announce_approval(&name.record_key());
        }
        Ok(recorded)
    }

    /// Records an answer.
    pub async fn record_answer(
        &self,
        name: &LedgerKey,
        response: &ResponsePart,
    ) -> Result<LedgerEntry, LedgerError> {
        let answered = self
            .update(name, |current| {
                let mut entry = current.ok_or_else(|| LedgerError::NotFound(name.occurrence_id.clone()))?;
                entry.add_answer(response)?;
                Ok((Some(entry.clone()), entry))
            })
            .await?;
        self.store.announce_approval(&name.record_key());
        Ok(answered)
    }

    /// Claims a call, to run it. `fresh` is its entry as it was read, or the entry for a call without one. The recorded request must have the
    /// same token and the same number of answers: otherwise the answers have changed in between. `notifies_decision`: whoever wins the claim
    /// notifies observers of the approvers' decision, unless somebody was first.
    pub async fn claim(
        &self,
        name: &LedgerKey,
        fresh: &LedgerEntry,
        notifies_decision: bool,
    ) -> Result<ClaimResult, LedgerError> {
        let at = self.clock.now();
        let answers = fresh.answers().len();
        self.update_known(name, Some(fresh), |current| {
            let mut entry = current.unwrap_or_else(|| fresh.clone());
            let same = entry.is_for_same_call(fresh) && entry.request == fresh.request;
            // A new answer may be a denial.
            if entry.stage != CallStage::Waiting || !same || entry.answers().len() != answers {
                return Ok((None, ClaimResult::Lost(Box::new(entry))));
            }
            entry.stage = CallStage::Claimed { at };
            let was_notified = entry.decision_told;
            entry.decision_told |= notifies_decision;
            Ok((Some(entry), ClaimResult::Won { was_notified }))
        })
        .await
    }

    /// Claims again a call that another process claimed and never completed. Only for calls that are safe to run twice. Returns
    /// `false` if the claim of `since` is not current.
    pub async fn reclaim(&self, name: &LedgerKey, since: Timestamp) -> Result<bool, LedgerError> {
        let at = self.clock.now();
        self.update(name, |current| match current {
            Some(mut entry) if entry.stage == (CallStage::Claimed { at: since }) => {
                entry.stage = CallStage::Claimed { at };
                Ok((Some(entry), true))
            }
            _ => Ok((None, false)),
        })
        .await
    }

    /// Records the outcome of a call that this process has claimed, or that no process may claim. A recorded outcome is not replaced.
    pub async fn record_outcome(
        &self,
        name: &LedgerKey,
        fresh: &LedgerEntry,
        outcome: &Outcome,
    ) -> Result<(), LedgerError> {
        self.settle(name, fresh, outcome, |stage| !matches!(stage, CallStage::Settled { .. })).await
    }

    /// Records the outcome of a call that was refused before this process claimed it. If another process has claimed it meanwhile, that one
    /// runs the call, and records how it ends.
    pub async fn record_refusal(
        &self,
        name: &LedgerKey,
        fresh: &LedgerEntry,
        outcome: &Outcome,
    ) -> Result<(), LedgerError> {
        self.settle(name, fresh, outcome, |stage| *stage == CallStage::Waiting).await
    }

    /// Records an outcome over an entry in a stage that this may replace.
    async fn settle(
        &self,
        name: &LedgerKey,
        fresh: &LedgerEntry,
        outcome: &Outcome,
        is_replaced: impl Fn(&CallStage) -> bool,
    ) -> Result<(), LedgerError> {
        let at = self.clock.now();
        self.update(name, |current| {
            let mut entry = current.unwrap_or_else(|| fresh.clone());
            if !is_replaced(&entry.stage) {
                return Ok((None, ()));
            }
            entry.stage = CallStage::Settled { at, outcome: Box::new(outcome.clone()) };
            Ok((Some(entry), ()))
        })
        .await
    }

    /// Whether to notify observers now, of the request or of the decision: `true` once for each, or if there is no entry.
    pub async fn mark_notified(&self, name: &LedgerKey, decision: bool) -> Result<bool, LedgerError> {
        self.update(name, |current| {
            let Some(mut entry) = current else { return Ok((None, true)) };
            let notified = if decision { &mut entry.decision_told } else { &mut entry.request_told };
            if std::mem::replace(notified, true) {
                return Ok((None, false));
            }
            Ok((Some(entry), true))
        })
        .await
    }

    /// Whether there is any call of a conversation.
    pub async fn has_conversation(&self, conversation: &str) -> Result<bool, LedgerError> {
        // Keys are arrays in canonical form, so all keys of a conversation start with the array of its name alone, without the end.
        let alone = json::canonical_text(&json!([conversation]));
        let prefix = format!("{},", alone.strip_suffix(']').unwrap_or(&alone));
        let page =
            with_store_timeout(self.clock, || self.store.records(space::CALLS, Some(&prefix), 1)).await?;
        Ok(page.records.iter().any(|(key, _)| key.starts_with(&prefix)))
    }

    /// All calls, in the order of their names.
    pub async fn list(&self) -> Result<Vec<KeyedEntry>, LedgerError> {
        let mut listed = Vec::new();
        for (key, record) in self.read_all(space::CALLS).await? {
            let name = LedgerKey::from_record_key(&key).ok_or_else(|| LedgerError::Corrupt(key.clone()))?;
            listed.push(KeyedEntry { entry: parse_entry(&name, record)?, key: name });
        }
        Ok(listed)
    }

    /// Changes an entry by compare and swap, and retries when others change it concurrently.
    async fn update<T>(
        &self,
        name: &LedgerKey,
        change: impl FnMut(Option<LedgerEntry>) -> Result<(Option<LedgerEntry>, T), LedgerError>,
    ) -> Result<T, LedgerError> {
        self.update_known(name, None, change).await
    }

    /// The same, beginning with an entry that was read before: it is read again only if others have changed it, or if nothing is to be
    /// written over it.
    async fn update_known<T>(
        &self,
        name: &LedgerKey,
        known: Option<&LedgerEntry>,
        mut change: impl FnMut(Option<LedgerEntry>) -> Result<(Option<LedgerEntry>, T), LedgerError>,
    ) -> Result<T, LedgerError> {
        match known.map_or(StoredVersion::Unknown, |known| known.stored) {
            StoredVersion::Unknown => {}
            StoredVersion::Absent => {
                if let (Some(changed), answer) = change(None)?
                    && self.write_entry(name, &changed, None).await?
                {
                    return Ok(answer);
                }
            }
            StoredVersion::At(version) => {
                if let (Some(changed), answer) = change(known.cloned())?
                    && self.write_entry(name, &changed, Some(version)).await?
                {
                    return Ok(answer);
                }
            }
        }
        for _ in 0..MAX_TRIES {
            let current = self.read_entry(name).await?;
            let expected_version = match current.as_ref().map(|entry| entry.stored) {
                Some(StoredVersion::At(version)) => Some(version),
                _ => None,
            };
            let (changed, answer) = change(current)?;
            let Some(changed) = changed else { return Ok(answer) };
            if self.write_entry(name, &changed, expected_version).await? {
                return Ok(answer);
            }
        }
        Err(LedgerError::Contended(name.occurrence_id.clone()))
    }

    async fn write_entry(
        &self,
        name: &LedgerKey,
        entry: &LedgerEntry,
        expected_version: Option<u64>,
    ) -> Result<bool, LedgerError> {
        let value = json::to_value(entry).map_err(|_| LedgerError::Corrupt(name.occurrence_id.clone()))?;
        let (key, forget_at) = (name.record_key(), self.forget_at(entry));
        let key = RecordKey { space: space::CALLS, key: &key };
        let write = ConditionalWrite {
            expected_version,
            forget_at,
            ..ConditionalWrite::new(key, &value, self.account)
        };
        Ok(self.write(write).await?)
    }

    /// When the store may drop the entry: long after the request has expired and the last change, so that a clock that runs ahead
    /// for a while does not make its answer valid again. In a shared store an entry without an expiry is kept forever; a process's
    /// own memory has no room for that.
    fn forget_at(&self, entry: &LedgerEntry) -> Option<Timestamp> {
        let expires = entry.request.as_ref().and_then(|request| request.expires_at.as_deref());
        let lapses = match expires.and_then(|text| text.parse::<Timestamp>().ok()) {
            None if self.store.is_shared() => return None,
            lapses => lapses.map_or_else(|| self.clock.now(), |lapses| lapses.max(self.clock.now())),
        };
        lapses.checked_add((24 * 90).hours()).ok()
    }

    async fn read_entry(&self, name: &LedgerKey) -> Result<Option<LedgerEntry>, LedgerError> {
        let key = name.record_key();
        let record = self.read_record(RecordKey { space: space::CALLS, key: &key }).await?;
        record.map(|record| parse_entry(name, record)).transpose()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn account(&self) -> Account {
        self.account
    }

    pub(super) async fn read_record(&self, key: RecordKey<'_>) -> Result<Option<Record>, StoreError> {
        with_store_timeout(self.clock, || self.store.record(key)).await
    }

    pub(super) async fn write(&self, write: ConditionalWrite<'_>) -> Result<bool, StoreError> {
        with_store_timeout(self.clock, || self.store.write_record(self.clock.now(), write)).await
    }

    async fn read_all(&self, space: &str) -> Result<Vec<(String, Record)>, StoreError> {
        let mut all: Vec<(String, Record)> = Vec::new();
        loop {
            let after = all.last().map(|(key, _)| key.clone());
            let page =
                with_store_timeout(self.clock, || self.store.records(space, after.as_deref(), PAGE_SIZE))
                    .await?;
            let more = page.more && !page.records.is_empty();
            all.extend(page.records);
            if !more {
                return Ok(all);
            }
        }
    }
}

fn parse_entry(name: &LedgerKey, record: Record) -> Result<LedgerEntry, LedgerError> {
    let entry: Option<LedgerEntry> = json::from_value(record.value).ok();
    let entry = entry.filter(LedgerEntry::is_supported);
    let mut entry = entry.ok_or_else(|| LedgerError::Corrupt(name.occurrence_id.clone()))?;
    entry.stored = StoredVersion::At(record.version);
    Ok(entry)
}
