//! Directories to watch for changes of a bundle's files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::file_snapshot::{FileSnapshot, file_identity};

impl FileSnapshot {
    /// The directories to watch: those searched, those of the files, of symbolic links and of their targets. For a directory that does
    /// not exist: its nearest existing ancestor, in which it would reappear.
    pub(super) fn watched_directories(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        let mut add = |directory: &Path| {
            found.extend(directory.ancestors().find_map(|path| or_current(path).canonicalize().ok()));
        };
        self.survey.directories.iter().for_each(|directory| add(directory));
        for path in paths.iter().map(PathBuf::as_path).chain(self.files()) {
            add(parent_directory(path));
            path.ancestors()
                .filter(|path| path.is_symlink())
                .for_each(|symlink| add(parent_directory(symlink)));
        }
        self.targets().for_each(|target| add(parent_directory(target)));
        found.into_iter().collect()
    }
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The empty path means the current directory.
fn or_current(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Distinguishes a directory from a later one of the same name. Inodes are reused, so the creation time is part of the identity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DirectoryIdentity {
    created: Option<SystemTime>,
    device_and_inode: [i64; 2],
}

impl DirectoryIdentity {
    pub(super) fn new(directory: &Path) -> Option<Self> {
        let metadata = fs::metadata(directory).ok()?;
        let [device, inode, ..] = file_identity(&metadata);
        Some(Self { created: metadata.created().ok(), device_and_inode: [device, inode] })
    }
}
