//! What is written to the store below: a value with its serial number and a seal over both and over where they lie.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::host::{CacheEntry, RecordKey};
use crate::seal::{KeyError, Keys, Purpose, random_hex};

/// One version of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// One more than that of the version before it.
    pub serial: u64,
    /// Tells two versions of the same serial number apart.
    pub nonce: String,
    /// From when on the store may forget it.
    pub forget_at: Option<Timestamp>,
    /// What the record says.
    pub value: Value,
}

impl Envelope {
    pub fn new(serial: u64, forget_at: Option<Timestamp>, value: Value) -> Result<Self, KeyError> {
        Ok(Self { serial, nonce: random_hex::<16>()?, forget_at, value })
    }

    /// The envelope with its seal, as JSON.
    pub fn sealed(&self, keys: &Keys, store: &str, key: RecordKey<'_>) -> Value {
        let seal = keys.seal(Purpose::Record, &self.content(store, key));
        json!({ "serial": self.serial, "nonce": self.nonce, "forget_at": self.forget_at.map(|at| at.to_string()),
            "value": self.value, "seal": seal })
    }

    /// Reads what [`sealed`](Self::sealed) wrote. Returns `None` if anything of it is not what a holder of the keys wrote there.
    pub fn open(keys: &Keys, store: &str, key: RecordKey<'_>, mut sealed: Value) -> Option<Self> {
        let members = sealed.as_object_mut().filter(|members| members.len() == 5)?;
        let seal = members.get("seal")?.as_str()?.to_owned();
        let forget_at = match members.get("forget_at")? {
            Value::Null => None,
            time => Some(time.as_str()?.parse().ok()?),
        };
        let envelope = Self {
            serial: members.get("serial")?.as_u64()?,
            nonce: members.get("nonce")?.as_str()?.to_owned(),
            forget_at,
            value: members.get_mut("value")?.take(),
        };
        keys.verify(Purpose::Record, &envelope.content(store, key), &seal).ok()?;
        Some(envelope)
    }

    fn content(&self, store: &str, key: RecordKey<'_>) -> Value {
        let forget_at = self.forget_at.map(|at| at.to_string());
        json!([store, key.space, key.key, self.serial, self.nonce, forget_at, self.value])
    }
}

/// Whether the key that makes seals made the seal of this record. What is not one needs none.
pub fn is_current(keys: &Keys, sealed: &Value) -> bool {
    sealed.get("seal").and_then(Value::as_str).is_none_or(|seal| keys.is_current(seal))
}

/// A cached result with its seal.
pub fn seal_cached(keys: &Keys, store: &str, place: (&str, &str), entry: CacheEntry) -> CacheEntry {
    let seal = keys.seal(Purpose::Cache, &cached_content(store, place, &entry, &entry.output));
    CacheEntry { output: json!([seal, entry.output]), ..entry }
}

/// Reads what [`seal_cached`] wrote. Returns `None` if anything of it is not what a holder of the keys wrote there.
pub fn open_cached(keys: &Keys, store: &str, place: (&str, &str), entry: CacheEntry) -> Option<CacheEntry> {
    let [seal, output] = entry.output.as_array()?.as_slice() else { return None };
    keys.verify(Purpose::Cache, &cached_content(store, place, &entry, output), seal.as_str()?).ok()?;
    Some(CacheEntry { output: output.clone(), ..entry })
}

fn cached_content(store: &str, (space, key): (&str, &str), entry: &CacheEntry, output: &Value) -> Value {
    json!([store, space, key, entry.stored_at.to_string(), entry.expires_at.to_string(), output])
}
