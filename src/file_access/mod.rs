//! File access: reads the files of a bundle within its directories, and checks that no other user can write state and keys. Uses
//! rustix, as `mcp` does.

#[cfg(any(feature = "file-store", feature = "cli"))]
mod permissions;
mod sandbox;

#[cfg(any(feature = "file-store", feature = "cli"))]
pub(crate) use permissions::{PermissionError, check_private_directory, check_private_file};
pub(crate) use sandbox::{FileSandbox, MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError};
