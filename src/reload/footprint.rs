//! What a bundle's files hold at one moment, so that a change is seen whatever it was that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::source::{self, MAX_FILE_BYTES, Survey};

/// The files of a bundle with their contents, policy tests and what policies draw on included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    survey: Survey,
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    content: Result<u64, ErrorKind>,
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
        let files = all.map(|path| (path.clone(), Seen::of(path))).collect();
        Self { survey, files }
    }

    /// Whether the files say the same, whoever may have written them anew.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.survey == other.survey
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(|((path, seen), (other_path, other))| {
                path == other_path && seen.content == other.content
            })
    }

    /// The directories in which a change of the files shows: those searched, those of the files and of what links lead
    /// to, those of the links, and where one does not exist the nearest above, in which it would come back.
    #[cfg(feature = "watch")]
    pub(super) fn directories(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        let mut add = |directory: &Path| {
            found.extend(directory.ancestors().find_map(|path| named(path).canonicalize().ok()));
        };
        self.survey.directories.iter().for_each(|directory| add(directory));
        for path in paths.iter().chain(self.files.keys()) {
            add(parent(path));
            path.ancestors().filter(|path| path.is_symlink()).for_each(|link| add(parent(link)));
        }
        let targets = self.files.values().filter_map(|seen| seen.mark.as_ref()?.target.as_deref());
        targets.for_each(|target| add(parent(target)));
        found.into_iter().collect()
    }
}

#[cfg(feature = "watch")]
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// The empty path is the directory where the program runs.
#[cfg(feature = "watch")]
fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Tells a directory from another one that bears the same name later. Inodes are used again, so the time when it was made
/// belongs to it.
#[cfg(feature = "watch")]
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DirectoryIdentity {
    created: Option<SystemTime>,
    place: [i64; 2],
}

#[cfg(feature = "watch")]
impl DirectoryIdentity {
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let metadata = fs::metadata(directory).ok()?;
        let [device, inode, ..] = identity(&metadata);
        Some(Self { created: metadata.created().ok(), place: [device, inode] })
    }
}

impl Seen {
    fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path);
        let mark = metadata.as_ref().ok().map(|metadata| Mark::of(path, metadata));
        let content = metadata.and_then(|metadata| {
            // A pipe or a device could keep us waiting for ever.
            if !metadata.is_file() {
                return Err(ErrorKind::InvalidInput.into());
            }
            let mut bytes = Vec::new();
            File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            Ok(hasher.finish())
        });
        Self { content: content.map_err(|error| error.kind()), mark }
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
fn identity(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [metadata.dev().cast_signed(), metadata.ino().cast_signed(), metadata.ctime(), metadata.ctime_nsec()]
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> [i64; 4] {
    [0; 4]
}
