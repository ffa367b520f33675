//! Canonical form and digest of JSON values, to which approvals are bound and by which caches are keyed.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;

use super::{Value, writer};

/// A SHA-256 digest, shown as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of bytes.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The bytes of the digest.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Wraps a digest that was computed elsewhere, such as a keyed one.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first 16 hex digits, for display.
    pub fn short_hex(&self) -> String {
        self.to_string().chars().take(16).collect()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut digits = [0; 64];
        HEXLOWER.encode_mut(&self.0, &mut digits);
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl std::str::FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| InvalidDigest)?;
        bytes.try_into().map(Self).map_err(|_| InvalidDigest)
    }
}

/// The text is not a digest of 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hex digits in lower case")]
pub struct InvalidDigest;

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// The canonical text of a value: sorted keys, no white space, one notation per number. Two values have the same text
/// if and only if they are equal.
pub fn canonical_text(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// The digest of a value's canonical text.
pub fn digest(value: &Value) -> Digest {
    Digest::compute(canonical_text(value).as_bytes())
}

/// Appends the canonical text of a value.
pub(crate) fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&number.canonical_text()),
        Value::Array(items) => write_canonical_array(items, text, write_canonical),
        Value::Object(map) => {
            write_canonical_object(map.iter().map(|(key, item)| (key.as_str(), item)), text, write_canonical);
        }
        Value::String(string) => drop(writer::write_string(string, text)),
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
    }
}

/// Appends the canonical text of an array with these items.
pub(crate) fn write_canonical_array<T>(items: &[T], text: &mut String, write: impl Fn(&T, &mut String)) {
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(']');
}

/// Appends the canonical text of an object with these members.
pub(crate) fn write_canonical_object<'v, T>(
    members: impl Iterator<Item = (&'v str, T)>,
    text: &mut String,
    write: impl Fn(T, &mut String),
) {
    let mut members: SmallVec<[(&str, T); 16]> = members.collect();
    members.sort_by_key(|(key, _)| *key);
    text.push('{');
    for (index, (key, item)) in members.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let _ = writer::write_string(key, text);
        text.push(':');
        write(item, text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn key_order_and_number_notation_do_not_matter() {
        let a = json!({"b": [1.0, "x\n"], "a": null});
        let b = json!({"a": null, "b": [1, "x\n"]});
        assert_eq!(canonical_text(&a), r#"{"a":null,"b":[1,"x\n"]}"#);
        assert_eq!(digest(&a), digest(&b));
        assert_ne!(digest(&json!(9007199254740992u64)), digest(&json!(9007199254740993u64)));
    }
}
