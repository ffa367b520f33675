//! Sources of keys: a string, the environment, or a file that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::key::MIN_KEY_BYTES;
use super::keys::Keys;

/// The environment variable that holds keys, as [`Keys::parse`] reads them.
pub const KEYS_VARIABLE: &str = "CALLGATE_KEYS";

/// Why keys can't be read or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no key.
    #[error("no key found: write at least 64 hex digits for each key, one key a line or separated by commas")]
    Missing,
    /// A key is invalid.
    #[error("key {number} is invalid: a key has at least {} hex digits", MIN_KEY_BYTES * 2)]
    Invalid {
        /// Its number, from 1.
        number: usize,
    },
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The operating system returns no random bytes.
    #[error("no random bytes for a key: {0}")]
    Random(getrandom::Error),
}

impl Keys {
    /// Parses keys: at least 64 hex digits each, one a line or separated by commas; `#` begins a comment. The first is the current key.
    ///
    /// # Errors
    /// [`KeyError`] if there is no key or one is invalid.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let secrets: Vec<Option<Vec<u8>>> = words.map(decode_hex).collect();
        let usable =
            |secret: &Option<Vec<u8>>| secret.as_ref().is_some_and(|bytes| bytes.len() >= MIN_KEY_BYTES);
        if let Some(index) = secrets.iter().position(|secret| !usable(secret)) {
            return Err(KeyError::Invalid { number: index + 1 });
        }
        Self::new(secrets.into_iter().flatten()).ok_or(KeyError::Missing)
    }

    /// Generates a key that only this process has: no other one accepts its seals.
    ///
    /// # Errors
    /// [`KeyError::Random`] if the operating system returns no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        Self::parse(&random_hex::<MIN_KEY_BYTES>().map_err(KeyError::Random)?)
    }

    /// Reads the keys of the environment variable [`KEYS_VARIABLE`]. Returns `None` if it is not set.
    ///
    /// # Errors
    /// [`KeyError`] if it has no valid keys.
    pub fn from_environment() -> Result<Option<Self>, KeyError> {
        match std::env::var(KEYS_VARIABLE) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(KeyError::Invalid { number: 1 }),
        }
    }

    /// Reads the keys of a file. A file that other users can read is rejected: with the keys they could forge approvals.
    ///
    /// # Errors
    /// [`KeyError`] if the file can't be used or has no valid keys.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| SecretFileError::Io { path: path.to_owned(), error };
        if is_exposed(&fs::metadata(path).map_err(failed)?) {
            return Err(SecretFileError::Exposed(path.to_owned()).into());
        }
        Self::parse(&fs::read_to_string(path).map_err(failed)?)
    }

    /// Reads the keys of a file. A missing file is created with a new random key, readable only by its owner. If several processes
    /// create it at once, all get the same key.
    ///
    /// # Errors
    /// [`KeyError`] if the file can't be used or created, or has no valid keys.
    pub fn from_file_or_new(path: &Path) -> Result<Self, KeyError> {
        let comment = "Key of Callgate's seals. Keep it secret. To rotate it, put a new key above this one.";
        Self::parse(&read_or_create_secret(path, comment)?)
    }
}

/// Why a file with secrets can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// Other users can access the file.
    #[error("`{}` is accessible to other users; run `chmod 600` on it", .0.display())]
    Exposed(PathBuf),
    /// The file can't be read or created.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The operating system returns no random bytes.
    #[error("no random bytes for a key: {0}")]
    Random(getrandom::Error),
}

/// Reads a file that only its owner can read. A missing file is created with a new random key in hex digits, below the comment.
pub fn read_or_create_secret(path: &Path, comment: &str) -> Result<String, SecretFileError> {
    let failed = |error| SecretFileError::Io { path: path.to_owned(), error };
    if !path.exists() {
        let key = random_hex::<MIN_KEY_BYTES>().map_err(SecretFileError::Random)?;
        let text = format!("# {comment}\n{key}\n");
        // Written completely to a draft, then linked: no process reads half a key, or replaces another one's key.
        let draft =
            path.with_extension(format!("{}.new", random_hex::<8>().map_err(SecretFileError::Random)?));
        let written = owner_only_options().open(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let linked = written.and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
    }
    if is_exposed(&fs::metadata(path).map_err(failed)?) {
        return Err(SecretFileError::Exposed(path.to_owned()));
    }
    fs::read_to_string(path).map_err(failed)
}

/// Generates `BYTES` random bytes, as hex digits.
pub fn random_hex<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(encode_hex(&bytes))
}

/// Encodes bytes as hex digits.
pub fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
fn is_exposed(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn owner_only_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options
}

/// Decodes pairs of hex digits. Returns `None` if the string is anything else.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
