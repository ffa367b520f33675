//! The directory of Callgate's files below the user's state directory.

use std::ffi::OsString;
use std::path::PathBuf;

/// The directory, which may not exist. `None` if the user's state directory is unknown.
pub(super) fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|directory| directory.is_absolute());
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .or_else(|| absolute("LOCALAPPDATA"))?;
    Some(base.join("callgate"))
}
