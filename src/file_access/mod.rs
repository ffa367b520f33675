//! File access: reads the files of a bundle within its directories, and regular files of the host, and checks that no other user can write state and keys. Uses
//! rustix, as `mcp` does.

mod permissions;
mod regular_file;
mod sandbox;

pub use permissions::{PermissionError, check_private_directory, check_private_file};
pub use regular_file::read_regular_file;
pub use sandbox::{FileSandbox, MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError};
