//! What one file holds. A pipe or a device is never opened, for it could keep us waiting for ever, and of a file that is too
//! large no more is read than shows it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::diagnostic::{Diagnostic, FILE_TOO_LARGE, NOT_UTF8, Span, UNREADABLE_FILE};

/// A larger file is refused, in bytes.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// Why what a file holds can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// The system says no.
    Unreadable(ErrorKind),
    /// It is a directory.
    Directory,
    /// It is a pipe, a device or the like.
    NotRegular,
    /// It is larger than [`MAX_FILE_BYTES`].
    TooLarge,
    /// It is no text.
    NotUtf8(NotUtf8),
}

/// Bytes that are no UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUtf8 {
    /// What can be read, with the replacement character for what can't.
    pub(super) lossy: String,
    /// Where the first byte stands that can't be read.
    pub(super) at: usize,
    /// That byte.
    pub(super) byte: u8,
    /// Whether the bytes begin as UTF-16 does.
    utf16: bool,
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error.kind())
    }
}

/// A file's bytes.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, FileProblem> {
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Err(FileProblem::Directory);
    }
    if !kind.is_file() {
        return Err(FileProblem::NotRegular);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { Err(FileProblem::TooLarge) } else { Ok(bytes) }
}

/// A file's text, without a byte order mark.
pub fn read_text(path: &Path) -> Result<String, FileProblem> {
    decode(read_bytes(path)?).map_err(FileProblem::NotUtf8)
}

/// Without its byte order mark, columns of the first line count what is seen.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, NotUtf8> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        NotUtf8 {
            lossy: String::from_utf8_lossy(bytes).into_owned(),
            at,
            byte: bytes.get(at).copied().unwrap_or_default(),
            utf16: matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]),
        }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

impl NotUtf8 {
    pub(super) fn help(&self) -> &'static str {
        if self.utf16 { "the file is in UTF-16; save it as UTF-8" } else { "save the file as UTF-8" }
    }

    fn line(&self) -> usize {
        self.lossy.get(..self.at).unwrap_or_default().matches('\n').count() + 1
    }
}

impl FileProblem {
    /// The problem of a file that is named in another one, at the place of its name.
    pub fn at(&self, name: Span, path: &Path) -> Diagnostic {
        let path = path.display();
        let (code, message, help) = match self {
            Self::Unreadable(ErrorKind::NotFound) => (
                &UNREADABLE_FILE,
                format!("`{path}` does not exist"),
                "the path starts at the directory of the file that names it",
            ),
            Self::Unreadable(kind) => (
                &UNREADABLE_FILE,
                format!("`{path}` can't be read: {kind}"),
                "give the user who runs this the right to read it, or name another file",
            ),
            Self::Directory => (&UNREADABLE_FILE, format!("`{path}` is a directory"), "name a file in it"),
            Self::NotRegular => (
                &UNREADABLE_FILE,
                format!("`{path}` is no file"),
                "pipes and devices are not read; name a file",
            ),
            Self::TooLarge => (
                &FILE_TOO_LARGE,
                format!("`{path}` is larger than {} MiB", MAX_FILE_BYTES >> 20),
                "name a smaller file",
            ),
            Self::NotUtf8(problem) => (
                &NOT_UTF8,
                format!(
                    "the byte 0x{:02X} in line {} of `{path}` is not UTF-8",
                    problem.byte,
                    problem.line()
                ),
                problem.help(),
            ),
        };
        Diagnostic::new(code, name, message).help(help)
    }
}
