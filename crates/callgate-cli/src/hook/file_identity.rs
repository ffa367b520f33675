//! Which file a path names: path → identity that changes if the file is replaced.

use std::fs::{self, Metadata};
use std::path::PathBuf;

/// A path, and the file that it named.
pub(super) struct FileIdentity {
    path: PathBuf,
    seen: Option<[u64; 2]>,
}

impl FileIdentity {
    /// The file that this path names now.
    pub(super) fn new(path: PathBuf) -> Self {
        let seen = identity(&path);
        Self { path, seen }
    }

    /// Whether the path still names the same file.
    pub(super) fn is_current(&self) -> bool {
        self.seen.is_some() && identity(&self.path) == self.seen
    }
}

fn identity(path: &std::path::Path) -> Option<[u64; 2]> {
    fs::metadata(path).ok().map(|metadata| numbers(&metadata))
}

/// Device and inode.
#[cfg(unix)]
fn numbers(metadata: &Metadata) -> [u64; 2] {
    use std::os::unix::fs::MetadataExt;
    [metadata.dev(), metadata.ino()]
}

/// The time of creation, where files have no number.
#[cfg(not(unix))]
fn numbers(metadata: &Metadata) -> [u64; 2] {
    let created = metadata.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    created.map_or([0; 2], |since| [since.as_secs(), u64::from(since.subsec_nanos())])
}
