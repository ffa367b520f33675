//! A bundle of rules as it is published: its files with a name and a version ↔ one JSON document. The same files always give the same bytes.
//!
//! The document holds texts and nothing else: no compression, no symbolic links, no permissions. So it can expand to nothing larger than itself, and
//! its files are always below the directory that they are written to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use callgate::file_access::{MAX_BUNDLE_BYTES, MAX_FILE_BYTES};
use callgate::json::{self, Key, Map, Value, json};
use ring::digest::{SHA256, digest};

/// The member that names the format, and its version.
const FORMAT: &str = "callgate_bundle";
const FORMAT_VERSION: u64 = 1;
/// The maximum number of files.
const MAX_FILES: usize = 10_000;
/// The maximum length of a file's name in bytes, and the number of its parts.
const MAX_NAME_BYTES: usize = 512;
const MAX_NAME_PARTS: usize = 16;
/// The highest version: it fits into every number that shows it.
pub const MAX_VERSION: u64 = i64::MAX as u64;

/// Files of rules with a name and a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    name: String,
    version: u64,
    files: BTreeMap<String, String>,
}

/// Why a bundle is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The document is not JSON, or a member is missing or invalid.
    #[error("the bundle is invalid: {0}")]
    Document(String),
    /// The name of the bundle is invalid.
    #[error("`{}` can't be the name of a bundle: write 1 to 64 of the characters a-z, 0-9, `-`, `_` and `.`", .0.escape_debug())]
    Name(String),
    /// The version is out of range.
    #[error("the version of a bundle is an integer from 1 to {MAX_VERSION}")]
    Version,
    /// The name of a file is invalid.
    #[error("`{}` can't be the name of a file in a bundle: {reason}", .name.escape_debug())]
    FileName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There are no files.
    #[error("the bundle has no files")]
    Empty,
    /// It is too large.
    #[error("the bundle is too large: it may have {MAX_FILES} files of at most {} MiB, and {} MiB together", MAX_FILE_BYTES >> 20, MAX_BUNDLE_BYTES >> 20)]
    TooLarge,
    /// A file can't be read or written.
    #[error("`{}`: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Something else than a regular file or a directory.
    #[error("`{}` is not a regular file; a bundle has no symbolic links and no special files", .0.display())]
    NotRegular(PathBuf),
}

impl Bundle {
    /// A bundle of these files: names relative to its root, with `/`, and their texts.
    ///
    /// # Errors
    /// The name, the version or a file's name is invalid, there are no files, or they are too large.
    pub fn new(
        name: impl Into<String>,
        version: u64,
        files: BTreeMap<String, String>,
    ) -> Result<Self, BundleError> {
        let name = name.into();
        if !is_bundle_name(&name) {
            return Err(BundleError::Name(name));
        }
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(BundleError::Version);
        }
        if files.is_empty() {
            return Err(BundleError::Empty);
        }
        check_sizes(&files)?;
        check_file_names(&files)?;
        Ok(Self { name, version, files })
    }

    /// A bundle of all files below a directory. Hidden files and directories are left out.
    ///
    /// # Errors
    /// As for [`new`](Self::new), and if a file can't be read, is not UTF-8 or is not a regular file.
    pub fn from_directory(
        name: impl Into<String>,
        version: u64,
        directory: &Path,
    ) -> Result<Self, BundleError> {
        let mut files = BTreeMap::new();
        read_directory(directory, String::new(), &mut files)?;
        Self::new(name, version, files)
    }

    /// Reads the document of a bundle.
    ///
    /// # Errors
    /// It is invalid.
    pub fn from_document(document: &[u8]) -> Result<Self, BundleError> {
        let invalid = |problem: &str| BundleError::Document(problem.to_owned());
        let value = json::parse_bytes(document).map_err(|error| BundleError::Document(error.to_string()))?;
        let members = value.as_object().ok_or_else(|| invalid("it is not an object"))?;
        if value.get(FORMAT).and_then(Value::as_u64) != Some(FORMAT_VERSION) {
            return Err(invalid("its format is unknown to this version of Callgate; update Callgate"));
        }
        if members.len() != 4 {
            return Err(invalid(
                "it must have `callgate_bundle`, `name`, `version` and `files`, and nothing else",
            ));
        }
        let name =
            value.get("name").and_then(Value::as_str).ok_or_else(|| invalid("`name` must be a string"))?;
        let version = value.get("version").and_then(Value::as_u64).ok_or(BundleError::Version)?;
        let files = value.get("files").and_then(Value::as_object);
        let files = files.ok_or_else(|| invalid("`files` must be an object"))?;
        let text = |(file, text): (&Key, &Value)| Some((file.to_string(), text.as_str()?.to_owned()));
        let files: Option<BTreeMap<String, String>> =
            files.iter().map(|(file, content)| text((file, content))).collect();
        Self::new(name, version, files.ok_or_else(|| invalid("each of `files` must be a string"))?)
    }

    /// The document: JSON without spaces, with the files in the order of their names.
    pub fn document(&self) -> Vec<u8> {
        let files: Map = self.files.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
        json!({ FORMAT: FORMAT_VERSION, "name": self.name, "version": self.version, "files": Value::Object(files) })
            .to_string()
            .into_bytes()
    }

    /// The SHA-256 digest of the document, in hexadecimal digits.
    pub fn digest(&self) -> String {
        sha256_hex(&self.document())
    }

    /// The name that distinguishes it from other bundles of the same publisher.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version: every publication has a higher one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The files: names and texts, in order.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Writes the files below an empty directory.
    ///
    /// # Errors
    /// A file exists already or can't be written.
    pub fn write_to(&self, directory: &Path) -> Result<(), BundleError> {
        for (name, text) in &self.files {
            let path = directory.join(name);
            let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
                let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
                io::Write::write_all(&mut file, text.as_bytes())
            });
            written.map_err(|error| BundleError::File { path, error })?;
        }
        Ok(())
    }
}

/// The SHA-256 digest of bytes, in hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    callgate::seal::encode_hex(digest(&SHA256, bytes).as_ref())
}

/// Whether a text can be the name of a bundle.
fn is_bundle_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

fn check_sizes(files: &BTreeMap<String, String>) -> Result<(), BundleError> {
    let largest = files.values().map(String::len).max().unwrap_or_default() as u64;
    let total: u64 = files.values().map(|text| text.len() as u64).sum();
    let fits = files.len() <= MAX_FILES && largest <= MAX_FILE_BYTES && total <= MAX_BUNDLE_BYTES;
    if fits { Ok(()) } else { Err(BundleError::TooLarge) }
}

/// Checks that every file would be written below the directory, and none over another one, whatever the file system.
fn check_file_names(files: &BTreeMap<String, String>) -> Result<(), BundleError> {
    let mut folded = BTreeSet::new();
    for name in files.keys() {
        let invalid = |reason| Err(BundleError::FileName { name: name.clone(), reason });
        if let Some(reason) = file_name_problem(name) {
            return invalid(reason);
        }
        if !folded.insert(name.to_lowercase()) {
            return invalid("another file has the same name but for case");
        }
    }
    for name in files.keys() {
        let folded_name = name.to_lowercase();
        let mut directories = folded_name.match_indices('/').filter_map(|(end, _)| folded_name.get(..end));
        if directories.any(|directory| folded.contains(directory)) {
            let reason = "its directory is also the name of a file";
            return Err(BundleError::FileName { name: name.clone(), reason });
        }
    }
    Ok(())
}

fn file_name_problem(name: &str) -> Option<&'static str> {
    if name.len() > MAX_NAME_BYTES || name.split('/').count() > MAX_NAME_PARTS {
        return Some("it is too long");
    }
    if name.contains(|char: char| char.is_control() || matches!(char, '\\' | ':')) {
        return Some("it has a backslash, a colon or a control character");
    }
    if name.split('/').any(|part| part.is_empty() || part.ends_with(['.', ' '])) {
        return Some("it must be a relative path without `.`, `..` and empty parts");
    }
    // Rules can't refer to hidden files either.
    name.split('/').any(|part| part.starts_with('.')).then_some("a part of it begins with `.`")
}

fn read_directory(
    directory: &Path,
    prefix: String,
    files: &mut BTreeMap<String, String>,
) -> Result<(), BundleError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| BundleError::File { path, error }
    };
    for entry in fs::read_dir(directory).map_err(failed(directory))? {
        let entry = entry.map_err(failed(directory))?;
        let path = entry.path();
        let not_utf8 = "the name is not UTF-8";
        let file_name = entry.file_name();
        let file_name = file_name.to_str().ok_or_else(|| BundleError::FileName {
            name: file_name.to_string_lossy().into_owned(),
            reason: not_utf8,
        })?;
        if file_name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{file_name}");
        let kind = entry.file_type().map_err(failed(&path))?;
        if kind.is_dir() {
            if name.split('/').count() >= MAX_NAME_PARTS {
                return Err(BundleError::FileName { name, reason: "it is too long" });
            }
            read_directory(&path, format!("{name}/"), files)?;
        } else if kind.is_file() {
            let text = callgate::file_access::read_regular_file(&path, MAX_FILE_BYTES);
            files.insert(name, text.map_err(failed(&path))?);
            check_sizes(files)?;
        } else {
            return Err(BundleError::NotRegular(path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(files: &[(&str, &str)]) -> Result<Bundle, BundleError> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Bundle::new("payments", 7, files.collect())
    }

    #[test]
    fn a_document_is_deterministic_and_read_back() {
        let one = bundle(&[("b/rules.yaml", "policies: []\n"), ("a.json", "{}")]).unwrap();
        let other = bundle(&[("a.json", "{}"), ("b/rules.yaml", "policies: []\n")]).unwrap();
        assert_eq!(one.document(), other.document());
        assert_eq!(Bundle::from_document(&one.document()).unwrap(), one);
        assert_eq!(one.digest().len(), 64);
    }

    #[test]
    fn files_never_leave_their_directory() {
        for name in [
            "../a.yaml",
            "a/../../b.yaml",
            "/etc/a.yaml",
            "a//b.yaml",
            "./a.yaml",
            "a/.",
            "a\\b.yaml",
            "C:a.yaml",
            "a\0.yaml",
            ".hidden",
            "a/.git/config",
            "",
            "a/",
            "a. ",
            "x\ny",
        ] {
            assert!(matches!(bundle(&[(name, "")]), Err(BundleError::FileName { .. })), "{name:?}");
        }
        assert!(bundle(&[(&"a/".repeat(20), "")]).is_err());
        assert!(bundle(&[("a.yaml", ""), ("A.yaml", "")]).is_err());
        assert!(bundle(&[("a", ""), ("A/b.yaml", "")]).is_err());
        assert!(bundle(&[("a.yaml", ""), ("a/b.yaml", "")]).is_ok());
    }

    #[test]
    fn sizes_and_documents_are_bounded() {
        let large = "x".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1);
        assert!(matches!(bundle(&[("a.yaml", &large)]), Err(BundleError::TooLarge)));
        assert!(matches!(bundle(&[]), Err(BundleError::Empty)));
        for document in [
            "",
            "[]",
            "{}",
            r#"{"callgate_bundle":2,"name":"a","version":1,"files":{"a":""}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":0,"files":{"a":""}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":-1,"files":{"a":""}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":1.5,"files":{"a":""}}"#,
            r#"{"callgate_bundle":1,"name":"A b","version":1,"files":{"a":""}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":1,"files":{"a":1}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":1,"files":{"a":"","a":""}}"#,
            r#"{"callgate_bundle":1,"name":"a","version":1,"files":{"a":""},"more":1}"#,
        ] {
            assert!(Bundle::from_document(document.as_bytes()).is_err(), "{document}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn directories_with_symbolic_links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".git")).unwrap();
        fs::write(directory.path().join(".git/config"), "secret").unwrap();
        fs::write(directory.path().join("a.yaml"), "policies: []").unwrap();
        let found = Bundle::from_directory("a", 1, directory.path()).unwrap();
        assert_eq!(found.files().collect::<Vec<_>>(), [("a.yaml", "policies: []")]);
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("b.yaml")).unwrap();
        let refused = Bundle::from_directory("a", 1, directory.path());
        assert!(matches!(refused, Err(BundleError::NotRegular(_))));
    }
}
