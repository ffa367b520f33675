//! The keys of a server, and the seals made with them.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::json::canonical;

/// What a seal is for. One made for one purpose is worth nothing for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A question to a person.
    Approval,
    /// A person's answer.
    Answer,
    /// What a session has seen.
    Session,
    /// A store, as belonging to the holders of the keys.
    Store,
    /// A record in a store.
    Record,
    /// A cached result.
    Cache,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Answer => "answer",
            Self::Session => "session",
            Self::Store => "store",
            Self::Record => "record",
            Self::Cache => "cache",
        }
    }
}

/// Why a seal counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Not of the form of a seal.
    #[error("this is no seal")]
    Malformed,
    /// Made with a key that is not accepted, or not any more.
    #[error("the seal was made with a key that is not accepted here")]
    UnknownKey,
    /// Made for other content, for another purpose, or not made by us.
    #[error("the seal does not fit what it is said to seal")]
    Broken,
}

/// The form of seals, and of what they are reckoned over.
const VERSION: &str = "cg1";
/// Fewer bytes than the hash has make a key easier to guess than a seal.
pub(super) const MIN_KEY_BYTES: usize = 32;

/// The keys of a server: the first makes seals, all are accepted. To rotate, put a new key in front, and take the old one out
/// once what was sealed with it has expired.
///
/// ```
/// use callgate::seal::{Keys, Purpose, SealError};
/// use serde_json::json;
///
/// let keys = Keys::parse(&"5a".repeat(32)).unwrap();
/// let seal = keys.seal(Purpose::Approval, &json!(["approval_c1", { "amount": 250 }]));
/// assert_eq!(keys.verify(Purpose::Approval, &json!(["approval_c1", { "amount": 250.0 }]), &seal), Ok(()));
/// assert_eq!(keys.verify(Purpose::Approval, &json!(["approval_c1", { "amount": 251 }]), &seal), Err(SealError::Broken));
/// ```
#[derive(Clone)]
pub struct Keys {
    signing: Key,
    /// Those that are accepted beside it.
    older: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: String,
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.all().map(|key| key.id.as_str()).collect();
        f.debug_struct("Keys").field("ids", &ids).finish_non_exhaustive()
    }
}

impl Key {
    /// A key out of at least [`MIN_KEY_BYTES`].
    fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < MIN_KEY_BYTES {
            return None;
        }
        // Derived, so that nobody has to name keys; the hash gives nothing of the key away.
        let digest = Sha256::new().chain_update(b"callgate key id\0").chain_update(secret).finalize();
        let id = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Some(Self { id, mac: Hmac::new_from_slice(secret).ok()? })
    }

    fn over(&self, purpose: Purpose, content: &Value) -> Hmac<Sha256> {
        // One JSON array, never joined texts: no byte can move from one member into the next.
        let message = canonical(&json!(["callgate", VERSION, purpose.name(), content]));
        self.mac.clone().chain_update(message.as_bytes())
    }
}

impl Keys {
    /// Keys out of their bytes, the one that makes seals first. Nothing, if there are none or one is shorter than 32 bytes.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Option<Self> {
        let mut keys =
            secrets.into_iter().map(|secret| Key::new(secret.as_ref())).collect::<Option<Vec<_>>>()?;
        if keys.is_empty() {
            return None;
        }
        let signing = keys.remove(0);
        Some(Self { signing, older: keys })
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.signing).chain(&self.older)
    }

    /// Seals a value. Equal JSON has the same seal: key order aside, numbers by value.
    pub fn seal(&self, purpose: Purpose, content: &Value) -> String {
        let tag = self.signing.over(purpose, content).finalize().into_bytes();
        let hex: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{VERSION}.{}.{hex}", self.signing.id)
    }

    /// Whether a seal was made for this value with one of the keys. The comparison takes the same time wherever it fails.
    pub fn verify(&self, purpose: Purpose, content: &Value, seal: &str) -> Result<(), SealError> {
        let mut parts = seal.split('.');
        let (Some(VERSION), Some(id), Some(hex), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SealError::Malformed);
        };
        // One spelling, so that a seal can stand for what it seals.
        if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(SealError::Malformed);
        }
        let tag = super::source::bytes_of_hex(hex).ok_or(SealError::Malformed)?;
        let key = self.all().find(|key| key.id == id).ok_or(SealError::UnknownKey)?;
        key.over(purpose, content).verify_slice(&tag).map_err(|_| SealError::Broken)
    }

    /// Whether a seal names the key that makes seals now.
    pub(crate) fn is_current(&self, seal: &str) -> bool {
        seal.split('.').nth(1) == Some(&self.signing.id)
    }
}
