//! Ed25519 signatures of lock files, which prove who accepted the tools. Verification needs no secret.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use callgate::json::Value;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use callgate::json;
use callgate::seal::{SecretFileError, decode_hex, encode_hex, read_or_create_secret};

/// The prefix of a public key in text form.
const PREFIX: &str = "ed25519:";
/// The first member of the signed content: domain separation from signatures for other purposes.
const SIGNATURE_CONTEXT: &str = "callgate pins";

/// A signature over the content of a lock file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The public key that verifies it, in the text form of [`PublicKey`].
    key: String,
    /// In hexadecimal digits.
    signature: String,
}

impl Signature {
    /// The public key that it names.
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

/// The public key of someone who may accept tools. Text form: `ed25519:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", encode_hex(&self.0))
    }
}

impl PublicKey {
    fn parse(text: &str) -> Option<Self> {
        let bytes = decode_hex(text.strip_prefix(PREFIX)?)?;
        (bytes.len() == 32).then_some(Self(bytes))
    }
}

/// The error of unusable signer keys.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// The file can't be read.
    #[error("the public keys in `{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// A line is not a public key.
    #[error(
        "line {line} of `{}` is not a public key: write `{PREFIX}` and 64 hexadecimal digits, as `callgate pins key` prints them",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file has no public key.
    #[error("`{}` has no public key: write one per line, as `callgate pins key` prints them", .0.display())]
    Empty(PathBuf),
    /// The file of the secret key can't be used.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The file of the secret key does not hold one.
    #[error("`{}` is not a signing key: it must contain 64 hexadecimal digits", .0.display())]
    NotAKey(PathBuf),
}

/// The people who may accept tools, by their public keys.
#[derive(Clone, Debug)]
pub struct Signers(Vec<PublicKey>);

impl Signers {
    /// Reads a file with one public key per line; text after a key and lines that begin with `#` are comments.
    ///
    /// # Errors
    /// The file can't be read, a line is not a key, or there is none.
    pub fn from_file(path: &Path) -> Result<Self, SignerError> {
        let text =
            fs::read_to_string(path).map_err(|error| SignerError::File { path: path.to_owned(), error })?;
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let keys = lines
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, text)| {
                let key = text.split_whitespace().next().and_then(PublicKey::parse);
                key.ok_or_else(|| SignerError::Line { path: path.to_owned(), line })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(SignerError::Empty(path.to_owned()));
        }
        Ok(Self(keys))
    }

    /// Adds a signer.
    #[must_use]
    pub fn with_signer(mut self, key: PublicKey) -> Self {
        self.0.push(key);
        self
    }

    /// Verifies that one of these signed the content.
    pub(super) fn verify(&self, content: &Value, signature: &Signature) -> Verification {
        let Some(key) = self.0.iter().find(|key| key.to_string() == signature.key) else {
            return Verification::UnknownSigner;
        };
        let verified = decode_hex(&signature.signature).is_some_and(|bytes| {
            UnparsedPublicKey::new(&ED25519, &key.0).verify(&signed_bytes(content), &bytes).is_ok()
        });
        if verified { Verification::Valid } else { Verification::Invalid }
    }
}

impl From<PublicKey> for Signers {
    fn from(key: PublicKey) -> Self {
        Self(vec![key])
    }
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    Valid,
    UnknownSigner,
    Invalid,
}

/// The secret key of someone who may accept tools.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Reads the key of a file; creates the file with a new key if it is missing. Only its owner may have access to it.
    ///
    /// # Errors
    /// The file can't be read or created, others can read it, or it does not contain a key.
    pub fn from_file_or_new(path: &Path) -> Result<Self, SignerError> {
        let text = read_or_create_secret(
            path,
            "Signs the tools that its owner accepts (`callgate pins accept --sign`). Keep it secret.",
        )?;
        let lines = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let seed = lines.and_then(decode_hex);
        let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        pair.map(Self).ok_or_else(|| SignerError::NotAKey(path.to_owned()))
    }

    /// The public key that verifies signatures of this key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }

    pub(super) fn sign(&self, content: &Value) -> Signature {
        let signature = encode_hex(self.0.sign(&signed_bytes(content)).as_ref());
        Signature { key: self.public_key().to_string(), signature }
    }
}

fn signed_bytes(content: &Value) -> Vec<u8> {
    json::canonical_text(&json::json!([SIGNATURE_CONTEXT, content])).into_bytes()
}
