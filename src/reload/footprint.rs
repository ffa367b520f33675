//! What a bundle's files hold at one moment, so that a change is seen whatever it was that changed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files::{ReadError, Roots};
use crate::source::{self, Survey};

/// The files of a bundle with their contents, policy tests and what policies draw on included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) survey: Survey,
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    content: Result<u64, ReadError>,
    mark: Option<Mark>,
}

/// What another writing of the same content changes.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    target: Option<PathBuf>,
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of change where there are such: the latter can't be set back.
    identity: [i64; 4],
}

impl Footprint {
    /// Reads everything at and below the paths, and the other files.
    pub(super) fn of(paths: &[PathBuf], drawn_files: &[PathBuf]) -> Self {
        let survey = source::survey(paths);
        let all = survey.files.iter().chain(&survey.tests).chain(drawn_files);
        let roots = &survey.roots;
        let files = all.map(|path| (path.clone(), Seen::of(path, roots))).collect();
        Self { survey, files }
    }

    /// Whether the files say the same, whoever may have written them anew.
    #[cfg(feature = "watch")]
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.survey == other.survey
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|((path, seen), (other_path, other))| {
                path == other_path && seen.content == other.content
            })
    }
}

#[cfg(feature = "watch")]
impl Footprint {
    /// The files that were looked for, but for what is in the survey alone.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Where the files are that can be read, links followed.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Path> {
        self.files.values().filter_map(|seen| seen.mark.as_ref()?.target.as_deref())
    }
}

impl Seen {
    fn of(path: &Path, roots: &Roots) -> Self {
        let mark = fs::metadata(path).ok().map(|metadata| Mark::of(path, &metadata));
        let content = roots.read(path).map(|bytes| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            hasher.finish()
        });
        Self { content, mark }
    }
}

impl Mark {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        Self {
            target: path.canonicalize().ok(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
            identity: identity(metadata),
        }
    }
}

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [metadata.dev().cast_signed(), metadata.ino().cast_signed(), metadata.ctime(), metadata.ctime_nsec()]
}

#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> [i64; 4] {
    [0; 4]
}
