//! Reading of a regular file that a long-lived process reads again and again: path → text. A pipe or a device never blocks it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Reads a regular file of at most `max_bytes`, following symbolic links. The opened file is checked, not its path, so that nobody can put a
/// pipe in its place in between.
///
/// # Errors
/// The file can't be read, is not a regular file, is too large or is not UTF-8.
pub fn read_regular_file(path: &Path, max_bytes: u64) -> io::Result<String> {
    let file = open_without_waiting(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    file.take(max_bytes.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "the file is too large"));
    }
    Ok(text)
}

/// Opens a file to read it, also if it is a pipe that nobody writes to.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_regular_file(&path, 4).unwrap(), "text");
        assert_eq!(read_regular_file(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(read_regular_file(directory.path(), 4).is_err());
        assert!(read_regular_file(&directory.path().join("none"), 4).is_err());
    }

    /// Without a writer, opening a pipe would wait for ever.
    #[cfg(unix)]
    #[test]
    fn pipe_is_an_error_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(read_regular_file(&path, 4).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
