//! Whether the file is still the one that was opened: SQLite would go on in one that nobody finds any more.

use std::fs;
use std::path::Path;

/// Which file lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Place {
    /// Nothing if there is none. Where files have no identity, any is the same.
    pub fn of(path: &Path) -> Option<Self> {
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
