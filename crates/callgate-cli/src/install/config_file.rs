//! A client's config file and its backup, with atomic writes.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::clients::{ClientProperties, ConfigSyntax};
use super::server_entry::{ConfigFileError, ServerEntry};
use super::{json_config, toml_config};
use crate::exit::CommandError;
use callgate::diagnostic::SourceMap;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A client's config file as read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The path as given.
    pub(super) display_path: PathBuf,
    /// The path with symbolic links resolved.
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: Metadata,
    byte_order_mark: &'static str,
    pub(super) text: String,
    pub(super) entries: Vec<ServerEntry>,
}

/// The file without Callgate, as a complete uninstall restores it.
#[derive(Debug)]
pub(super) struct ConfigBackup {
    text: String,
    entries: Vec<ServerEntry>,
}

impl ConfigFile {
    pub(super) fn open(display_path: PathBuf, facts: &ClientProperties) -> Result<Self, CommandError> {
        let path =
            fs::canonicalize(&display_path).map_err(|error| read_error(&display_path, facts, &error))?;
        let metadata = fs::metadata(&path).map_err(|error| read_error(&display_path, facts, &error))?;
        // Reading a pipe would block, and it could not be replaced.
        if !metadata.is_file() {
            return Err(CommandError::new(format!("`{}` is not a regular file", display_path.display())));
        }
        let bytes = fs::read(&path).map_err(|error| read_error(&display_path, facts, &error))?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(CommandError::new(format!(
                "`{}` is not UTF-8; save it as UTF-8",
                display_path.display()
            )));
        };
        let (mark, text) =
            text.strip_prefix(BYTE_ORDER_MARK).map_or(("", text), |text| (BYTE_ORDER_MARK, text));
        let text = text.to_owned();
        let entries =
            read_entries(&text, facts).map_err(|broken| position_error(&display_path, &text, &broken))?;
        Ok(Self { display_path, path, bytes, metadata, byte_order_mark: mark, text, entries })
    }

    /// Reads the servers of a new text of this file.
    pub(super) fn parse_entries(
        &self,
        text: &str,
        facts: &ClientProperties,
    ) -> Result<Vec<ServerEntry>, CommandError> {
        read_entries(text, facts).map_err(|broken| position_error(&self.display_path, text, &broken))
    }

    pub(super) fn backup_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".before-callgate");
        name.into()
    }

    /// The backup, if there is a valid one.
    pub(super) fn backup(&self, facts: &ClientProperties) -> Option<ConfigBackup> {
        let text = fs::read_to_string(self.backup_path()).ok()?;
        let text = text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text);
        let entries = read_entries(&text, facts).ok()?;
        Some(ConfigBackup { text, entries })
    }

    /// Writes the backup, then the file.
    pub(super) fn replace(&self, text: &str, backup: &str) -> Result<(), CommandError> {
        self.write(&self.backup_path(), backup)?;
        self.write(&self.path, text)
    }

    /// Writes the file, and removes the backup if the two are equal now. Otherwise returns the path of the backup.
    pub(super) fn restore(&self, text: &str) -> Result<Option<PathBuf>, CommandError> {
        self.write(&self.path, text)?;
        let backup = self.backup_path();
        match fs::read(&backup) {
            Ok(bytes) if bytes == self.bytes_of(text) => {
                fs::remove_file(&backup).map_err(|error| write_error(&backup, &error))?;
                Ok(None)
            }
            Ok(_) => Ok(Some(backup)),
            Err(_) => Ok(None),
        }
    }

    fn bytes_of(&self, text: &str) -> Vec<u8> {
        format!("{}{text}", self.byte_order_mark).into_bytes()
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        if self.metadata.permissions().readonly() {
            return Err(CommandError::new(format!("`{}` is read-only", self.display_path.display())));
        }
        // Clients write their config files, too.
        if fs::read(&self.path).ok().as_deref() != Some(&self.bytes) {
            let display_path = self.display_path.display();
            return Err(CommandError::new(format!(
                "`{display_path}` was changed in the meantime; run the command again"
            )));
        }
        write_atomically(path, &self.bytes_of(text), &self.metadata)
            .map_err(|error| write_error(path, &error))
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

/// Writes a draft next to the path and renames it, with the permissions of `like`.
fn write_atomically(path: &Path, bytes: &[u8], like: &Metadata) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:08x}.new", fastrand::u32(..)));
    let draft = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // The file may contain secrets: other users can't read the draft before it has the final permissions.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file: File| {
        file.write_all(bytes)?;
        file.set_permissions(like.permissions())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

fn read_error(path: &Path, facts: &ClientProperties, error: &io::Error) -> CommandError {
    let path = path.display();
    CommandError::new(match error.kind() {
        ErrorKind::NotFound => {
            format!(
                "`{path}` does not exist; add servers in {} first, or use `--file` for another file",
                facts.title
            )
        }
        _ => format!("`{path}` can't be read: {error}"),
    })
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}` can't be written: {error}", path.display()))
}

fn position_error(path: &Path, text: &str, broken: &ConfigFileError) -> CommandError {
    let mut sources = SourceMap::default();
    let source = sources.add(path.display().to_string(), text);
    let (line, column) = sources.get(source).map_or((1, 1), |source| source.position(broken.offset));
    CommandError::new(format!("{}:{line}:{column}: {}; nothing was written", path.display(), broken.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::clients::Client;

    #[test]
    fn does_not_overwrite_concurrent_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcp.json");
        fs::write(&path, "{}").unwrap();
        let file = ConfigFile::open(path.clone(), Client::Cursor.properties()).unwrap();
        fs::write(&path, "{ }").unwrap();
        let Err(CommandError::Message(message)) = file.replace("{\n}", "{}") else {
            panic!("it was written")
        };
        assert!(message.contains("changed in the meantime"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
        assert!(!file.backup_path().exists());
    }
}
