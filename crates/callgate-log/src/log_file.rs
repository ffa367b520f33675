//! A log file: complete lines are appended, the file is rotated by size, and one process writes it at a time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// When a file is rotated, and how many rotated files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The size in bytes that a file does not exceed, unless one line alone does.
    pub max_bytes: u64,
    /// The number of rotated files that are kept: `FILE.1` is the newest. `None` keeps all.
    pub keep: Option<u32>,
}

impl Default for Rotation {
    /// 100 MiB, 10 rotated files.
    fn default() -> Self {
        Self { max_bytes: 100 << 20, keep: Some(10) }
    }
}

/// Why a log file can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFileError {
    /// The operating system refuses.
    #[error("the log file `{}` can't be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a directory, a device, a pipe or a socket.
    #[error("`{}` is not a regular file; name a file for the log", .0.display())]
    NotAFile(PathBuf),
    /// It is a symbolic link, by which another user could redirect the log.
    #[error("`{}` is a symbolic link; name the file itself", .0.display())]
    SymbolicLink(PathBuf),
    /// Another process writes it.
    #[error("another process writes the log file `{}`; use one file for each process", .0.display())]
    InUse(PathBuf),
}

/// A log file that this process writes.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// The number of bytes of complete lines.
    bytes: u64,
    rotation: Rotation,
    /// The file ends with an incomplete line of a process that crashed.
    is_torn: bool,
    /// The file ends with the beginning of lines that could not be written, and that could not be removed.
    has_remainder: bool,
}

impl LogFile {
    /// Opens a file, or creates it for its owner only. If it ends with an incomplete line, because a process crashed, that line is
    /// ended, so that the next one is readable.
    pub(crate) fn open(path: &Path, rotation: Rotation) -> Result<Self, LogFileError> {
        let file = open_locked(path)?;
        let failed = |error| LogFileError::Open { path: path.to_owned(), error };
        let bytes = file.metadata().map_err(failed)?.len();
        let is_torn = bytes > 0 && last_byte(&file).map_err(failed)? != b'\n';
        Ok(Self { path: path.to_owned(), file, bytes, rotation, is_torn, has_remainder: false })
    }

    /// Whether the file ends with an incomplete line of a process that crashed.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// The file, for reading.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Waits until everything written is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Appends complete lines: all of them or, after an error, none as far as the operating system allows it.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.refresh()?;
        if self.bytes > 0 && self.bytes.saturating_add(lines.len() as u64) > self.rotation.max_bytes {
            self.rotate()?;
        }
        if !self.is_torn {
            return self.write(lines);
        }
        self.write(&[b"\n", lines].concat())?;
        self.is_torn = false;
        Ok(())
    }

    /// The number of bytes that the file takes which a line of this length goes to: this file, or the next one.
    pub(crate) fn room_for(&self, line_bytes: usize) -> usize {
        let room = self.rotation.max_bytes.saturating_sub(self.bytes);
        let room = if room >= line_bytes as u64 { room } else { self.rotation.max_bytes };
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes);
        match written {
            Ok(()) => self.bytes += bytes.len() as u64,
            // A part of a line may have been written: without this, the next line would continue it.
            Err(_) => self.has_remainder = self.file.set_len(self.bytes).is_err(),
        }
        written
    }

    /// Takes note of what other programs did to the file: `logrotate` moves or truncates it.
    fn refresh(&mut self) -> io::Result<()> {
        let ours = self.file.metadata()?;
        let is_in_place = fs::symlink_metadata(&self.path)
            .is_ok_and(|now| (now.dev(), now.ino()) == (ours.dev(), ours.ino()));
        if !is_in_place {
            return self.reopen();
        }
        if self.has_remainder {
            self.bytes = self.bytes.min(ours.len());
            self.file.set_len(self.bytes)?;
            self.has_remainder = false;
        } else {
            self.bytes = ours.len();
        }
        Ok(())
    }

    /// Moves the file to `FILE.1`, older ones one further, and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let oldest = (1..u32::MAX).find(|number| !self.rotated(*number).exists()).unwrap_or(u32::MAX);
        for number in (1..oldest).rev() {
            let from = self.rotated(number);
            match self.rotation.keep.is_some_and(|keep| number >= keep) {
                true => fs::remove_file(from)?,
                false => fs::rename(from, self.rotated(number + 1))?,
            }
        }
        match self.rotation.keep {
            Some(0) => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, self.rotated(1))?,
        }
        self.reopen()
    }

    fn reopen(&mut self) -> io::Result<()> {
        let file = open_locked(&self.path).map_err(io::Error::other)?;
        self.bytes = file.metadata()?.len();
        self.is_torn = self.bytes > 0 && last_byte(&file)? != b'\n';
        self.file = file;
        self.has_remainder = false;
        Ok(())
    }

    fn rotated(&self, number: u32) -> PathBuf {
        rotated_path(&self.path, number)
    }
}

/// The path of a rotated file; 1 is the newest.
pub fn rotated_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Opens a file for appending, and locks it for this process. A pipe is not waited for.
fn open_locked(path: &Path) -> Result<File, LogFileError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let opened =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => LogFileError::SymbolicLink(path.to_owned()),
        Ok(found) if !found.is_file() => LogFileError::NotAFile(path.to_owned()),
        _ => LogFileError::Open { path: path.to_owned(), error },
    })?;
    let failed = |error| LogFileError::Open { path: path.to_owned(), error };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(LogFileError::NotAFile(path.to_owned()));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(LogFileError::InUse(path.to_owned())),
        Err(error) => Err(failed(error.into())),
    }
}

fn last_byte(mut file: &File) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}
