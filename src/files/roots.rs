//! Reads the files of a bundle: regular files below the directories that were given, and nothing else, so that rules from
//! people who are not trusted can be checked.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A larger file is refused, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;
/// What all files of a bundle may measure together, in bytes.
pub const MAX_BUNDLE_BYTES: u64 = 32 << 20;
/// How many links are followed one after the other.
const MAX_LINKS: usize = 40;

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The system refuses.
    Unreadable(ErrorKind),
    /// It is a directory.
    Directory,
    /// It is a pipe, a device or the like.
    NotRegular,
    /// It is larger than [`MAX_FILE_BYTES`].
    TooLarge,
    /// It is not below the directories of the bundle. Whether it exists is not said.
    Outside,
    /// With it the bundle is larger than [`MAX_BUNDLE_BYTES`].
    TooMuch,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.kind())
    }
}

/// The directories below which the files of a bundle are. By default there are none, and nothing is read. Clones share what
/// was read.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    directories: Vec<PathBuf>,
    /// Whoever names the files may name any.
    anywhere: bool,
    read: Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    bytes: u64,
    /// What was read of files that others name. Read once, they say the same to all who name them.
    kept: HashMap<PathBuf, Arc<[u8]>>,
}

impl Roots {
    /// The directories that these paths stand for: a directory itself, and of a file the directory that it is in.
    pub fn of(paths: &[PathBuf]) -> Self {
        Self::new(paths.iter().filter_map(|path| root_of(path)).collect(), false)
    }

    /// The directories of files that are in memory, by their names.
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let directory = |name: &str| directory_of(Path::new(name)).canonicalize().ok();
        Self::new(names.into_iter().filter_map(directory).collect(), false)
    }

    /// No bounds but those on size: for files that are named by whoever runs the program.
    #[cfg(feature = "mcp")]
    pub fn anywhere() -> Self {
        Self::new(Vec::new(), true)
    }

    fn new(mut directories: Vec<PathBuf>, anywhere: bool) -> Self {
        directories.sort();
        directories.dedup();
        Self(Arc::new(Shared { directories, anywhere, read: Mutex::default() }))
    }

    /// The path of what a path leads to, without links.
    ///
    /// # Errors
    /// [`ReadError::Outside`] where that is not below the directories, whether it exists or not.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let error = match path.canonicalize() {
            Ok(resolved) if self.has(&resolved) => return Ok(resolved),
            Ok(_) => return Err(ReadError::Outside),
            Err(error) => error.kind(),
        };
        // What does not exist outside is not told from what does.
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let Some((above, rest)) = existing_part(&path) else { break };
            if !self.has(&above) {
                return Err(ReadError::Outside);
            }
            let mut rest = rest.components();
            let Some(missing) = rest.next() else { break };
            let Ok(target) = fs::read_link(above.join(missing)) else { break };
            path = above.join(target).join(rest.as_path());
        }
        Err(ReadError::Unreadable(error))
    }

    /// Whether they are no bounds.
    pub fn are_anywhere(&self) -> bool {
        self.0.anywhere
    }

    fn has(&self, resolved: &Path) -> bool {
        self.0.anywhere || self.0.directories.iter().any(|root| resolved.starts_with(root))
    }

    /// What a file holds.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        let length = bytes.len() as u64;
        if length > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge);
        }
        let mut read = self.reading();
        read.bytes = read.bytes.saturating_add(length);
        if read.bytes > MAX_BUNDLE_BYTES { Err(ReadError::TooMuch) } else { Ok(bytes) }
    }

    /// What a file holds that other files name: the same each time.
    pub fn read_named(&self, path: &Path) -> Result<Arc<[u8]>, ReadError> {
        let place = self.resolve(path)?;
        if let Some(bytes) = self.reading().kept.get(&place) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = self.read(path)?.into();
        self.reading().kept.insert(place, Arc::clone(&bytes));
        Ok(bytes)
    }

    fn reading(&self) -> MutexGuard<'_, Read> {
        self.0.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a regular file below the directories. What was opened is examined, and not what has the name: between two looks
    /// somebody may have exchanged one for the other.
    fn open(&self, path: &Path) -> Result<File, ReadError> {
        let place = self.resolve(path)?;
        // Before it is opened: with a device, opening alone may do something.
        check_kind(&fs::symlink_metadata(&place)?)?;
        let file = open_at_once(&place)?;
        let opened = file.metadata()?;
        check_kind(&opened)?;
        let is_still_there = self.resolve(path)? == place && is_same(&opened, &fs::symlink_metadata(&place)?);
        if is_still_there { Ok(file) } else { Err(ReadError::Unreadable(ErrorKind::Interrupted)) }
    }
}

/// The directory that a path which somebody gave stands for; `None` if the path leads out of where it is by a link. Of what does
/// not exist it is the directory in which it would be.
fn root_of(path: &Path) -> Option<PathBuf> {
    let holder = match path.file_name() {
        Some(_) => directory_of(path).canonicalize().ok()?,
        None => path.canonicalize().ok()?,
    };
    let resolved = path.canonicalize().unwrap_or_else(|_| holder.clone());
    // Of `../policies` the program's directory is left on purpose, of `policies/link` it is not.
    let ups: PathBuf = path.components().take_while(|part| !matches!(part, Component::Normal(_))).collect();
    let base = Path::new(".").join(ups).canonicalize().ok()?;
    if !resolved.starts_with(&holder) || (path.is_relative() && !resolved.starts_with(base)) {
        return None;
    }
    Some(if resolved.is_dir() { resolved } else { holder })
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The longest part of a path that exists, resolved, and the rest of it.
fn existing_part(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|above| {
        let rest = absolute.strip_prefix(above).ok()?.to_owned();
        above.canonicalize().ok().map(|resolved| (resolved, rest))
    })
}

fn check_kind(metadata: &Metadata) -> Result<(), ReadError> {
    if metadata.is_dir() {
        return Err(ReadError::Directory);
    }
    if metadata.is_file() { Ok(()) } else { Err(ReadError::NotRegular) }
}

/// Opens a file that is no link, without waiting for whoever writes a pipe.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len()
}
