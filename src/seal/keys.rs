//! The keys of a server: seals (authentication codes), ciphertexts and keyed digests, each for one purpose.

use std::sync::Arc;

use chacha20poly1305::aead::Payload;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::Mac;

use super::key::{Key, NONCE_BYTES};
use super::purpose::Purpose;
use crate::json::{Digest, Value, canonical, json};

/// Why a seal or a ciphertext is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It has another form, or the form of another version.
    #[error("this is not a seal of this version")]
    Malformed,
    /// Made with a key that is not accepted, or not accepted any more.
    #[error("the seal was made with a key that is not accepted here")]
    UnknownKey,
    /// Made for other content, for another purpose, or not made with these keys.
    #[error("the seal does not match its content")]
    Broken,
}

/// A value cannot be encrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    /// The operating system returns no random bytes.
    #[error("no random bytes for a nonce: {0}")]
    Random(getrandom::Error),
    /// More than the cipher takes in one message.
    #[error("too large to be encrypted")]
    TooLarge,
}

/// The version of the format of seals and ciphertexts. It is authenticated.
const VERSION: &str = "cg2";

/// The keys of a server: the first seals and encrypts, all are accepted. To rotate, put a new key in front, and remove the old one
/// once what was made with it has expired. A clone has the same keys.
///
/// | operation | algorithm | result |
/// | --- | --- | --- |
/// | [`seal`](Keys::seal), [`verify`](Keys::verify) | HMAC-SHA-256 | authentication code of content that travels beside it |
/// | [`encrypt`](Keys::encrypt), [`decrypt`](Keys::decrypt) | XChaCha20-Poly1305, random nonce | content that only the holders of the keys can read |
/// | [`digest`](Keys::digest), [`digests`](Keys::digests) | HMAC-SHA-256 | a name for a value, from which the value cannot be guessed |
///
/// Each operation and [`Purpose`] has a subkey of its own, derived by HKDF-SHA-256.
///
/// ```
/// use callgate::seal::{Keys, Purpose, SealError};
/// use callgate::json::json;
///
/// let keys = Keys::parse(&"5a".repeat(32)).unwrap();
/// let seal = keys.seal(Purpose::Approval, &json!(["approval_c1", { "amount": 250 }]));
/// assert_eq!(keys.verify(Purpose::Approval, &json!(["approval_c1", { "amount": 250.0 }]), &seal), Ok(()));
/// assert_eq!(keys.verify(Purpose::Approval, &json!(["approval_c1", { "amount": 251 }]), &seal), Err(SealError::Broken));
///
/// let token = keys.encrypt(Purpose::Approval, &json!("approval_c1"), b"PIN 4711").unwrap();
/// assert_eq!(keys.decrypt(Purpose::Approval, &json!("approval_c1"), &token).unwrap(), b"PIN 4711");
/// assert_eq!(keys.decrypt(Purpose::Approval, &json!("approval_c2"), &token), Err(SealError::Broken));
/// ```
#[derive(Clone)]
pub struct Keys(Arc<KeyRing>);

struct KeyRing {
    current: Key,
    /// Those that are accepted beside it.
    older: Vec<Key>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.all().map(Key::id).collect();
        f.debug_struct("Keys").field("ids", &ids).finish_non_exhaustive()
    }
}

impl Keys {
    /// Keys from their bytes, the current one first. Returns `None` if there are none or one is shorter than 32 bytes.
    pub fn new<S: AsRef<[u8]>>(secrets: impl IntoIterator<Item = S>) -> Option<Self> {
        let mut keys =
            secrets.into_iter().map(|secret| Key::new(secret.as_ref())).collect::<Option<Vec<_>>>()?;
        if keys.is_empty() {
            return None;
        }
        let current = keys.remove(0);
        Some(Self(Arc::new(KeyRing { current, older: keys })))
    }

    fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.0.current).chain(&self.0.older)
    }

    /// Seals a value with the current key. Equal JSON has the same seal: key order aside, numbers by value.
    pub fn seal(&self, purpose: Purpose, content: &Value) -> String {
        let key = &self.0.current;
        let code = key.seal(purpose, message(purpose, content).as_bytes()).finalize().into_bytes();
        format!("{VERSION}.{}.{}", key.id(), HEXLOWER.encode(&code))
    }

    /// Whether a seal was made for this value and purpose with one of the keys. The comparison takes constant time.
    ///
    /// # Errors
    /// [`SealError`]: which of the reasons there is not to accept it.
    pub fn verify(&self, purpose: Purpose, content: &Value, seal: &str) -> Result<(), SealError> {
        let (id, code) = parts(seal)?;
        // One spelling, so that a seal can stand for what it seals: upper case is refused.
        let code = HEXLOWER.decode(code.as_bytes()).map_err(|_| SealError::Malformed)?;
        let message = message(purpose, content);
        self.with_key(id, |key| key.seal(purpose, message.as_bytes()).verify_slice(&code).ok())
    }

    /// Whether a seal or a ciphertext names the current key.
    pub(crate) fn is_current(&self, sealed: &str) -> bool {
        parts(sealed).is_ok_and(|(id, _)| id == self.0.current.id())
    }

    /// Encrypts with the current key. `context` is authenticated and not contained in the result: it takes an equal one to decrypt. The
    /// same content has another ciphertext each time. Its length can be told from the ciphertext's.
    ///
    /// # Errors
    /// [`EncryptError`], where the operating system returns no random bytes, or for hundreds of gigabytes.
    pub fn encrypt(&self, purpose: Purpose, context: &Value, content: &[u8]) -> Result<String, EncryptError> {
        let mut bytes = [0u8; NONCE_BYTES];
        getrandom::fill(&mut bytes).map_err(EncryptError::Random)?;
        let key = &self.0.current;
        let aad = message(purpose, context);
        let payload = Payload { msg: content, aad: aad.as_bytes() };
        let ciphertext = key.encrypt(purpose, &bytes, payload).ok_or(EncryptError::TooLarge)?;
        let mut sealed = bytes.to_vec();
        sealed.extend(ciphertext);
        Ok(format!("{VERSION}.{}.{}", key.id(), BASE64URL_NOPAD.encode(&sealed)))
    }

    /// Decrypts what [`encrypt`](Keys::encrypt) returned for this purpose and an equal context.
    ///
    /// # Errors
    /// [`SealError`]: which of the reasons there is not to accept it.
    pub fn decrypt(&self, purpose: Purpose, context: &Value, sealed: &str) -> Result<Vec<u8>, SealError> {
        let (id, text) = parts(sealed)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| SealError::Malformed)?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Malformed)?;
        let aad = message(purpose, context);
        self.with_key(id, |key| key.decrypt(purpose, nonce, Payload { msg: ciphertext, aad: aad.as_bytes() }))
    }

    /// The digest of a value, with the current key. Equal JSON has an equal digest; without the key nobody can find the value by trying.
    pub fn digest(&self, purpose: Purpose, content: &Value) -> Digest {
        Digest::from_bytes(self.0.current.digest(purpose, message(purpose, content).as_bytes()))
    }

    /// The digests of a value with each of the keys, the current one first: which of them was made depends on when it was made.
    pub fn digests<'k>(
        &'k self,
        purpose: Purpose,
        content: &Value,
    ) -> impl Iterator<Item = Digest> + use<'k> {
        let message = message(purpose, content);
        self.all().map(move |key| Digest::from_bytes(key.digest(purpose, message.as_bytes())))
    }

    /// The first result of the keys with this id.
    fn with_key<T>(&self, id: &str, accept: impl Fn(&Key) -> Option<T>) -> Result<T, SealError> {
        let mut error = SealError::UnknownKey;
        for key in self.all().filter(|key| key.id() == id) {
            match accept(key) {
                Some(result) => return Ok(result),
                None => error = SealError::Broken,
            }
        }
        Err(error)
    }
}

/// What is authenticated. One JSON array, never joined texts: no byte can move from one member into the next.
fn message(purpose: Purpose, content: &Value) -> String {
    let mut text = canonical(&json!(["callgate", VERSION, purpose.name()]));
    text.pop();
    text.push(',');
    text.push_str(&canonical(content));
    text.push(']');
    text
}

/// The key id and the rest of a seal or a ciphertext.
fn parts(sealed: &str) -> Result<(&str, &str), SealError> {
    let mut parts = sealed.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(VERSION), Some(id), Some(rest), None) => Ok((id, rest)),
        _ => Err(SealError::Malformed),
    }
}
