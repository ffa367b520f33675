//! A client's config file with its servers, and its backup.

use std::path::{Path, PathBuf};

use super::clients::{ClientProperties, ConfigSyntax};
use super::server_entry::{ConfigFileError, ServerEntry};
use super::{json_config, toml_config};
use crate::edited_file::EditedFile;
use crate::exit::CommandError;
use callgate::diagnostic::SourceMap;

/// A client's config file as read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) file: EditedFile,
    pub(super) entries: Vec<ServerEntry>,
}

/// The file without Callgate, as a complete uninstall restores it.
#[derive(Debug)]
pub(super) struct ConfigBackup {
    text: String,
    entries: Vec<ServerEntry>,
}

impl ConfigFile {
    pub(super) fn open(path: PathBuf, facts: &ClientProperties) -> Result<Self, CommandError> {
        let file = EditedFile::open(path, ".before-callgate")?;
        if !file.exists() {
            return Err(CommandError::new(format!(
                "`{}` does not exist; add servers in {} first, or use `--file` for another file",
                file.display_path.display(),
                facts.title
            )));
        }
        let entries = read_entries(&file.text, facts)
            .map_err(|broken| position_error(&file.display_path, &file.text, &broken))?;
        Ok(Self { file, entries })
    }

    /// Reads the servers of a new text of this file.
    pub(super) fn parse_entries(
        &self,
        text: &str,
        facts: &ClientProperties,
    ) -> Result<Vec<ServerEntry>, CommandError> {
        read_entries(text, facts).map_err(|broken| position_error(&self.file.display_path, text, &broken))
    }

    /// The backup, if there is a valid one.
    pub(super) fn backup(&self, facts: &ClientProperties) -> Option<ConfigBackup> {
        let text = self.file.backup_text()?;
        let entries = read_entries(&text, facts).ok()?;
        Some(ConfigBackup { text, entries })
    }
}

impl ConfigBackup {
    pub(super) fn entry(&self, path: &[String]) -> Option<(&str, &ServerEntry)> {
        let entry = self.entries.iter().find(|entry| entry.path == path)?;
        Some((&self.text, entry))
    }
}

/// Reads all servers of a file.
pub(super) fn read_entries(
    text: &str,
    facts: &ClientProperties,
) -> Result<Vec<ServerEntry>, ConfigFileError> {
    match facts.syntax {
        ConfigSyntax::Json => json_config::read(text, facts),
        ConfigSyntax::Toml => toml_config::read(text, facts),
    }
}

fn position_error(path: &Path, text: &str, broken: &ConfigFileError) -> CommandError {
    let mut sources = SourceMap::default();
    let source = sources.add(path.display().to_string(), text);
    let (line, column) = sources.get(source).map_or((1, 1), |source| source.position(broken.offset));
    CommandError::new(format!("{}:{line}:{column}: {}; nothing was written", path.display(), broken.message))
}
