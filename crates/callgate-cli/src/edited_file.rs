//! A settings file of another program: read with its links resolved, replaced atomically, with a backup of the file without Callgate.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::exit::CommandError;
use jsonc_parser::ParseOptions;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file as it was read; it may be missing.
#[derive(Debug)]
pub(crate) struct EditedFile {
    /// The path as given.
    pub(crate) display_path: PathBuf,
    /// The path with symbolic links resolved.
    path: PathBuf,
    found: Option<FoundFile>,
    byte_order_mark: &'static str,
    /// The text; empty if the file is missing.
    pub(crate) text: String,
    /// What the name of the backup ends with.
    backup_suffix: &'static str,
}

#[derive(Debug)]
struct FoundFile {
    bytes: Vec<u8>,
    metadata: Metadata,
}

impl EditedFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It exists and can't be read, or is not UTF-8.
    pub(crate) fn open(display_path: PathBuf, backup_suffix: &'static str) -> Result<Self, CommandError> {
        let unreadable = |error: &io::Error| {
            CommandError::new(format!("`{}` can't be read: {error}", display_path.display()))
        };
        let path = match fs::canonicalize(&display_path) {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound => display_path.clone(),
            Err(error) => return Err(unreadable(&error)),
        };
        let found = match fs::metadata(&path) {
            // Reading a pipe would block, and it could not be replaced.
            Ok(metadata) if !metadata.is_file() => {
                return Err(CommandError::new(format!("`{}` is not a regular file", display_path.display())));
            }
            Ok(metadata) => {
                let bytes = fs::read(&path).map_err(|error| unreadable(&error))?;
                Some(FoundFile { bytes, metadata })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&error)),
        };
        let bytes = found.as_ref().map(|found| found.bytes.as_slice()).unwrap_or_default();
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(CommandError::new(format!(
                "`{}` is not UTF-8; save it as UTF-8",
                display_path.display()
            )));
        };
        let (byte_order_mark, text) = split_mark(text);
        let text = text.to_owned();
        Ok(Self { display_path, path, found, byte_order_mark, text, backup_suffix })
    }

    /// Whether the file exists.
    pub(crate) fn exists(&self) -> bool {
        self.found.is_some()
    }

    /// The path of the backup.
    pub(crate) fn backup_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(self.backup_suffix);
        name.into()
    }

    /// The text of the backup, if there is one. The backup of a missing file is empty.
    pub(crate) fn backup_text(&self) -> Option<String> {
        let text = fs::read_to_string(self.backup_path()).ok()?;
        Some(split_mark(&text).1.to_owned())
    }

    /// Writes the backup, then the file.
    pub(crate) fn replace(&self, text: &str, backup: &str) -> Result<(), CommandError> {
        if let Some(directory) = self.path.parent().filter(|_| !self.exists()) {
            fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
        }
        self.write(&self.backup_path(), backup)?;
        self.write(&self.path, text)
    }

    /// Lets all users read the file: a new one can be read by its owner only.
    ///
    /// # Errors
    /// The permissions can't be changed.
    pub(crate) fn let_all_users_read(&self) -> Result<(), CommandError> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let error = |error: io::Error| write_error(&self.path, &error);
            let mut permissions = fs::metadata(&self.path).map_err(error)?.permissions();
            permissions.set_mode(permissions.mode() | 0o444);
            fs::set_permissions(&self.path, permissions).map_err(error)?;
        }
        Ok(())
    }

    /// Writes the file, and removes the backup if the two are equal now; a file of which the backup is empty did not exist, and is removed.
    /// Returns the path of a backup that stays.
    pub(crate) fn restore(&self, text: &str) -> Result<Option<PathBuf>, CommandError> {
        let backup = self.backup_path();
        let is_backup = self.backup_text().as_deref() == Some(text);
        if is_backup && text.is_empty() {
            self.check_unchanged()?;
            fs::remove_file(&self.path).map_err(|error| write_error(&self.path, &error))?;
        } else {
            self.write(&self.path, text)?;
        }
        if is_backup {
            fs::remove_file(&backup).map_err(|error| write_error(&backup, &error))?;
            return Ok(None);
        }
        Ok(backup.exists().then_some(backup))
    }

    /// The owning program writes its file, too.
    fn check_unchanged(&self) -> Result<(), CommandError> {
        if fs::read(&self.path).ok().as_deref() == self.found.as_ref().map(|found| found.bytes.as_slice()) {
            return Ok(());
        }
        let display_path = self.display_path.display();
        Err(CommandError::new(format!("`{display_path}` was changed in the meantime; run the command again")))
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        let metadata = self.found.as_ref().map(|found| &found.metadata);
        if metadata.is_some_and(|metadata| metadata.permissions().readonly()) {
            return Err(CommandError::new(format!("`{}` is read-only", self.display_path.display())));
        }
        self.check_unchanged()?;
        let bytes = format!("{}{text}", self.byte_order_mark);
        let permissions = metadata.map(Metadata::permissions);
        write_atomically(path, bytes.as_bytes(), permissions).map_err(|error| write_error(path, &error))
    }
}

fn split_mark(text: &str) -> (&'static str, &str) {
    text.strip_prefix(BYTE_ORDER_MARK).map_or(("", text), |text| (BYTE_ORDER_MARK, text))
}

/// Writes a program that all users can run; it replaces what is there.
///
/// # Errors
/// It, or its directory, can't be written.
pub(crate) fn write_program(path: &Path, text: &str) -> Result<(), CommandError> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
    }
    #[cfg(unix)]
    let permissions = Some(std::os::unix::fs::PermissionsExt::from_mode(0o755));
    #[cfg(not(unix))]
    let permissions = None;
    write_atomically(path, text.as_bytes(), permissions).map_err(|error| write_error(path, &error))
}

/// Writes a draft next to the path and renames it, with these permissions; without them, only its owner can read it.
fn write_atomically(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
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
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}` can't be written: {error}", path.display()))
}

/// The JSON of settings files: with comments and trailing commas, and nothing else that JSON does not have.
pub(crate) fn json_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_overwrite_concurrent_changes() {
        let directory = tempfile::tempdir().unwrap();
        for before in [Some("{}"), None] {
            let path = directory.path().join("settings.json");
            let _ = fs::remove_file(&path);
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let file = EditedFile::open(path.clone(), ".backup").unwrap();
            fs::write(&path, "{ }").unwrap();
            let Err(CommandError::Message(message)) = file.replace("{\n}", "{}") else {
                panic!("it was written")
            };
            assert!(message.contains("changed in the meantime"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
            assert!(!file.backup_path().exists());
        }
    }

    #[test]
    fn a_restored_file_is_as_before_with_its_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        let open = || EditedFile::open(path.clone(), ".backup").unwrap();
        fs::write(&path, "\u{feff}{}").unwrap();
        open().replace("{ \"a\": 1 }", "{}").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}{ \"a\": 1 }");
        assert_eq!(open().restore("{}").unwrap(), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}{}");
        assert!(!open().backup_path().exists());
        fs::remove_file(&path).unwrap();
        open().replace("{}", "").unwrap();
        open().restore("").unwrap();
        assert!(!path.exists() && !open().backup_path().exists());
    }
}
