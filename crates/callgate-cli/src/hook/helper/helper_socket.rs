//! The socket of a helper: in a directory that only its user can enter, named after what the helper serves.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use callgate::json::{Value, digest, json};

use crate::state_directory::state_directory;

/// The longest path of a socket that every Unix takes.
const MAX_PATH: usize = 100;

/// Variables that change what a helper does: keys, directories, databases, collectors, proxies.
const VARIABLES: [&str; 12] =
    ["CALLGATE_", "HOME", "XDG_", "PG", "OTEL_", "SSL_", "HTTP_", "HTTPS_", "ALL_", "NO_", "REDIS", "TZ"];

/// Where a helper listens.
pub(in crate::hook) struct HelperSocket {
    path: PathBuf,
}

impl HelperSocket {
    /// The socket for this process: its program, arguments and environment. `None` if no directory can be used that only this user can enter.
    pub(in crate::hook) fn find() -> Option<Self> {
        let directory = private_directory()?;
        let name: String = digest(&identity()?).to_string().chars().take(32).collect();
        let path = directory.join(format!("hook-{name}.sock"));
        (path.as_os_str().len() <= MAX_PATH).then_some(Self { path })
    }

    /// A socket that a hook process named.
    pub(in crate::hook) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that the listening helper holds locked.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.path.with_extension("lock")
    }
}

/// A directory that only this user can enter, created if missing. Whoever could enter it could answer in place of the helper.
fn private_directory() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = match runtime {
        Some(runtime) => runtime.join("callgate"),
        None => state_directory(|name| std::env::var_os(name))?,
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
    // Not through a link, which another user may have set.
    let metadata = fs::symlink_metadata(&directory).ok()?;
    let is_private = metadata.is_dir()
        && metadata.permissions().mode().trailing_zeros() >= 6
        && metadata.uid() == rustix::process::geteuid().as_raw();
    is_private.then_some(directory)
}

/// What a helper serves.
fn identity() -> Option<Value> {
    let program = std::env::current_exe().ok()?;
    let file = fs::metadata(&program).ok()?;
    let arguments: Vec<String> = std::env::args_os().map(|argument| hex(&argument)).collect();
    let directory = std::env::current_dir().ok()?;
    let mut variables: Vec<Value> = std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.to_string_lossy().to_ascii_uppercase();
            VARIABLES.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, value)| json!([hex(&name), hex(&value)]))
        .collect();
    variables.sort_by_key(Value::to_string);
    Some(json!({
        "program": [hex(program.as_os_str()), file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()],
        "arguments": arguments,
        "directory": hex(directory.as_os_str()),
        "variables": variables,
    }))
}

fn hex(text: &OsStr) -> String {
    data_encoding::HEXLOWER.encode(text.as_bytes())
}
