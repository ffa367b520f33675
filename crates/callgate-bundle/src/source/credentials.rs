//! Credentials of a source: a file with `Bearer TOKEN` or `Basic USER:PASSWORD` → the value of an `Authorization` header.

use std::path::Path;

use callgate::file_access::read_regular_file;
use data_encoding::BASE64;
use reqwest::header::HeaderValue;

use super::SourceError;

/// The largest file, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Credentials, as the file has them.
pub(super) enum Credentials {
    /// A token.
    Bearer(String),
    /// A user and a password, separated by a colon.
    Basic(String),
}

impl Credentials {
    /// Reads a file. Tokens may be exchanged at any time, so it is read for each request.
    pub(super) fn read(path: &Path) -> Result<Self, SourceError> {
        let invalid = |why: String| SourceError(format!("the credentials in `{}`: {why}", path.display()));
        let text = read_regular_file(path, MAX_BYTES).map_err(|error| invalid(error.to_string()))?;
        match text.trim().split_once(' ') {
            Some(("Bearer", token)) => Ok(Self::Bearer(token.trim().to_owned())),
            Some(("Basic", pair)) if pair.contains(':') => Ok(Self::Basic(pair.trim().to_owned())),
            _ => Err(invalid("write `Bearer TOKEN` or `Basic USER:PASSWORD`".to_owned())),
        }
    }

    /// The value of the header, which is not shown in logs.
    pub(super) fn header(&self) -> Result<HeaderValue, SourceError> {
        let text = match self {
            Self::Bearer(token) => format!("Bearer {token}"),
            Self::Basic(pair) => format!("Basic {}", BASE64.encode(pair.as_bytes())),
        };
        let invalid = |_| SourceError("the credentials have characters that no header may have".to_owned());
        let mut header = HeaderValue::from_str(&text).map_err(invalid)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_are_read_and_errors_show_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials");
        let header = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Credentials::read(&path)?.header()
        };
        let bearer = header("Bearer secret\n").unwrap();
        assert_eq!(bearer.to_str().unwrap(), "Bearer secret");
        assert!(bearer.is_sensitive());
        assert_eq!(header("Basic ann:secret").unwrap().to_str().unwrap(), "Basic YW5uOnNlY3JldA==");
        for text in ["secret", "", "Basic secret", "Bearer se\ncret"] {
            assert!(!header(text).unwrap_err().to_string().contains("cret"), "{text}");
        }
    }
}
