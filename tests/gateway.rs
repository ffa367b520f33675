//! End-to-end tests of the gateway with third-party parts: the official MCP clients and servers, and hostile servers and clients.

mod conformance;
mod faults;
mod hostile;
mod lossless;
mod inspector;
mod real_methods;
mod sessions;

use std::path::PathBuf;

/// The path of a file in `tests/gateway`.
pub fn script(name: &str) -> PathBuf {
    crate::fixtures::root().join("tests/gateway").join(name)
}
