//! A client's file and the backup beside it: read as they are, written as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::clients::Facts;
use super::entry::{Broken, Entry, read};
use crate::cli::exit::Stop;
use crate::diagnostic::SourceMap;

const MARK: &str = "\u{feff}";

/// A client's file as it was read.
#[derive(Debug)]
pub(super) struct ClientFile {
    /// As it was named.
    pub(super) shown: PathBuf,
    /// Where it lies, links followed.
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: Metadata,
    mark: &'static str,
    pub(super) text: String,
    pub(super) entries: Vec<Entry>,
}

/// The file without Callgate: what taking everything out gives back.
#[derive(Debug)]
pub(super) struct Backup {
    text: String,
    entries: Vec<Entry>,
}

impl ClientFile {
    pub(super) fn open(shown: PathBuf, facts: &Facts) -> Result<Self, Stop> {
        let path = fs::canonicalize(&shown).map_err(|error| unreadable(&shown, facts, &error))?;
        let metadata = fs::metadata(&path).map_err(|error| unreadable(&shown, facts, &error))?;
        // A pipe would keep us waiting, and could not be replaced.
        if !metadata.is_file() {
            return Err(Stop::trouble(format!("`{}` is no file", shown.display())));
        }
        let bytes = fs::read(&path).map_err(|error| unreadable(&shown, facts, &error))?;
        let Ok(text) = std::str::from_utf8(&bytes) else {
            return Err(Stop::trouble(format!("`{}` is not UTF-8; save it as UTF-8", shown.display())));
        };
        let (mark, text) = text.strip_prefix(MARK).map_or(("", text), |text| (MARK, text));
        let text = text.to_owned();
        let entries = read(&text, facts).map_err(|broken| misplaced(&shown, &text, &broken))?;
        Ok(Self { shown, path, bytes, metadata, mark, text, entries })
    }

    /// The servers of a text that this file is to have.
    pub(super) fn read_again(&self, text: &str, facts: &Facts) -> Result<Vec<Entry>, Stop> {
        read(text, facts).map_err(|broken| misplaced(&self.shown, text, &broken))
    }

    pub(super) fn backup_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".before-callgate");
        name.into()
    }

    /// The backup, if there is one that can be used.
    pub(super) fn backup(&self, facts: &Facts) -> Option<Backup> {
        let text = fs::read_to_string(self.backup_path()).ok()?;
        let text = text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text);
        let entries = read(&text, facts).ok()?;
        Some(Backup { text, entries })
    }

    /// Writes the backup, and then the file.
    pub(super) fn replace(&self, text: &str, backup: &str) -> Result<(), Stop> {
        self.write(&self.backup_path(), backup)?;
        self.write(&self.path, text)
    }

    /// Writes the file, and takes away the backup if that is the same now; else gives where it is.
    pub(super) fn restore(&self, text: &str) -> Result<Option<PathBuf>, Stop> {
        self.write(&self.path, text)?;
        let backup = self.backup_path();
        match fs::read(&backup) {
            Ok(bytes) if bytes == self.bytes_of(text) => {
                fs::remove_file(&backup).map_err(|error| unwritable(&backup, &error))?;
                Ok(None)
            }
            Ok(_) => Ok(Some(backup)),
            Err(_) => Ok(None),
        }
    }

    fn bytes_of(&self, text: &str) -> Vec<u8> {
        format!("{}{text}", self.mark).into_bytes()
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), Stop> {
        if self.metadata.permissions().readonly() {
            return Err(Stop::trouble(format!("`{}` may not be written", self.shown.display())));
        }
        // Clients write their files, too.
        if fs::read(&self.path).ok().as_deref() != Some(&self.bytes) {
            let shown = self.shown.display();
            return Err(Stop::trouble(format!("`{shown}` has changed meanwhile; run this again")));
        }
        write_whole(path, &self.bytes_of(text), &self.metadata).map_err(|error| unwritable(path, &error))
    }
}

impl Backup {
    pub(super) fn entry(&self, place: &[String]) -> Option<(&str, &Entry)> {
        let entry = self.entries.iter().find(|entry| entry.place == place)?;
        Some((&self.text, entry))
    }
}

/// Writes beside the path and moves it there, with the rights of the file that it is like.
fn write_whole(path: &Path, bytes: &[u8], like: &Metadata) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{:08x}.new", fastrand::u32(..)));
    let draft = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // There may be keys in it: nobody else reads it before it has the rights of the file.
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

fn unreadable(path: &Path, facts: &Facts, error: &io::Error) -> Stop {
    let path = path.display();
    Stop::trouble(match error.kind() {
        ErrorKind::NotFound => {
            format!(
                "`{path}` does not exist; set servers up in {} first, or name a file with `--file`",
                facts.title
            )
        }
        _ => format!("`{path}` can't be read: {error}"),
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Stop {
    Stop::trouble(format!("`{}` can't be written: {error}", path.display()))
}

fn misplaced(path: &Path, text: &str, broken: &Broken) -> Stop {
    let mut sources = SourceMap::default();
    let source = sources.add(path.display().to_string(), text);
    let (line, column) = sources.get(source).map_or((1, 1), |source| source.position(broken.at));
    Stop::trouble(format!("{}:{line}:{column}: {}; nothing was written", path.display(), broken.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::install::clients::Client;

    #[test]
    fn what_a_client_writes_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcp.json");
        fs::write(&path, "{}").unwrap();
        let file = ClientFile::open(path.clone(), Client::Cursor.facts()).unwrap();
        fs::write(&path, "{ }").unwrap();
        let Err(Stop::Trouble(message)) = file.replace("{\n}", "{}") else { panic!("it was written") };
        assert!(message.contains("changed meanwhile"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
        assert!(!file.backup_path().exists());
    }
}
