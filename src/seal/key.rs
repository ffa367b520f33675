//! One key of a server: its id, the subkeys derived from it, and the operations with them.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::purpose::Purpose;

/// Minimum key length: a key shorter than the hash is easier to guess than a seal.
pub(super) const MIN_KEY_BYTES: usize = 32;
/// Domain separation: subkeys differ from those that other programs derive from the same key.
const SALT: &[u8] = b"callgate";
const SUBKEY_BYTES: usize = 32;
const ID_BYTES: usize = 4;

/// Length in bytes of the nonce of a ciphertext.
pub(super) const NONCE_BYTES: usize = 24;

/// A key, as the subkeys that are derived from it by HKDF-SHA-256. The key itself is not stored.
pub(super) struct Key {
    id: String,
    /// One for each purpose, in the order of [`Purpose::ALL`].
    subkeys: [Subkeys; Purpose::ALL.len()],
}

/// The subkeys of one purpose. No two operations share a subkey.
struct Subkeys {
    seal: Hmac<Sha256>,
    digest: Hmac<Sha256>,
    cipher: XChaCha20Poly1305,
}

impl Key {
    /// Derives the subkeys. Returns `None` if the key is shorter than [`MIN_KEY_BYTES`].
    pub(super) fn new(secret: &[u8]) -> Option<Self> {
        if secret.len() < MIN_KEY_BYTES {
            return None;
        }
        let root = Hkdf::<Sha256>::new(Some(SALT), secret);
        let mut id = [0u8; ID_BYTES];
        root.expand(b"key id", &mut id).ok()?;
        let mut derived = Vec::with_capacity(Purpose::ALL.len());
        for purpose in Purpose::ALL {
            derived.push(Subkeys::derive(&root, purpose)?);
        }
        Some(Self { id: data_encoding::HEXLOWER.encode(&id), subkeys: derived.try_into().ok()? })
    }

    /// An id that identifies the key without revealing anything about it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    #[expect(clippy::indexing_slicing, reason = "every purpose has its index")]
    fn subkeys(&self, purpose: Purpose) -> &Subkeys {
        &self.subkeys[purpose.index()]
    }

    /// The authentication code over a message, to be finished or compared.
    pub(super) fn seal(&self, purpose: Purpose, message: &[u8]) -> Hmac<Sha256> {
        self.subkeys(purpose).seal.clone().chain_update(message)
    }

    /// The keyed digest of a message.
    pub(super) fn digest(&self, purpose: Purpose, message: &[u8]) -> [u8; 32] {
        self.subkeys(purpose).digest.clone().chain_update(message).finalize().into_bytes().into()
    }

    /// Encrypts. Returns `None` if the plaintext is larger than the cipher takes.
    pub(super) fn encrypt(
        &self,
        purpose: Purpose,
        nonce: &[u8; NONCE_BYTES],
        payload: Payload<'_, '_>,
    ) -> Option<Vec<u8>> {
        self.subkeys(purpose).cipher.encrypt(&XNonce::from(*nonce), payload).ok()
    }

    /// Decrypts. Returns `None` if the ciphertext or what is authenticated beside it was changed.
    pub(super) fn decrypt(
        &self,
        purpose: Purpose,
        nonce: &[u8; NONCE_BYTES],
        payload: Payload<'_, '_>,
    ) -> Option<Vec<u8>> {
        self.subkeys(purpose).cipher.decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

impl Subkeys {
    fn derive(root: &Hkdf<Sha256>, purpose: Purpose) -> Option<Self> {
        let subkey = |operation: &str| {
            let mut bytes = [0u8; SUBKEY_BYTES];
            // Neither part contains the separator byte, so no two pairs have the same info.
            let info = [operation.as_bytes(), b"\0", purpose.name().as_bytes()];
            root.expand_multi_info(&info, &mut bytes).ok().map(|()| bytes)
        };
        Some(Self {
            seal: Hmac::new_from_slice(&subkey("seal")?).ok()?,
            digest: Hmac::new_from_slice(&subkey("digest")?).ok()?,
            cipher: XChaCha20Poly1305::new(&subkey("encrypt")?.into()),
        })
    }
}
