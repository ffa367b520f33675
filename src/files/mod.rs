//! File access: reads the files of a bundle within its directories, and checks that no other user can write state and keys. Uses
//! rustix, as `mcp` does.

#[cfg(any(feature = "file-store", feature = "cli"))]
mod private;
mod roots;

#[cfg(any(feature = "file-store", feature = "cli"))]
pub(crate) use private::{PermissionError, check_private_directory, check_private_file};
pub(crate) use roots::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError, Roots};
