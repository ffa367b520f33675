//! The journal of a script: its effects so far and their results. It is plain data, so that a script can resume in another
//! process, and it is bound to the script and the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::effect::{Answer, ScriptEffect};
use super::fuel::VALUE_BYTES;
use super::printed_lines::LatestLines;
use super::script_call::{ScriptCall, ScriptConstants};
use crate::call::NamedResult;
use crate::json::{self, Value};
use crate::time::TimeValue;

/// The maximum number of effects of one call.
pub const MAX_EFFECTS: usize = 64;
/// The maximum size of a stored journal, in bytes; each value counts as 64 bytes beside its text.
pub const MAX_JOURNAL: usize = 16 << 20;

/// The effects of one call of a script, in order, with their results.
///
/// Serialized, it is a JSON object with digests of the script, of the call and of each effect's arguments, the
/// results, and the session values and named values that the script reads. It is not signed: seal it if you store it where others can write.
#[derive(Clone, Debug)]
pub struct Journal<'c> {
    pub(super) call: ScriptCall<'c>,
    pub(super) entries: Vec<JournalEntry<'c>>,
    /// The steps of all replays with it in this process.
    pub(super) steps: StepsTaken,
    /// What the latest replay in this process printed.
    pub(super) printed: LatestLines,
}

/// A step counter with interior mutability: replays borrow the journal only for reading.
#[derive(Debug, Default)]
pub(super) struct StepsTaken(AtomicU64);

impl StepsTaken {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, steps: u64) {
        self.0.store(steps, Ordering::Relaxed);
    }
}

impl Clone for StepsTaken {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}

#[derive(Clone, Debug)]
pub(super) struct JournalEntry<'c> {
    request: RecordedRequest<'c>,
    pub(super) result: Answer,
}

#[derive(Clone, Debug)]
enum RecordedRequest<'c> {
    InProcess(ScriptEffect<'c>),
    /// Read from a stored journal, which holds only the digest of the arguments.
    Stored {
        effect: String,
        arguments: String,
    },
}

/// A stored journal that is not valid for this script and call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The value is not a journal, or has an unknown version.
    #[error("invalid script journal: {0}")]
    Malformed(String),
    /// The journal belongs to another script.
    #[error("the journal belongs to another script")]
    OtherScript,
    /// The journal belongs to another call.
    #[error("the journal belongs to another call")]
    OtherCall,
    /// The journal exceeds [`MAX_JOURNAL`] or [`MAX_EFFECTS`].
    #[error("the journal is too large")]
    TooLarge,
    /// The script cannot run around this call.
    #[error("{0}")]
    InvalidCall(String),
}

impl<'c> Journal<'c> {
    /// Creates an empty journal for a call.
    pub fn new(call: &ScriptCall<'c>) -> Self {
        Self {
            call: call.clone(),
            entries: Vec::new(),
            steps: StepsTaken::default(),
            printed: LatestLines::default(),
        }
    }

    /// Records the result of the effect that was requested last.
    pub fn push(&mut self, effect: ScriptEffect<'c>, answer: Answer) {
        self.entries.push(JournalEntry { request: RecordedRequest::InProcess(effect), result: answer });
    }

    /// The lines that the latest replay printed.
    pub fn printed(&self) -> Vec<String> {
        self.printed.get()
    }

    /// The number of effects that have a result.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no effect has a result yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Parses a stored journal.
    ///
    /// # Errors
    /// The value is not a journal, has an unknown version, or is too large.
    pub(super) fn parse_stored(stored: &Value) -> Result<StoredJournal, JournalError> {
        if approximate_size(stored) > MAX_JOURNAL {
            return Err(JournalError::TooLarge);
        }
        let stored: StoredJournal =
            json::from_value(stored.clone()).map_err(|error| JournalError::Malformed(error.to_string()))?;
        if stored.journal != VERSION {
            return Err(JournalError::Malformed(format!("version {} is unknown", stored.journal)));
        }
        if stored.entries.len() > MAX_EFFECTS {
            return Err(JournalError::TooLarge);
        }
        for entry in &stored.entries {
            let known = super::function_table::find_function(&entry.effect)
                .is_some_and(super::script_function::ScriptFunction::is_effect);
            if !known || (entry.error.is_some() == entry.value.is_some()) {
                return Err(JournalError::Malformed(
                    "an entry is not an effect with exactly one result".to_owned(),
                ));
            }
        }
        Ok(stored)
    }

    pub(super) fn restore(call: &ScriptCall<'c>, stored: StoredJournal) -> Self {
        let entries = stored.entries.into_iter().map(|entry| JournalEntry {
            result: match entry.error {
                Some(error) => Answer::Error { message: error.message, kind: error.kind },
                None => Answer::Value(Arc::new(entry.value.unwrap_or_default())),
            },
            request: RecordedRequest::Stored { effect: entry.effect, arguments: entry.arguments },
        });
        Self {
            call: call.clone(),
            entries: entries.collect(),
            steps: StepsTaken::default(),
            printed: LatestLines::default(),
        }
    }
}

impl<'c> JournalEntry<'c> {
    /// Whether this entry holds the result of that effect.
    pub(super) fn is_result_of(&self, effect: &ScriptEffect<'_>) -> bool {
        match &self.request {
            RecordedRequest::InProcess(recorded) => recorded.is_same_request(effect),
            RecordedRequest::Stored { effect: name, arguments } => {
                name == effect.name() && *arguments == effect.digest().to_string()
            }
        }
    }

    pub(super) fn effect_name(&self) -> &str {
        self.request.effect_name()
    }

    /// The effect, if it was requested in this process.
    pub(super) fn local_effect(&self) -> Option<&ScriptEffect<'c>> {
        match &self.request {
            RecordedRequest::InProcess(effect) => Some(effect),
            RecordedRequest::Stored { .. } => None,
        }
    }
}

impl RecordedRequest<'_> {
    fn effect_name(&self) -> &str {
        match self {
            Self::InProcess(effect) => effect.name(),
            Self::Stored { effect, .. } => effect,
        }
    }
}

const VERSION: u64 = 1;

/// The stored form of a journal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredJournal {
    journal: u64,
    pub(super) script: String,
    pub(super) call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lets: BTreeMap<String, StoredLet>,
    entries: Vec<StoredEntry>,
}

/// The stored result of a named value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredLet {
    Value(Value),
    /// A point in time.
    Timestamp(String),
    /// Whole seconds, and nanoseconds of the same sign.
    Duration(i64, i32),
    Open,
    Absent(String),
    Undecided(String),
}

impl StoredJournal {
    /// Takes what the script reads beside its call.
    pub(super) fn take_constants(&mut self) -> ScriptConstants {
        let lets = std::mem::take(&mut self.lets).into_iter().map(|(name, stored)| {
            let result = match stored {
                StoredLet::Value(value) => NamedResult::Value(value),
                StoredLet::Timestamp(text) => match text.parse() {
                    Ok(at) => NamedResult::Time(TimeValue::Timestamp(at)),
                    Err(_) => NamedResult::Undecided("its stored value is not a timestamp".to_owned()),
                },
                StoredLet::Duration(seconds, nanoseconds) => {
                    let nanoseconds = SignedDuration::from_nanos(nanoseconds.into());
                    match SignedDuration::from_secs(seconds).checked_add(nanoseconds) {
                        Some(duration) => NamedResult::Time(TimeValue::Duration(duration)),
                        None => NamedResult::Undecided("its stored value is not a duration".to_owned()),
                    }
                }
                StoredLet::Open => NamedResult::OpenCondition,
                StoredLet::Absent(why) => NamedResult::Absent(why),
                StoredLet::Undecided(why) => NamedResult::Undecided(why),
            };
            (name, result)
        });
        ScriptConstants { session: self.session.take(), lets: lets.collect() }
    }
}

impl From<&NamedResult> for StoredLet {
    fn from(result: &NamedResult) -> Self {
        match result {
            NamedResult::Value(value) => Self::Value(value.clone()),
            NamedResult::Time(TimeValue::Timestamp(at)) => Self::Timestamp(at.to_string()),
            NamedResult::Time(TimeValue::Duration(duration)) => {
                Self::Duration(duration.as_secs(), duration.subsec_nanos())
            }
            NamedResult::OpenCondition => Self::Open,
            NamedResult::Absent(why) => Self::Absent(why.clone()),
            NamedResult::Undecided(why) => Self::Undecided(why.clone()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    effect: String,
    arguments: String,
    #[serde(default, deserialize_with = "deserialize_null_as_some", skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<StoredError>,
}

/// Reads null as a value: it is a valid result of an effect.
fn deserialize_null_as_some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredError {
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

impl Serialize for Journal<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ScriptConstants { session, lets } = self.call.constants();
        let mut bytes = session.as_ref().map_or(0, approximate_size);
        bytes += lets.values().map(size_of_let).sum::<usize>();
        let entries = self.entries.iter().map(|entry| {
            let arguments = match &entry.request {
                RecordedRequest::InProcess(effect) => effect.digest().to_string(),
                RecordedRequest::Stored { arguments, .. } => arguments.clone(),
            };
            let (value, error) = match &entry.result {
                Answer::Value(value) => {
                    bytes += approximate_size(value);
                    (Some(Value::clone(value)), None)
                }
                Answer::Error { message, kind } => {
                    bytes += message.len();
                    (None, Some(StoredError { message: message.clone(), kind: kind.clone() }))
                }
            };
            StoredEntry { effect: entry.request.effect_name().to_owned(), arguments, value, error }
        });
        let stored = StoredJournal {
            journal: VERSION,
            script: self.call.script().to_string(),
            call: self.call.digest().to_string(),
            session: session.clone(),
            lets: lets.iter().map(|(name, result)| (name.clone(), result.into())).collect(),
            entries: entries.collect(),
        };
        if bytes > MAX_JOURNAL {
            return Err(serde::ser::Error::custom(JournalError::TooLarge));
        }
        stored.serialize(serializer)
    }
}

/// The approximate size of a value, in bytes.
fn approximate_size(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Number(number) => number.text().len(),
            Value::Array(items) => items.iter().map(approximate_size).sum(),
            Value::Object(members) => {
                members.iter().map(|(key, member)| key.len() + approximate_size(member)).sum()
            }
            Value::Null | Value::Bool(_) => 0,
        }
}

fn size_of_let(result: &NamedResult) -> usize {
    match result {
        NamedResult::Value(value) => approximate_size(value),
        NamedResult::OpenCondition | NamedResult::Time(_) => VALUE_BYTES,
        NamedResult::Absent(why) | NamedResult::Undecided(why) => VALUE_BYTES + why.len(),
    }
}
