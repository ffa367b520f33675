//! Writes files that must not exist yet: all of them, or none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::exit::CommandError;

/// Files that are written together.
pub(super) struct NewFiles<'d> {
    directory: &'d Path,
}

impl<'d> NewFiles<'d> {
    /// Files with these names in a directory, which is created when they are written.
    ///
    /// # Errors
    /// If one of them exists.
    pub(super) fn new(directory: &'d Path, names: &[&str]) -> Result<Self, CommandError> {
        let existing: Vec<String> = names
            .iter()
            .map(|name| directory.join(name))
            .filter(|path| fs::symlink_metadata(path).is_ok())
            .map(|path| format!("`{}`", path.display()))
            .collect();
        if existing.is_empty() {
            return Ok(Self { directory });
        }
        let (verb, them) = if existing.len() == 1 { ("exists", "it") } else { ("exist", "them") };
        Err(CommandError::new(format!(
            "{} already {verb}, so nothing was written; move {them} away or use another directory",
            existing.join(" and ")
        )))
    }

    /// Writes the files. If one can't be written, removes those that were. Returns their paths.
    ///
    /// # Errors
    /// If a file can't be written, or was created in the meantime.
    pub(super) fn write(&self, files: &[(&str, &str)]) -> Result<Vec<PathBuf>, CommandError> {
        fs::create_dir_all(self.directory).map_err(|error| write_error(self.directory, &error))?;
        let mut written: Vec<PathBuf> = Vec::new();
        for (name, text) in files {
            let path = self.directory.join(name);
            // A file that was created in the meantime is not overwritten either.
            let result = File::create_new(&path).and_then(|mut file| {
                written.push(path.clone());
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
            if let Err(error) = result {
                for path in written {
                    let _ = fs::remove_file(path);
                }
                return Err(write_error(&path, &error));
            }
        }
        Ok(written)
    }
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}` can't be written: {error}", path.display()))
}
