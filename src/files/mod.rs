//! Files that Callgate relies on: which files of a bundle may be read, and whether anyone else can write state and keys. Names
//! rustix, as `mcp` does.

#[cfg(any(feature = "file-store", feature = "cli"))]
mod private;
mod roots;

#[cfg(any(feature = "file-store", feature = "cli"))]
pub(crate) use private::{PrivateError, check_private, check_private_directory};
pub(crate) use roots::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError, Roots};
