//! Sandboxed reads of a bundle's files: only regular files below the given directories, so that untrusted rules can be checked
//! safely.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum size of one file, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum total size of a bundle's files, in bytes.
pub const MAX_BUNDLE_BYTES: u64 = 32 << 20;
/// Maximum length of a chain of symbolic links.
const MAX_LINKS: usize = 40;

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The operating system returns an error.
    Unreadable(ErrorKind),
    /// It is a directory.
    Directory,
    /// It is a pipe, a device or another special file.
    NotRegular,
    /// It is larger than [`MAX_FILE_BYTES`].
    TooLarge,
    /// It is outside the directories of the bundle. The error does not reveal whether it exists.
    OutsideSandbox,
    /// The bundle with this file is larger than [`MAX_BUNDLE_BYTES`].
    BundleTooLarge,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.kind())
    }
}

/// The directories of a bundle's files. By default there are none, and nothing can be read. Clones share the size budget and the
/// cached contents.
#[derive(Clone, Debug, Default)]
pub struct FileSandbox(Arc<SandboxState>);

#[derive(Debug, Default)]
struct SandboxState {
    directories: Vec<PathBuf>,
    /// Whether any file may be read, in whatever directory.
    is_unrestricted: bool,
    cache: Mutex<ReadCache>,
}

#[derive(Debug, Default)]
struct ReadCache {
    bytes: u64,
    /// Contents of files that other files refer to. Each is read once, so that all references see the same content.
    contents: HashMap<PathBuf, Arc<[u8]>>,
}

impl FileSandbox {
    /// The directories of these paths: a directory itself, and the parent directory of a file.
    pub fn from_paths(paths: &[PathBuf]) -> Self {
        Self::new(paths.iter().filter_map(|path| root_directory(path)).collect(), false)
    }

    /// The directories of in-memory files, by their names.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let directory = |name: &str| parent_directory(Path::new(name)).canonicalize().ok();
        Self::new(names.into_iter().filter_map(directory).collect(), false)
    }

    /// No restriction but those on size: for files that the user of the program names.
    pub fn unrestricted() -> Self {
        Self::new(Vec::new(), true)
    }

    fn new(mut directories: Vec<PathBuf>, anywhere: bool) -> Self {
        directories.sort();
        directories.dedup();
        Self(Arc::new(SandboxState { directories, is_unrestricted: anywhere, cache: Mutex::default() }))
    }

    /// Resolves the symbolic links of a path.
    ///
    /// # Errors
    /// [`ReadError::OutsideSandbox`] if the target is outside the directories, whether it exists or not.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, ReadError> {
        let error = match path.canonicalize() {
            Ok(resolved) if self.contains(&resolved) => return Ok(resolved),
            Ok(_) => return Err(ReadError::OutsideSandbox),
            Err(error) => error.kind(),
        };
        // Outside the directories, the result must not reveal which files exist.
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let Some((above, rest)) = existing_prefix(&path) else { break };
            if !self.contains(&above) {
                return Err(ReadError::OutsideSandbox);
            }
            let mut rest = rest.components();
            let Some(missing) = rest.next() else { break };
            let Ok(target) = fs::read_link(above.join(missing)) else { break };
            path = above.join(target).join(rest.as_path());
        }
        Err(ReadError::Unreadable(error))
    }

    /// Whether any file may be read, in whatever directory.
    pub fn is_unrestricted(&self) -> bool {
        self.0.is_unrestricted
    }

    fn contains(&self, resolved: &Path) -> bool {
        self.0.is_unrestricted || self.0.directories.iter().any(|root| resolved.starts_with(root))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ReadError`] if the file is outside the directories, too large, not a regular file, or unreadable.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        let length = bytes.len() as u64;
        if length > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge);
        }
        let mut read = self.lock_cache();
        read.bytes = read.bytes.saturating_add(length);
        if read.bytes > MAX_BUNDLE_BYTES { Err(ReadError::BundleTooLarge) } else { Ok(bytes) }
    }

    /// Reads a file that other files refer to: the same content each time.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_referenced(&self, path: &Path) -> Result<Arc<[u8]>, ReadError> {
        let resolved = self.resolve(path)?;
        if let Some(bytes) = self.lock_cache().contents.get(&resolved) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = self.read(path)?.into();
        self.lock_cache().contents.insert(resolved, Arc::clone(&bytes));
        Ok(bytes)
    }

    fn lock_cache(&self) -> MutexGuard<'_, ReadCache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a regular file below the directories. The open file is checked, and not the path, so that replacing the file between
    /// check and use (TOCTOU) has no effect.
    fn open(&self, path: &Path) -> Result<File, ReadError> {
        let resolved = self.resolve(path)?;
        // Checked before opening, too: merely opening a device may have side effects.
        check_kind(&fs::symlink_metadata(&resolved)?)?;
        let file = open_nonblocking(&resolved)?;
        let opened = file.metadata()?;
        check_kind(&opened)?;
        let is_still_there =
            self.resolve(path)? == resolved && is_same_file(&opened, &fs::symlink_metadata(&resolved)?);
        if is_still_there { Ok(file) } else { Err(ReadError::Unreadable(ErrorKind::Interrupted)) }
    }
}

/// The directory of a path that the user gave; the parent directory if the path does not exist. Returns `None` if a symbolic link
/// leads out of the path's own directory.
fn root_directory(path: &Path) -> Option<PathBuf> {
    let holder = match path.file_name() {
        Some(_) => parent_directory(path).canonicalize().ok()?,
        None => path.canonicalize().ok()?,
    };
    let resolved = path.canonicalize().unwrap_or_else(|_| holder.clone());
    // `../policies` leaves the current directory on purpose, `policies/link` does not.
    let ups: PathBuf = path.components().take_while(|part| !matches!(part, Component::Normal(_))).collect();
    let base = Path::new(".").join(ups).canonicalize().ok()?;
    if !resolved.starts_with(&holder) || (path.is_relative() && !resolved.starts_with(base)) {
        return None;
    }
    Some(if resolved.is_dir() { resolved } else { holder })
}

fn parent_directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The longest existing prefix of a path, resolved, and the rest of the path.
fn existing_prefix(path: &Path) -> Option<(PathBuf, PathBuf)> {
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

/// Opens a file without following symbolic links, and without blocking on a pipe that has no writer.
#[cfg(unix)]
fn open_nonblocking(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.len() == other.len()
}
