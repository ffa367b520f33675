//! A snapshot of a bundle's files (contents and metadata), compared to detect changes.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::file_access::{FileSandbox, ReadError};
use crate::source::{self, BundleFiles};

/// The files of a bundle with their contents, including policy tests and files that policies refer to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileSnapshot {
    pub(super) survey: BundleFiles,
    files: BTreeMap<PathBuf, FileState>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileState {
    content: Result<u64, ReadError>,
    metadata: Option<FileMetadata>,
}

/// Metadata that changes if the same content is written again.
#[derive(Debug, PartialEq, Eq)]
struct FileMetadata {
    target: Option<PathBuf>,
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and ctime, on systems that have them. Programs can't set the ctime back.
    identity: [i64; 4],
}

impl FileSnapshot {
    /// Reads all files at and below the paths, and `referenced_files`.
    pub(super) fn of(paths: &[PathBuf], referenced_files: &[PathBuf]) -> Self {
        let survey = source::find_bundle_files(paths);
        let all = survey.files.iter().chain(&survey.tests).chain(referenced_files);
        let roots = &survey.roots;
        let files = all.map(|path| (path.clone(), FileState::new(path, roots))).collect();
        Self { survey, files }
    }

    /// Whether the files have the same contents, even if they were written again.
    #[cfg(feature = "watch")]
    pub(super) fn has_same_contents(&self, other: &Self) -> bool {
        self.survey == other.survey
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|((path, seen), (other_path, other))| {
                path == other_path && seen.content == other.content
            })
    }
}

#[cfg(feature = "watch")]
impl FileSnapshot {
    /// The paths of all files, including those that could not be read.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// The paths of the readable files, with symbolic links resolved.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Path> {
        self.files.values().filter_map(|seen| seen.metadata.as_ref()?.target.as_deref())
    }
}

impl FileState {
    fn new(path: &Path, roots: &FileSandbox) -> Self {
        let metadata = fs::metadata(path).ok().map(|metadata| FileMetadata::new(path, &metadata));
        let content = roots.read(path).map(|bytes| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            hasher.finish()
        });
        Self { content, metadata }
    }
}

impl FileMetadata {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        Self {
            target: path.canonicalize().ok(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
            identity: file_identity(metadata),
        }
    }
}

#[cfg(unix)]
pub(super) fn file_identity(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [metadata.dev().cast_signed(), metadata.ino().cast_signed(), metadata.ctime(), metadata.ctime_nsec()]
}

#[cfg(not(unix))]
pub(super) fn file_identity(_: &Metadata) -> [i64; 4] {
    [0; 4]
}
