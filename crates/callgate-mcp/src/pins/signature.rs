//! Ed25519 signatures of lock files, which prove who accepted the tools. Verification needs no secret.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use callgate::json::Value;
use serde::{Deserialize, Serialize};

use callgate::json;
use callgate::seal::{PublicKey, SigningKey, decode_hex, encode_hex};

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
        "line {line} of `{}` is not a public key: write `ed25519:` and 64 hexadecimal digits, as `callgate pins key` prints them",
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
                let key = text.split_whitespace().next().and_then(|key| key.parse().ok());
                key.ok_or_else(|| SignerError::Line { path: path.to_owned(), line })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(SignerError::Empty(path.to_owned()));
        }
        Ok(Self(keys))
    }

    /// Their public keys.
    pub fn public_keys(&self) -> &[PublicKey] {
        &self.0
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
        let verified = decode_hex(&signature.signature)
            .is_some_and(|signature| key.verify(&signed_bytes(content), &signature));
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

/// Signs content with the secret key of someone who may accept tools.
pub(super) fn sign(key: &SigningKey, content: &Value) -> Signature {
    Signature { key: key.public_key().to_string(), signature: encode_hex(&key.sign(&signed_bytes(content))) }
}

fn signed_bytes(content: &Value) -> Vec<u8> {
    json::canonical_text(&json::json!([SIGNATURE_CONTEXT, content])).into_bytes()
}
