//! Whether only this user can write a file: whoever else can write state or keys could make up what is in them.

use std::path::{Path, PathBuf};

/// Why a file is not relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateError {
    /// Its mode lets others write it.
    #[error("{} `{}` can be written by other users; run `chmod go-w {}`{}", if *.is_directory { "the directory" } else { "the file" },
        .path.display(), .path.display(),
        if *.is_directory { ", or use a directory of its own (`mkdir -m 700`)" } else { ", and see whether what it holds is yours" })]
    Writable {
        /// The file.
        path: PathBuf,
        /// Whether it is a directory.
        is_directory: bool,
    },
    /// It belongs to another user.
    #[error("`{}` belongs to another user (uid {owner}, while this process runs as uid {user}); name another place, or change its \
             owner with `chown`", .path.display())]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who this process is.
        user: u32,
    },
    /// It is not a regular file.
    #[error("`{}` is not a regular file; remove it, or name another place", .0.display())]
    NotRegular(PathBuf),
    /// It can't be examined.
    #[error("`{}` can't be examined: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
}

/// Whether only this user can write a regular file, and the directory that it is in. A file that does not exist is as good as
/// private; its directory is examined all the same. On systems without Unix permissions nothing is examined.
///
/// # Errors
/// [`PrivateError`], with what to do.
pub fn check_private(path: &Path) -> Result<(), PrivateError> {
    check_private_directory(path)?;
    check(path, false)
}

/// Whether only this user can write the directory that a file is in, so that nobody can put another one in its place.
///
/// # Errors
/// [`PrivateError`], with what to do.
pub fn check_private_directory(path: &Path) -> Result<(), PrivateError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    check(parent.unwrap_or(Path::new(".")), true)
}

#[cfg(unix)]
fn check(path: &Path, is_directory: bool) -> Result<(), PrivateError> {
    use std::os::unix::fs::MetadataExt as _;
    // A directory may be named by a link; the file itself has to be the one that is opened.
    let examined = if is_directory { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    let found = match examined {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(PrivateError::Unreadable { path: path.to_owned(), error: error.to_string() });
        }
    };
    if !is_directory && !found.is_file() {
        return Err(PrivateError::NotRegular(path.to_owned()));
    }
    let user = rustix::process::geteuid().as_raw();
    // Directories of the system belong to root, which can write everything anyway.
    if found.uid() != user && !(is_directory && found.uid() == 0) {
        return Err(PrivateError::OtherOwner { path: path.to_owned(), owner: found.uid(), user });
    }
    if found.mode() & 0o022 != 0 {
        return Err(PrivateError::Writable { path: path.to_owned(), is_directory });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(_: &Path, _: bool) -> Result<(), PrivateError> {
    Ok(())
}
