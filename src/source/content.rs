//! Why what one file holds can't be used, and the files that are named in other files.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::{
    BUNDLE_TOO_LARGE, Diagnostic, FILE_TOO_LARGE, NOT_UTF8, OUTSIDE_BUNDLE, SourceMap, Span, UNREADABLE_FILE,
};
use crate::files::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError};

/// Why what a file holds can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// It can't be read.
    Read(ReadError),
    /// It is not text.
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

impl From<ReadError> for FileProblem {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// What a file holds that is named in the file `namer`, as a path from there, and ends in `ending`.
pub fn read_named(
    sources: &SourceMap,
    namer: &str,
    name: &str,
    ending: &str,
) -> (PathBuf, Result<String, FileProblem>) {
    let path = Path::new(namer).parent().unwrap_or(Path::new("")).join(name);
    let is_hidden = |part: Component<'_>| match part {
        Component::Normal(part) => part.as_encoded_bytes().starts_with(b"."),
        _ => false,
    };
    // Where an absolute path leads is not the rules' own, but for the file itself.
    let named = if Path::new(name).is_absolute() { path.file_name().map(Path::new) } else { None };
    // What is hidden, or of another kind, is not for rules: its text would stand in diagnostics.
    let is_ours = name.ends_with(ending) && !named.unwrap_or(Path::new(name)).components().any(is_hidden);
    if !is_ours && !sources.roots().are_anywhere() {
        return (path, Err(ReadError::Outside.into()));
    }
    let bytes = sources.roots().read_named(&path).map_err(FileProblem::from);
    let text = bytes.and_then(|bytes| decode(bytes.to_vec()).map_err(FileProblem::NotUtf8));
    (path, text)
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
            Self::Read(ReadError::Unreadable(ErrorKind::NotFound)) => (
                &UNREADABLE_FILE,
                format!("`{path}` does not exist"),
                "the path starts at the directory of the file that names it",
            ),
            Self::Read(ReadError::Unreadable(kind)) => (
                &UNREADABLE_FILE,
                format!("`{path}` can't be read: {kind}"),
                "give the user who runs this the right to read it, or name another file",
            ),
            Self::Read(ReadError::Directory) => {
                (&UNREADABLE_FILE, format!("`{path}` is a directory"), "name a file in it")
            }
            Self::Read(ReadError::NotRegular) => (
                &UNREADABLE_FILE,
                format!("`{path}` is no file"),
                "pipes and devices are not read; name a file",
            ),
            Self::Read(ReadError::TooLarge) => (
                &FILE_TOO_LARGE,
                format!("`{path}` is larger than {} MiB", MAX_FILE_BYTES >> 20),
                "name a smaller file",
            ),
            Self::Read(ReadError::Outside) => (
                &OUTSIDE_BUNDLE,
                format!("`{path}` is not a file of the bundle"),
                "name a file below the directory of the rules that is not hidden; a script ends in `.rhai`, a schema or a list of \
                 tools in `.json`",
            ),
            Self::Read(ReadError::TooMuch) => (
                &BUNDLE_TOO_LARGE,
                format!("with `{path}` the bundle is larger than {} MiB", MAX_BUNDLE_BYTES >> 20),
                "name smaller files",
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
