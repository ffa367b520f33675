//! The gateway between parts that nobody here wrote: the official clients and servers, and servers and clients that mean harm.

mod conformance;
mod faults;
mod hostile;
mod lossless;
mod inspector;
mod sessions;

use std::path::{Path, PathBuf};

/// A file of this folder.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway").join(name)
}
