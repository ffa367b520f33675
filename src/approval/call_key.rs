//! Finds the approval of a call again by what the call is: who requests it, its server, its tool and its arguments → the name under
//! which the ledger has it.
//!
//! Clients of a gateway give calls no ids that survive a connection. So the questions about equal calls of one requester are numbered:
//! the first open one is the call's, and those that are settled are used up. Where the numbers begin is recorded in the store. That
//! record only saves reads: without it, or with a wrong one, the call is asked about anew, or the numbers are walked from the start.

use jiff::ToSpan;

use super::entry::{Entry, Stage};
use super::ledger::{Ledger, LedgerError, Name, TRIES};
use super::question::Question;
use crate::call::ToolCall;
use crate::host::{RecordKey, Write, space};
use crate::json::{self, Digest, Value, json};
use crate::seal::{Keys, Purpose};

/// How many numbers one search reads.
const STEPS: u64 = 4096;

/// Identifies equal calls of one requester. Its names are keyed digests: nobody can find the arguments by trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    requester: String,
    call: Digest,
    /// The call, as records name it.
    name: Digest,
    id: String,
}

/// The same by each of the server's keys: which one the ledger has depends on when the call was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKeys {
    /// By the current key.
    pub current: CallKey,
    /// By keys that are still accepted.
    pub older: Vec<CallKey>,
}

impl CallKeys {
    /// Identifies a call of a requester. `requester`: a name that no other requester has.
    pub fn new(keys: &Keys, requester: &str, call: &ToolCall) -> Self {
        let digest = Question::digest_of_call(&call.tool, call.server.as_deref(), &call.input);
        let content = json!(["call", requester, digest.to_string()]);
        let of_name = |name| CallKey::from_name(requester, digest, name);
        let current = of_name(keys.digest(Purpose::Record, &content));
        let older = keys.digests(Purpose::Record, &content).skip(1).map(of_name).collect();
        Self { current, older }
    }
}

/// The last question about a call, or the name that the next one gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// Its name in the ledger.
    pub name: Name,
    /// The number of the question among those about equal calls, from 1.
    pub number: u64,
    /// What the ledger has: pending or claimed. `None` if nothing is asked.
    pub entry: Option<Entry>,
}

impl CallKey {
    fn from_name(requester: &str, call: Digest, name: Digest) -> Self {
        let text = name.to_string();
        let (head, rest) = text.split_at(8);
        let tail = rest.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default();
        Self { requester: requester.to_owned(), call, name, id: format!("{head}-{tail}") }
    }

    /// The id of the call, the same for equal calls of the requester.
    pub fn call_id(&self) -> &str {
        &self.id
    }

    fn name(&self, number: u64) -> Name {
        let occurrence = if number > 1 { format!("{}_{number}", self.id) } else { self.id.clone() };
        Name { conversation: self.requester.clone(), occurrence }
    }

    fn record_key(&self) -> String {
        json::canonical(&json!([self.requester, self.name.to_string()]))
    }

    /// Whether an entry is about this call. Ids are short, so different calls can have the same one.
    fn is_of(&self, entry: &Entry) -> bool {
        entry.call == self.call && entry.call_id == self.id
    }
}

impl Ledger<'_> {
    /// Finds the last question about a call that is not settled, under any of its keys (the current one first), or the name for the
    /// next one under the current key.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    pub async fn recall_any(&self, keys: CallKeys) -> Result<(CallKey, Recalled), LedgerError> {
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

    /// Finds the last question about a call that is not settled, or the name for the next one.
    ///
    /// # Errors
    /// When the store does not answer, or has too many settled questions about equal calls to read at once; then the next search goes on.
    pub async fn recall(&self, key: &CallKey) -> Result<Recalled, LedgerError> {
        let first = self.latest(key).await?;
        for number in first..first.saturating_add(STEPS) {
            let name = key.name(number);
            let entry = self.find(&name).await?;
            let is_passed = entry
                .as_ref()
                .is_some_and(|entry| !key.is_of(entry) || matches!(entry.stage, Stage::Settled { .. }));
            if !is_passed {
                if number > first {
                    self.set_latest(key, number).await?;
                }
                return Ok(Recalled { name, number, entry });
            }
        }
        self.set_latest(key, first.saturating_add(STEPS)).await?;
        Err(LedgerError::Contended(key.id.clone()))
    }

    /// Passes over a question whose call was started and never settled, after its requester got that result: the next equal call is
    /// asked about anew. Does nothing while the question can still be answered.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pass_over(&self, key: &CallKey, number: u64) -> Result<(), LedgerError> {
        match self.find(&key.name(number)).await? {
            Some(Entry { stage: Stage::Waiting, .. }) | None => Ok(()),
            Some(_) => self.set_latest(key, number.saturating_add(1)).await,
        }
    }

    async fn latest(&self, key: &CallKey) -> Result<u64, LedgerError> {
        let record = self.get(RecordKey { space: space::LATEST, key: &key.record_key() }).await?;
        let number = record.and_then(|record| record.value.get("number").and_then(Value::as_u64));
        Ok(number.unwrap_or(1).max(1))
    }

    /// Records where the numbers begin; never an earlier one than is recorded.
    async fn set_latest(&self, key: &CallKey, number: u64) -> Result<(), LedgerError> {
        let record_key = key.record_key();
        let value = json!({ "number": number });
        let forget_at = self.now().checked_add((24 * 90).hours()).ok();
        for _ in 0..TRIES {
            let record_key = RecordKey { space: space::LATEST, key: &record_key };
            let standing = self.get(record_key).await?;
            let recorded = standing.as_ref().and_then(|record| record.value.get("number")?.as_u64());
            if recorded.is_some_and(|recorded| recorded >= number) {
                return Ok(());
            }
            let over = standing.map(|record| record.version);
            let write = Write::new(record_key, &value, self.account());
            if self.write(Write { over, forget_at, ..write }).await? {
                return Ok(());
            }
        }
        Err(LedgerError::Contended(key.id.clone()))
    }
}
