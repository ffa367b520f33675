//! Ed25519 keys: whoever has the secret key signs, and verification needs no secret. Uses ring.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::key_source::{SecretFileError, decode_hex, encode_hex, read_or_create_secret};

/// The prefix of a public key in text form.
const PREFIX: &str = "ed25519:";
/// The length of a public key in bytes.
const PUBLIC_KEY_BYTES: usize = 32;

/// A public key. Text form: `ed25519:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Whether the secret key of this one signed the message.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", encode_hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let bytes = text.strip_prefix(PREFIX).and_then(decode_hex).ok_or(InvalidPublicKey)?;
        (bytes.len() == PUBLIC_KEY_BYTES).then_some(Self(bytes)).ok_or(InvalidPublicKey)
    }
}

/// The text is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a public key is `{PREFIX}` and 64 hexadecimal digits")]
pub struct InvalidPublicKey;

/// Why a file with a signing key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The file can't be used.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The file does not hold a key.
    #[error("`{}` is not a signing key: it must contain 64 hexadecimal digits", .0.display())]
    NotAKey(PathBuf),
}

/// A secret key.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Reads the key of a file; creates the file with a new key if it is missing. Only its owner may have access to it.
    ///
    /// # Errors
    /// The file can't be read or created, others can read it, or it does not contain a key.
    pub fn from_file_or_new(path: &Path) -> Result<Self, SigningKeyError> {
        let text = read_or_create_secret(path, "A signing key of Callgate (Ed25519). Keep it secret.")?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let seed = line.and_then(decode_hex);
        let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        pair.map(Self).ok_or_else(|| SigningKeyError::NotAKey(path.to_owned()))
    }

    /// The public key that verifies signatures of this key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }

    /// The signature of a message. Its beginning must say what it is for, so that no signature is valid for another purpose.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}
