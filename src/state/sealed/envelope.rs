//! Encrypted envelopes: a value with its serial number and location ↔ the JSON in the inner store.

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;

use crate::host::{CacheEntry, RecordKey};
use crate::json::{self, Value, json};
use crate::seal::{EncryptError, Keys, Purpose};

/// The length of a version's name: the random nonce of its ciphertext, in base64.
const NAME_LENGTH: usize = 32;

/// One version of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// Larger than that of the previous version.
    pub serial: u64,
    /// Distinguishes versions with the same serial number: no two ciphertexts have the same name.
    pub name: String,
    /// When the store may delete the record.
    pub forget_at: Option<Timestamp>,
    /// The decrypted value.
    pub value: Value,
}

impl Envelope {
    /// Encrypts a value. Returns the envelope, and the JSON for the inner store.
    pub fn seal(
        keys: &Keys,
        location: RecordLocation<'_>,
        serial: u64,
        forget_at: Option<Timestamp>,
        value: &Value,
    ) -> Result<(Self, Value), EncryptError> {
        let context = location.record_context(serial, forget_at);
        let sealed = keys.encrypt(Purpose::Record, &context, value.to_string().as_bytes())?;
        let envelope = Self {
            serial,
            name: version_name(&sealed).unwrap_or_default().to_owned(),
            forget_at,
            value: value.clone(),
        };
        let stored =
            json!({ "serial": serial, "forget_at": forget_at.map(|at| at.to_string()), "sealed": sealed });
        Ok((envelope, stored))
    }

    /// Decrypts what [`seal`](Self::seal) returned. Returns `None` unless all of it was written there by a holder of the
    /// keys.
    pub fn open(keys: &Keys, location: RecordLocation<'_>, stored: &Value) -> Option<Self> {
        let serial = stored.get("serial")?.as_u64()?;
        let forget_at = match stored.get("forget_at")? {
            Value::Null => None,
            time => Some(time.as_str()?.parse().ok()?),
        };
        let sealed = stored.get("sealed")?.as_str()?;
        let context = location.record_context(serial, forget_at);
        let text = keys.decrypt(Purpose::Record, &context, sealed).ok()?;
        let value = json::parse(str::from_utf8(&text).ok()?).ok()?;
        Some(Self { serial, name: version_name(sealed)?.to_owned(), forget_at, value })
    }

    /// The version as stores count it: different for each write of the record.
    pub fn version(&self) -> u64 {
        let bytes = BASE64URL_NOPAD.decode(self.name.as_bytes()).unwrap_or_default();
        bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}

/// Whether a record is encrypted with the current key. Records without encryption count as current, because they can't be
/// re-encrypted.
pub fn is_current(keys: &Keys, stored: &Value) -> bool {
    stored.get("sealed").and_then(Value::as_str).is_none_or(|sealed| keys.is_current(sealed))
}

/// A location: the store, and the key in it.
#[derive(Clone, Copy)]
pub struct RecordLocation<'a> {
    pub store: &'a str,
    pub key: RecordKey<'a>,
}

impl RecordLocation<'_> {
    fn record_context(self, serial: u64, forget_at: Option<Timestamp>) -> Value {
        let forget_at = forget_at.map(|at| at.to_string());
        json!(["record", self.store, self.key.space, self.key.key, serial, forget_at])
    }

    fn cache_context(self, entry: &CacheEntry) -> Value {
        let (stored_at, expires_at) = (entry.stored_at.to_string(), entry.expires_at.to_string());
        json!(["cached", self.store, self.key.space, self.key.key, stored_at, expires_at])
    }
}

/// Encrypts a cached result.
pub fn seal_cached(
    keys: &Keys,
    location: RecordLocation<'_>,
    entry: CacheEntry,
) -> Result<CacheEntry, EncryptError> {
    let text = entry.output.to_string();
    let sealed = keys.encrypt(Purpose::Record, &location.cache_context(&entry), text.as_bytes())?;
    Ok(CacheEntry { output: sealed.into(), ..entry })
}

/// Decrypts what [`seal_cached`] returned. Returns `None` unless all of it was written there by a holder of the keys.
pub fn open_cached(keys: &Keys, location: RecordLocation<'_>, entry: CacheEntry) -> Option<CacheEntry> {
    let text = keys.decrypt(Purpose::Record, &location.cache_context(&entry), entry.output.as_str()?).ok()?;
    let output = json::parse(str::from_utf8(&text).ok()?).ok()?;
    Some(CacheEntry { output, ..entry })
}

/// The name of a version: the nonce at the start of its ciphertext.
fn version_name(sealed: &str) -> Option<&str> {
    sealed.rsplit('.').next()?.get(..NAME_LENGTH)
}
