//! Where keys come from: text, the environment, or a file that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::key::MIN_KEY_BYTES;
use super::keys::Keys;

/// The environment variable that holds keys, as [`Keys::parse`] reads them.
pub const KEYS_VARIABLE: &str = "CALLGATE_KEYS";

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text holds none.
    #[error("there is no key: write 64 hex digits or more, one key a line or with commas between them")]
    None,
    /// One of them can't be used.
    #[error("key {number} is not usable: a key is at least {} hex digits", MIN_KEY_BYTES * 2)]
    Unusable {
        /// Which, from 1.
        number: usize,
    },
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The operating system gives no random bytes.
    #[error("no random bytes for a key: {0}")]
    Random(getrandom::Error),
}

impl Keys {
    /// Reads keys out of a text: hex digits, at least 64 each, one a line or with commas between them; `#` begins a comment. The
    /// first makes seals.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let secrets: Vec<Option<Vec<u8>>> = words.map(bytes_of_hex).collect();
        let usable =
            |secret: &Option<Vec<u8>>| secret.as_ref().is_some_and(|bytes| bytes.len() >= MIN_KEY_BYTES);
        if let Some(place) = secrets.iter().position(|secret| !usable(secret)) {
            return Err(KeyError::Unusable { number: place + 1 });
        }
        Self::new(secrets.into_iter().flatten()).ok_or(KeyError::None)
    }

    /// A key that ends with the process: no other one accepts what is made with it.
    ///
    /// # Errors
    /// [`KeyError::Random`], where the operating system returns no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        Self::parse(&random_hex::<MIN_KEY_BYTES>().map_err(KeyError::Random)?)
    }

    /// The keys of the environment variable [`KEYS_VARIABLE`]; nothing where it is not set.
    pub fn from_environment() -> Result<Option<Self>, KeyError> {
        match std::env::var(KEYS_VARIABLE) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => Err(KeyError::Unusable { number: 1 }),
        }
    }

    /// The keys of a file. One that others can read is refused: whoever reads it can say yes to anything.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let failed = |error| SecretFileError::File { path: path.to_owned(), error };
        if is_exposed(&fs::metadata(path).map_err(failed)?) {
            return Err(SecretFileError::Exposed(path.to_owned()).into());
        }
        Self::parse(&fs::read_to_string(path).map_err(failed)?)
    }

    /// The keys of a file, which is made with a new key if it is not there. Only its owner can read it. Of several processes that
    /// make it at once, all get the key of one.
    pub fn from_file_or_new(path: &Path) -> Result<Self, KeyError> {
        let comment = "Seals what Callgate hands out. Keep it secret; a new key goes in front of this one.";
        Self::parse(&secret_from_file_or_new(path, comment)?)
    }
}

/// Why a file that only its owner may read can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// Others can read the file.
    #[error("`{}` can be read by others: take their rights away, as with `chmod 600`", .0.display())]
    Exposed(PathBuf),
    /// The file can't be read or made.
    #[error("`{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The operating system gives no random bytes.
    #[error("no random bytes for a key: {0}")]
    Random(getrandom::Error),
}

/// The text of a file that only its owner can read. A missing one is made with a new random key, in hex digits below the comment.
pub(crate) fn secret_from_file_or_new(path: &Path, comment: &str) -> Result<String, SecretFileError> {
    let failed = |error| SecretFileError::File { path: path.to_owned(), error };
    if !path.exists() {
        let key = random_hex::<MIN_KEY_BYTES>().map_err(SecretFileError::Random)?;
        let text = format!("# {comment}\n{key}\n");
        // Written whole beside it, then linked: nobody ever reads half a key, and no process replaces another's.
        let draft =
            path.with_extension(format!("{}.new", random_hex::<8>().map_err(SecretFileError::Random)?));
        let written = owner_only().open(&draft).and_then(|mut file| {
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

/// So many random bytes, as hex digits.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Bytes in hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
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
fn owner_only() -> OpenOptions {
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

/// The bytes that pairs of hex digits stand for; nothing where they are none.
pub(crate) fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
