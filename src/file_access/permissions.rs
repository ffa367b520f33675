//! Permission checks: only this user may write a file. Others who can write state or keys could forge their content.

use std::path::{Path, PathBuf};

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermissionError {
    /// Its mode lets other users write it.
    #[error("{} `{}` is writable by other users; run `chmod go-w {}`{}", if *.is_directory { "the directory" } else { "the file" },
        .path.display(), .path.display(),
        if *.is_directory { ", or use a separate directory (`mkdir -m 700`)" } else { ", after checking that nobody changed its content" })]
    Writable {
        /// The file.
        path: PathBuf,
        /// Whether it is a directory.
        is_directory: bool,
    },
    /// It belongs to another user.
    #[error("`{}` belongs to another user (uid {owner}, while this process runs as uid {user}); use another path, or change its \
             owner with `chown`", .path.display())]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The effective user id of this process.
        user: u32,
    },
    /// It is not a regular file.
    #[error("`{}` is not a regular file; remove it, or use another path", .0.display())]
    NotRegular(PathBuf),
    /// Its metadata can't be read.
    #[error("the permissions of `{}` can't be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: String,
    },
}

/// Checks that only this user can write a regular file and its directory. A file that does not exist passes; its directory is
/// checked all the same. On systems without Unix permissions nothing is checked.
///
/// # Errors
/// [`PermissionError`], with the command that fixes it.
pub fn check_private_file(path: &Path) -> Result<(), PermissionError> {
    check_private_directory(path)?;
    check_permissions(path, false)
}

/// Checks that only this user can write the directory of a file, so that nobody can replace the file.
///
/// # Errors
/// [`PermissionError`], with the command that fixes it.
pub fn check_private_directory(path: &Path) -> Result<(), PermissionError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    check_permissions(parent.unwrap_or(Path::new(".")), true)
}

#[cfg(unix)]
fn check_permissions(path: &Path, is_directory: bool) -> Result<(), PermissionError> {
    use std::os::unix::fs::MetadataExt as _;
    // The directory may be a symbolic link; the file must be the one that is opened.
    let examined = if is_directory { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    let found = match examined {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(PermissionError::Unreadable { path: path.to_owned(), error: error.to_string() });
        }
    };
    if !is_directory && !found.is_file() {
        return Err(PermissionError::NotRegular(path.to_owned()));
    }
    let user = rustix::process::geteuid().as_raw();
    // System directories belong to root, which can write everything anyway.
    if found.uid() != user && !(is_directory && found.uid() == 0) {
        return Err(PermissionError::OtherOwner { path: path.to_owned(), owner: found.uid(), user });
    }
    if found.mode() & 0o022 != 0 {
        return Err(PermissionError::Writable { path: path.to_owned(), is_directory });
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(_: &Path, _: bool) -> Result<(), PermissionError> {
    Ok(())
}
