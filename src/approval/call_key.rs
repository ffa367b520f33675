//! Content-based keys of calls, for clients without stable call ids: requester, server, tool and arguments → the name in the
//! ledger.
//!
//! Clients of a gateway give calls no ids that survive a connection. So the requests about equal calls of one requester are
//! numbered: the first one that is not settled belongs to the call, and settled ones are used up. The store records where to start.
//! That record only saves reads: if it is missing or wrong, approval is requested again, or the search starts from the first
//! number.

use jiff::ToSpan;

use super::bound_request::BoundRequest;
use super::ledger::{Ledger, LedgerKey, MAX_TRIES};
use super::ledger_entry::{CallStage, LedgerEntry};
use super::ledger_error::LedgerError;
use crate::call::ToolCall;
use crate::host::{ConditionalWrite, RecordKey, space};
use crate::json::{self, Digest, Value, json};
use crate::seal::{Keys, Purpose};

/// The most numbers that one search reads.
const MAX_READS: u64 = 4096;

/// Identifies equal calls of one requester. Its names are keyed digests, so the arguments cannot be found by guessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    requester: String,
    call: Digest,
    /// The digest that names the call in records.
    record_name: Digest,
    id: String,
}

/// The same call under each of the server's keys. Which one the ledger has depends on the key in use when approval was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKeys {
    /// Under the current key.
    pub current: CallKey,
    /// Under older keys that are still accepted.
    pub older: Vec<CallKey>,
}

impl CallKeys {
    /// Identifies a call. `requester` must be unique among all requesters.
    pub fn new(keys: &Keys, requester: &str, call: &ToolCall) -> Self {
        let digest = BoundRequest::call_digest(&call.tool, call.server.as_deref(), &call.input);
        let content = json!(["call", requester, digest.to_string()]);
        let find_mutation = |name| CallKey::from_digest(requester, digest, name);
        let current = find_mutation(keys.digest(Purpose::Record, &content));
        let older = keys.digests(Purpose::Record, &content).skip(1).map(find_mutation).collect();
        Self { current, older }
    }
}

/// The last approval request about a call, or the name for the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct RecalledRequest {
    /// Its name in the ledger.
    pub key: LedgerKey,
    /// The number of the request among those about equal calls, from 1.
    pub number: u64,
    /// The ledger's entry: pending or claimed. `None` if no approval is requested.
    pub entry: Option<LedgerEntry>,
}

impl CallKey {
    fn from_digest(requester: &str, call: Digest, record_name: Digest) -> Self {
        let text = record_name.to_string();
        let (head, rest) = text.split_at(8);
        let tail = rest.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default();
        Self { requester: requester.to_owned(), call, record_name, id: format!("{head}-{tail}") }
    }

    /// The id of the call, the same for equal calls of one requester.
    pub fn call_id(&self) -> &str {
        &self.id
    }

    fn ledger_key(&self, number: u64) -> LedgerKey {
        let occurrence = if number > 1 { format!("{}_{number}", self.id) } else { self.id.clone() };
        LedgerKey { conversation: self.requester.clone(), occurrence_id: occurrence }
    }

    fn record_key(&self) -> String {
        json::canonical_text(&json!([self.requester, self.record_name.to_string()]))
    }

    /// Whether an entry is about this call. Ids are short, so different calls can have the same one.
    fn matches_entry(&self, entry: &LedgerEntry) -> bool {
        entry.call == self.call && entry.call_id == self.id
    }
}

impl Ledger<'_> {
    /// Finds the last request about a call that is not settled, under any of its keys (the current one first), or the name for the
    /// next one under the current key.
    ///
    /// # Errors
    /// See [`recall`](Self::recall).
    pub async fn recall_with_any_key(
        &self,
        keys: CallKeys,
    ) -> Result<(CallKey, RecalledRequest), LedgerError> {
        let CallKeys { current, older } = keys;
        let next = self.recall(&current).await?;
        if next.entry.is_none() {
            for key in older {
                let recalled = self.recall(&key).await?;
                if recalled.entry.is_some() {
                    return Ok((key, recalled));
                }
            }
        }
        Ok((current, next))
    }

    /// Finds the last request about a call that is not settled, or the name for the next one.
    ///
    /// # Errors
    /// The store does not answer, or has too many settled requests about equal calls for one search; the next search continues
    /// there.
    pub async fn recall(&self, key: &CallKey) -> Result<RecalledRequest, LedgerError> {
        let first = self.start_number(key).await?;
        for number in first..first.saturating_add(MAX_READS) {
            let name = key.ledger_key(number);
            let entry = self.find(&name).await?;
            let is_passed_over = entry.as_ref().is_some_and(|entry| {
                !key.matches_entry(entry) || matches!(entry.stage, CallStage::Settled { .. })
            });
            if !is_passed_over {
                if number > first {
                    self.set_start_number(key, number).await?;
                }
                return Ok(RecalledRequest { key: name, number, entry });
            }
        }
        self.set_start_number(key, first.saturating_add(MAX_READS)).await?;
        Err(LedgerError::Contended(key.id.clone()))
    }

    /// Skips a request whose call was started and never settled, once its requester got that result: the next equal call requests
    /// approval again. Does nothing while the request can still be answered.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn skip_unfinished(&self, key: &CallKey, number: u64) -> Result<(), LedgerError> {
        match self.find(&key.ledger_key(number)).await? {
            Some(LedgerEntry { stage: CallStage::Waiting, .. }) | None => Ok(()),
            Some(_) => self.set_start_number(key, number.saturating_add(1)).await,
        }
    }

    async fn start_number(&self, key: &CallKey) -> Result<u64, LedgerError> {
        let record = self.read_record(RecordKey { space: space::LATEST, key: &key.record_key() }).await?;
        let number = record.and_then(|record| record.value.get("number").and_then(Value::as_u64));
        Ok(number.unwrap_or(1).max(1))
    }

    /// Records the number at which searches start. The number never decreases.
    async fn set_start_number(&self, key: &CallKey, number: u64) -> Result<(), LedgerError> {
        let record_key = key.record_key();
        let value = json!({ "number": number });
        let forget_at = self.now().checked_add((24 * 90).hours()).ok();
        for _ in 0..MAX_TRIES {
            let record_key = RecordKey { space: space::LATEST, key: &record_key };
            let current = self.read_record(record_key).await?;
            let recorded = current.as_ref().and_then(|record| record.value.get("number")?.as_u64());
            if recorded.is_some_and(|recorded| recorded >= number) {
                return Ok(());
            }
            let expected_version = current.map(|record| record.version);
            let write = ConditionalWrite::new(record_key, &value, self.account());
            if self.write(ConditionalWrite { expected_version, forget_at, ..write }).await? {
                return Ok(());
            }
        }
        Err(LedgerError::Contended(key.id.clone()))
    }
}
