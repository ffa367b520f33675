//! The state store of hooks that name none: a file in the user's state directory, which only its owner can read.

use crate::exit::CommandError;
use crate::state_directory::state_directory;

/// The URL of the default state store, whose directory is created if missing.
///
/// # Errors
/// The directory can't be located or created.
pub(crate) fn default_state_url() -> Result<String, CommandError> {
    let directory = state_directory(|name| std::env::var_os(name)).ok_or_else(|| {
        CommandError::new("the user's state directory can't be located: set HOME, or use `--state`")
    })?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(&directory)
        .map_err(|error| CommandError::new(format!("`{}` can't be created: {error}", directory.display())))?;
    let path = directory.join("hooks.db");
    let path =
        path.to_str().ok_or_else(|| CommandError::new("the state directory is not UTF-8; use `--state`"))?;
    Ok(format!("file:{path}"))
}
