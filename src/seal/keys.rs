//! The keys of a server: seals (authentication codes), ciphertexts and keyed digests, each for one purpose.

use std::sync::Arc;

use chacha20poly1305::aead::Payload;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::Mac;

use super::key::{Key, NONCE_BYTES};
use super::purpose::Purpose;
use crate::json::{Digest, Value, write_canonical};

/// Why a seal or a ciphertext is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It is malformed, or of another format version.
    #[error("the seal is malformed or of another version")]
    Malformed,
    /// It was made with a key that is not among these, or no longer.
    #[error("the seal was made with an unknown key")]
    UnknownKey,
    /// It was made for other content or another purpose, or is forged.
    #[error("the seal does not match its content")]
    Mismatch,
}

/// Why a value cannot be encrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptError {
    /// The operating system returns no random bytes.
    #[error("no random bytes for a nonce: {0}")]
    Random(getrandom::Error),
    /// The content is larger than one message of the cipher can be.
    #[error("the content is too large to encrypt")]
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
/// assert_eq!(keys.verify(Purpose::Approval, &json!(["approval_c1", { "amount": 251 }]), &seal), Err(SealError::Mismatch));
///
/// let token = keys.encrypt(Purpose::Approval, &json!("approval_c1"), b"PIN 4711").unwrap();
/// assert_eq!(keys.decrypt(Purpose::Approval, &json!("approval_c1"), &token).unwrap(), b"PIN 4711");
/// assert_eq!(keys.decrypt(Purpose::Approval, &json!("approval_c2"), &token), Err(SealError::Mismatch));
/// ```
#[derive(Clone)]
pub struct Keys(Arc<KeyRing>);

struct KeyRing {
    current: Key,
    /// Further keys that are accepted, for key rotation.
    older: Vec<Key>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<&str> = self.all_keys().map(Key::id).collect();
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

    fn all_keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.0.current).chain(&self.0.older)
    }

    /// Seals a value with the current key. Equal JSON has the same seal: key order aside, numbers by value.
    #[doc(hidden)]
    pub fn seal(&self, purpose: Purpose, content: &Value) -> String {
        let key = &self.0.current;
        let code =
            key.seal(purpose, authenticated_message(purpose, content).as_bytes()).finalize().into_bytes();
        format!("{VERSION}.{}.{}", key.id(), HEXLOWER.encode(&code))
    }

    /// Verifies that a seal was made for this value and purpose with one of the keys. Constant-time comparison.
    ///
    /// # Errors
    /// [`SealError`] if it was not.
    #[doc(hidden)]
    pub fn verify(&self, purpose: Purpose, content: &Value, seal: &str) -> Result<(), SealError> {
        let (id, code) = split_sealed(seal)?;
        // Only lower case is valid: each seal has one spelling, so that it can identify what it seals.
        let code = HEXLOWER.decode(code.as_bytes()).map_err(|_| SealError::Malformed)?;
        let message = authenticated_message(purpose, content);
        self.with_key(id, |key| key.seal(purpose, message.as_bytes()).verify_slice(&code).ok())
    }

    /// Whether a seal or a ciphertext names the current key.
    pub(crate) fn is_current(&self, sealed: &str) -> bool {
        split_sealed(sealed).is_ok_and(|(id, _)| id == self.0.current.id())
    }

    /// Encrypts with the current key. `context` is authenticated but not part of the result: decryption needs an equal one. The same
    /// content has another ciphertext each time. The ciphertext reveals the content's length.
    ///
    /// # Errors
    /// [`EncryptError`] if the operating system returns no random bytes, or the content has hundreds of gigabytes.
    #[doc(hidden)]
    pub fn encrypt(&self, purpose: Purpose, context: &Value, content: &[u8]) -> Result<String, EncryptError> {
        let mut bytes = [0u8; NONCE_BYTES];
        getrandom::fill(&mut bytes).map_err(EncryptError::Random)?;
        let key = &self.0.current;
        let aad = authenticated_message(purpose, context);
        let payload = Payload { msg: content, aad: aad.as_bytes() };
        let ciphertext = key.encrypt(purpose, &bytes, payload).ok_or(EncryptError::TooLarge)?;
        let mut sealed = bytes.to_vec();
        sealed.extend(ciphertext);
        Ok(format!("{VERSION}.{}.{}", key.id(), BASE64URL_NOPAD.encode(&sealed)))
    }

    /// Decrypts a result of [`encrypt`](Keys::encrypt) for this purpose and an equal context.
    ///
    /// # Errors
    /// [`SealError`] if the ciphertext is malformed, of an unknown key, or made for another purpose, context or content.
    #[doc(hidden)]
    pub fn decrypt(&self, purpose: Purpose, context: &Value, sealed: &str) -> Result<Vec<u8>, SealError> {
        let (id, text) = split_sealed(sealed)?;
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| SealError::Malformed)?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Malformed)?;
        let aad = authenticated_message(purpose, context);
        self.with_key(id, |key| key.decrypt(purpose, nonce, Payload { msg: ciphertext, aad: aad.as_bytes() }))
    }

    /// The digest of a value under the current key. Equal JSON has an equal digest; without the key the value can't be guessed by trying.
    #[doc(hidden)]
    pub fn digest(&self, purpose: Purpose, content: &Value) -> Digest {
        Digest::from_bytes(self.0.current.digest(purpose, authenticated_message(purpose, content).as_bytes()))
    }

    /// The digests of a value under each of the keys, the current one first: a stored digest may be from before a key rotation.
    #[doc(hidden)]
    pub fn digests<'k>(
        &'k self,
        purpose: Purpose,
        content: &Value,
    ) -> impl Iterator<Item = Digest> + use<'k> {
        let message = authenticated_message(purpose, content);
        self.all_keys().map(move |key| Digest::from_bytes(key.digest(purpose, message.as_bytes())))
    }

    /// The first success of `accept` among the keys with this id. Ids are short, so several keys may share one.
    fn with_key<T>(&self, id: &str, accept: impl Fn(&Key) -> Option<T>) -> Result<T, SealError> {
        let mut error = SealError::UnknownKey;
        for key in self.all_keys().filter(|key| key.id() == id) {
            match accept(key) {
                Some(result) => return Ok(result),
                None => error = SealError::Mismatch,
            }
        }
        Err(error)
    }
}

/// The authenticated message: one JSON array, never joined strings, so that no byte can move from one member into the next.
fn authenticated_message(purpose: Purpose, content: &Value) -> String {
    // None of the three needs an escape.
    let mut text = format!("[\"callgate\",\"{VERSION}\",\"{}\",", purpose.name());
    write_canonical(content, &mut text);
    text.push(']');
    text
}

/// Splits a seal or a ciphertext into the key id and the rest.
fn split_sealed(sealed: &str) -> Result<(&str, &str), SealError> {
    let mut parts = sealed.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(VERSION), Some(id), Some(rest), None) => Ok((id, rest)),
        _ => Err(SealError::Malformed),
    }
}
