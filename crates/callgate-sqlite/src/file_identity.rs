//! File identity: detects that the open file was removed or replaced, because SQLite would continue with a file that no
//! path refers to.

use std::fs;
use std::path::Path;

/// The identity of the file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// Reads the identity. Returns `None` if there is no file. On systems without file ids, all files are equal.
    pub fn from_path(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self::new(&found))
    }

    #[cfg(unix)]
    fn new(found: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { device: found.dev(), inode: found.ino() }
    }

    #[cfg(not(unix))]
    fn new(_: &fs::Metadata) -> Self {
        Self {}
    }
}
