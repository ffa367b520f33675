//! File content: reading of files that other files refer to, decoding, and the errors of both.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::{
    BUNDLE_TOO_LARGE, Diagnostic, FILE_TOO_LARGE, NOT_UTF8, OUTSIDE_BUNDLE, SourceMap, Span, UNREADABLE_FILE,
};
use crate::file_access::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError};

/// Why the content of a file can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContentError {
    /// It can't be read.
    Unreadable(ReadError),
    /// It is not UTF-8.
    NotUtf8(NotUtf8Error),
}

/// Bytes that are not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUtf8Error {
    /// The content with the replacement character for invalid bytes.
    pub(super) lossy: String,
    /// The position of the first invalid byte.
    pub(super) at: usize,
    /// That byte.
    pub(super) byte: u8,
    /// Whether the content starts with a UTF-16 byte order mark.
    utf16: bool,
}

impl From<ReadError> for FileContentError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

/// Reads a file that the file `namer` refers to by a relative path, and whose name must end in `ending`.
pub fn read_referenced_file(
    sources: &SourceMap,
    namer: &str,
    name: &str,
    ending: &str,
) -> (PathBuf, Result<String, FileContentError>) {
    let path = Path::new(namer).parent().unwrap_or(Path::new("")).join(name);
    let is_hidden = |part: Component<'_>| match part {
        Component::Normal(part) => part.as_encoded_bytes().starts_with(b"."),
        _ => false,
    };
    // In an absolute path only the file name is checked for hidden parts: the directories above it are not part of the rules.
    let named = if Path::new(name).is_absolute() { path.file_name().map(Path::new) } else { None };
    // Hidden files and other file types are not for rules: diagnostics would show their content.
    let is_rules_file =
        name.ends_with(ending) && !named.unwrap_or(Path::new(name)).components().any(is_hidden);
    if !is_rules_file && !sources.roots().is_unrestricted() {
        return (path, Err(ReadError::OutsideSandbox.into()));
    }
    let bytes = sources.roots().read_referenced(&path).map_err(FileContentError::from);
    let text = bytes.and_then(|bytes| decode(bytes.to_vec()).map_err(FileContentError::NotUtf8));
    (path, text)
}

/// Removes the byte order mark, so that columns of the first line match what is visible.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, NotUtf8Error> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        NotUtf8Error {
            lossy: String::from_utf8_lossy(bytes).into_owned(),
            at,
            byte: bytes.get(at).copied().unwrap_or_default(),
            utf16: matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]),
        }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

impl NotUtf8Error {
    pub(super) fn help(&self) -> &'static str {
        if self.utf16 { "the file is in UTF-16; save it as UTF-8" } else { "save the file as UTF-8" }
    }

    fn line(&self) -> usize {
        self.lossy.get(..self.at).unwrap_or_default().matches('\n').count() + 1
    }
}

impl FileContentError {
    /// The diagnostic for a file that another one refers to, at the position of the reference.
    pub fn to_diagnostic(&self, name: Span, path: &Path) -> Diagnostic {
        let path = path.display();
        let (code, message, help) = match self {
            Self::Unreadable(ReadError::Unreadable(ErrorKind::NotFound)) => (
                &UNREADABLE_FILE,
                format!("`{path}` does not exist"),
                "paths are relative to the directory of the file that contains them",
            ),
            Self::Unreadable(ReadError::Unreadable(kind)) => (
                &UNREADABLE_FILE,
                format!("`{path}` can't be read: {kind}"),
                "grant read permission to the user that runs Callgate, or use another file",
            ),
            Self::Unreadable(ReadError::Directory) => {
                (&UNREADABLE_FILE, format!("`{path}` is a directory"), "use the path of a file in it")
            }
            Self::Unreadable(ReadError::NotRegular) => (
                &UNREADABLE_FILE,
                format!("`{path}` is not a regular file"),
                "pipes and devices are not supported; use a regular file",
            ),
            Self::Unreadable(ReadError::TooLarge) => (
                &FILE_TOO_LARGE,
                format!("`{path}` is larger than {} MiB", MAX_FILE_BYTES >> 20),
                "use a smaller file",
            ),
            Self::Unreadable(ReadError::OutsideSandbox) => (
                &OUTSIDE_BUNDLE,
                format!("`{path}` is not a file of the bundle"),
                "use a file below the rules directory that is not hidden; scripts end in `.rhai`, schemas and lists of \
                 tools in `.json`",
            ),
            Self::Unreadable(ReadError::BundleTooLarge) => (
                &BUNDLE_TOO_LARGE,
                format!("with `{path}` the bundle is larger than {} MiB", MAX_BUNDLE_BYTES >> 20),
                "use smaller files",
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
        Diagnostic::new(code, name, message).with_help(help)
    }
}
