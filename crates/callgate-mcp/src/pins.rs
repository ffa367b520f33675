//! The lock file of reviewed tools: a tool that is new, or that has changed since its review, is neither listed nor run until someone
//! accepts it (protection against tool poisoning and rug pulls).
//!
//! A tool is accepted by its digest, which covers the whole description in the file; a file in which the two differ is rejected. A
//! signature proves who accepted the file's content.

mod signature;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use callgate::seal::{PublicKey, SigningKey, SigningKeyError};
pub use signature::{Signature, SignerError, Signers};

use callgate::file_access::read_regular_file;
use callgate::json::{self, Value, json};
use callgate::safe_text::escape_controls;
use signature::Verification;

/// The version of the file format.
const VERSION: u64 = 1;

/// The longest lock file that is read.
const MAX_FILE: u64 = 64 << 20;

/// A lock file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    /// The version of the file format.
    callgate: u64,
    /// Servers by name.
    pub servers: BTreeMap<String, PinnedServer>,
    /// The signature of whoever accepted the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
}

/// A reviewed server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedServer {
    /// Its tools by their own (unprefixed) names, with full descriptions, so that a review can show the differences.
    pub tools: BTreeMap<String, PinnedTool>,
}

/// A reviewed tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedTool {
    /// The digest of its description.
    pub digest: String,
    /// Its description, as the server listed it.
    pub tool: Value,
}

impl PinnedTool {
    /// Pins a tool as its server describes it now.
    pub fn new(tool: &Value) -> Self {
        Self { digest: json::digest(tool).to_string(), tool: tool.clone() }
    }
}

/// The review status of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PinStatus {
    /// It is unchanged since its review.
    Accepted,
    /// It has not been reviewed.
    New,
    /// It has changed since its review.
    Changed,
}

/// The error of an unusable lock file.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// It can't be read or written.
    #[error("the lock file `{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// It is not a valid lock file.
    #[error("`{}` is not a valid lock file: {error}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: json::Error,
    },
    /// A later version of Callgate wrote it.
    #[error("`{}` has the format version {version}; this Callgate supports {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The digest of a tool does not match its description.
    #[error(
        "`{}` was edited: its digest of the tool `{}` of the server `{}` does not match the description beside it. Restore the file, or \
         remove the tool from it and accept it again",
        path.display(), escape_controls(tool), escape_controls(server)
    )]
    Edited {
        /// The file.
        path: PathBuf,
        /// The server's name.
        server: String,
        /// The tool's name.
        tool: String,
    },
    /// A signature is required and missing.
    #[error("`{}` is not signed: sign it with `callgate pins accept --sign KEY`", .0.display())]
    Unsigned(PathBuf),
    /// It is signed by someone who may not accept tools.
    #[error("`{}` is signed with the key `{}`, which is not among those that may sign it", path.display(), escape_controls(key))]
    UnknownSigner {
        /// The file.
        path: PathBuf,
        /// The public key that it names.
        key: String,
    },
    /// The signature does not match the content.
    #[error("`{}` was edited after it was signed: restore it, or accept its tools again", .0.display())]
    BrokenSignature(PathBuf),
}

impl LockFile {
    /// A lock file that accepts no tool.
    pub fn empty() -> Self {
        Self { callgate: VERSION, ..Self::default() }
    }

    /// Reads a lock file. A missing one is empty.
    ///
    /// # Errors
    /// The file can't be read or is not a lock file, or a digest does not match its tool.
    pub fn read(path: &Path) -> Result<Self, LockFileError> {
        let text = match read_regular_file(path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(LockFileError::File { path: path.to_owned(), error }),
        };
        let form = |error| LockFileError::Form { path: path.to_owned(), error };
        let file: Self = json::from_str(&text).map_err(form)?;
        if file.callgate != VERSION {
            return Err(LockFileError::Version { path: path.to_owned(), version: file.callgate });
        }
        match file.find_edited() {
            None => Ok(file),
            Some((server, tool)) => Err(LockFileError::Edited {
                path: path.to_owned(),
                server: server.clone(),
                tool: tool.clone(),
            }),
        }
    }

    /// Reads a lock file that one of these must have signed. A missing one is empty and needs no signature.
    ///
    /// # Errors
    /// As [`read`](Self::read); or nobody signed it, somebody else did, or it was edited since.
    pub fn read_signed(path: &Path, signers: &Signers) -> Result<Self, LockFileError> {
        let file = Self::read(path)?;
        if file.servers.is_empty() {
            return Ok(file);
        }
        let path = path.to_owned();
        let Some(signature) = &file.signature else { return Err(LockFileError::Unsigned(path)) };
        match signers.verify(&file.signed_content(), signature) {
            Verification::Valid => Ok(file),
            Verification::UnknownSigner => {
                Err(LockFileError::UnknownSigner { path, key: signature.key().to_owned() })
            }
            Verification::Invalid => Err(LockFileError::BrokenSignature(path)),
        }
    }

    /// Signs the current content and replaces any earlier signature; `None` removes it.
    pub fn sign(&mut self, key: Option<&SigningKey>) {
        self.signature = key.map(|key| signature::sign(key, &self.signed_content()));
    }

    /// Returns whether it has a signature, of any signer, verified or not.
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }

    fn signed_content(&self) -> Value {
        let servers = self.servers.iter().map(|(server, pinned)| {
            let tools = pinned.tools.iter().map(|(name, tool)| json!([name, tool.digest, tool.tool]));
            json!([server, tools.collect::<Vec<_>>()])
        });
        json!([self.callgate, servers.collect::<Vec<_>>()])
    }

    /// The first tool whose digest or key does not match its description.
    fn find_edited(&self) -> Option<(&String, &String)> {
        let is_edited = |name: &String, pinned: &PinnedTool| {
            pinned.digest != json::digest(&pinned.tool).to_string()
                || pinned.tool.get("name").and_then(Value::as_str) != Some(name.as_str())
        };
        self.servers.iter().find_map(|(server, pinned)| {
            let edited = pinned.tools.iter().find(|(name, tool)| is_edited(name, tool));
            edited.map(|(name, _)| (server, name))
        })
    }

    /// Writes the file atomically.
    pub fn write(&self, path: &Path) -> Result<(), LockFileError> {
        let failed = |error| LockFileError::File { path: path.to_owned(), error };
        let mut text = json::to_string_pretty(self)
            .map_err(|error| LockFileError::Form { path: path.to_owned(), error })?;
        text.push('\n');
        let draft = path.with_extension(format!("{:08x}.new", fastrand::u32(..)));
        let written = fs::File::create(&draft).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, path)
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&draft);
            failed(error)
        })
    }

    /// The review status of a server's tool.
    pub fn status(&self, server: &str, name: &str, tool: &Value) -> PinStatus {
        match self.servers.get(server).and_then(|server| server.tools.get(name)) {
            None => PinStatus::New,
            Some(pinned) if pinned.digest == json::digest(tool).to_string() => PinStatus::Accepted,
            Some(_) => PinStatus::Changed,
        }
    }
}

/// The lock file of a gateway, reread when a tool in it may have been accepted.
#[derive(Debug)]
pub(super) struct PinnedTools {
    path: PathBuf,
    /// The keys of which one must have signed it; `None` requires no signature.
    signers: Option<Signers>,
    file: Mutex<LockFile>,
}

impl PinnedTools {
    pub(super) fn from_file(path: PathBuf, signers: Option<Signers>) -> Result<Self, LockFileError> {
        let file = Mutex::new(Self::read_file(&path, signers.as_ref())?);
        Ok(Self { path, signers, file })
    }

    fn read_file(path: &Path, signers: Option<&Signers>) -> Result<LockFile, LockFileError> {
        match signers {
            Some(signers) => LockFile::read_signed(path, signers),
            None => LockFile::read(path),
        }
    }

    /// The review status of a tool. If it is not accepted, the file is reread; if that fails, the last valid content applies.
    pub(super) fn status(&self, server: &str, name: &str, tool: &Value) -> PinStatus {
        let mut known = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let status = known.status(server, name, tool);
        if status == PinStatus::Accepted {
            return status;
        }
        match Self::read_file(&self.path, self.signers.as_ref()) {
            Ok(file) => {
                *known = file;
                known.status(server, name, tool)
            }
            Err(_) => status,
        }
    }
}

#[cfg(test)]
mod tests;
