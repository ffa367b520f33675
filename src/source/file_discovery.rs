//! Discovery of the files of a bundle.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::{
    BUNDLE_TOO_LARGE, Diagnostic, Diagnostics, MISSING_PATH, NO_RULES_FILES, OUTSIDE_BUNDLE, UNREADABLE_FILE,
    closest_match,
};
use crate::file_access::{FileSandbox, ReadError};

/// Whether a file of this name contains rules: `*.yaml` or `*.yml`, but not a policy test.
pub fn is_rules_file(path: &Path) -> bool {
    has_ending(path, &[".yaml", ".yml"]) && !is_policy_test(path)
}

/// Whether a file of this name contains policy tests: `*.test.yaml` or `*.test.yml`.
pub fn is_policy_test(path: &Path) -> bool {
    has_ending(path, &[".test.yaml", ".test.yml"])
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// The maximum number of files in a bundle.
const MAX_FILES: usize = 10_000;
/// The maximum number of directory entries visited.
const MAX_ENTRIES: usize = 100_000;

/// The files at and below the paths of a bundle, not yet read.
#[derive(Debug, Default)]
pub struct BundleFiles {
    /// The rules files, each once.
    pub files: Vec<PathBuf>,
    /// The policy tests found next to them, below a directory.
    pub tests: Vec<PathBuf>,
    /// The directories searched.
    pub directories: Vec<PathBuf>,
    /// Problems with the paths.
    pub diagnostics: Diagnostics,
    /// The root directories of the bundle.
    pub roots: FileSandbox,
}

/// Equal if both searches found the same files.
impl PartialEq for BundleFiles {
    fn eq(&self, other: &Self) -> bool {
        let Self { files, tests, directories, diagnostics, roots: _ } = self;
        (files, tests, directories, diagnostics)
            == (&other.files, &other.tests, &other.directories, &other.diagnostics)
    }
}

impl Eq for BundleFiles {}

/// Finds the files of the bundle at these paths, as `load` reads them.
pub fn find_bundle_files(paths: &[PathBuf]) -> BundleFiles {
    find_files(FileKind::Rules, paths, FileSandbox::from_paths(paths))
}

/// The kind of files to find below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Rules files. A file given explicitly is read regardless of its ending.
    Rules,
    /// Policy tests. It is not an error if there are none.
    Tests,
}

impl FileKind {
    fn matches(self, path: &Path) -> bool {
        match self {
            Self::Rules => is_rules_file(path),
            Self::Tests => is_policy_test(path),
        }
    }
}

/// Finds files of this kind.
pub(super) fn find_files(file_kind: FileKind, paths: &[PathBuf], roots: FileSandbox) -> BundleFiles {
    let found = BundleFiles { roots, ..BundleFiles::default() };
    let mut finder = FileFinder { file_kind, found, canonical_paths: HashSet::new(), entries: 0 };
    for path in paths {
        if !finder.find(path) {
            finder.found.diagnostics.push(too_many_files(path));
            break;
        }
    }
    finder.found
}

struct FileFinder {
    file_kind: FileKind,
    found: BundleFiles,
    /// The canonical paths of the files found so far, without symbolic links.
    canonical_paths: HashSet<PathBuf>,
    /// How many directory entries were visited.
    entries: usize,
}

/// A directory entry, with its canonical path without symbolic links.
struct DirectoryEntry {
    path: PathBuf,
    canonical: PathBuf,
    kind: FileType,
}

impl FileFinder {
    /// Adds the files at a path given by the user. Returns `false` if a limit is exceeded.
    fn find(&mut self, path: &Path) -> bool {
        // A path that the user gave may be reported as missing.
        if let Err(error) = fs::symlink_metadata(path) {
            self.found.diagnostics.push(unreachable_path(path, error.into()));
            return true;
        }
        match self.resolve_entry(path.to_owned()) {
            Ok(DirectoryEntry { kind, path, canonical }) if kind.is_dir() => {
                return self.find_below(path, canonical);
            }
            Ok(DirectoryEntry { kind, path, canonical }) if kind.is_file() => {
                if self.file_kind == FileKind::Rules || self.file_kind.matches(&path) {
                    return self.add(path, canonical);
                }
            }
            Ok(_) => self.found.diagnostics.push(not_a_regular_file(path)),
            Err(error) => self.found.diagnostics.push(unreachable_path(path, error)),
        }
        true
    }

    /// Resolves a path, if its target is below the roots.
    fn resolve_entry(&self, path: PathBuf) -> Result<DirectoryEntry, ReadError> {
        let canonical = self.found.roots.resolve(&path)?;
        let kind = fs::symlink_metadata(&canonical)?.file_type();
        Ok(DirectoryEntry { path, canonical, kind })
    }

    /// Adds the matching files below a directory, ordered by name.
    fn find_below(&mut self, root: PathBuf, canonical: PathBuf) -> bool {
        let Ok(kind) = fs::symlink_metadata(&canonical).map(|found| found.file_type()) else { return true };
        let mut pending = vec![Ok(DirectoryEntry { path: root.clone(), canonical, kind })];
        let mut entered = HashSet::new();
        let mut found_any = false;
        while let Some(entry) = pending.pop() {
            let problem = match entry {
                Ok(DirectoryEntry { path, canonical, kind }) if kind.is_dir() => {
                    // A link to a parent directory would cause an endless loop.
                    if !entered.insert(canonical.clone()) {
                        continue;
                    }
                    match visible_children(&path, MAX_ENTRIES.saturating_sub(self.entries)) {
                        Ok(Some(children)) => {
                            self.entries = self.entries.saturating_add(children.len());
                            let entries = children.into_iter().rev().map(|(name, kind)| {
                                let path = path.join(&name);
                                match kind.is_symlink() {
                                    true => self.resolve_entry(path.clone()).map_err(|error| (path, error)),
                                    false => {
                                        Ok(DirectoryEntry { path, canonical: canonical.join(name), kind })
                                    }
                                }
                            });
                            pending.extend(entries);
                            self.found.directories.push(path);
                            continue;
                        }
                        Ok(None) => return false,
                        Err(error) => unreadable_file(&path, error.kind()),
                    }
                }
                Ok(DirectoryEntry { path, canonical, kind }) if kind.is_file() => {
                    if self.file_kind.matches(&path) {
                        found_any = true;
                        if !self.add(path, canonical) {
                            return false;
                        }
                    } else if is_policy_test(&path) {
                        self.found.tests.push(path);
                    }
                    continue;
                }
                Ok(DirectoryEntry { path, .. }) if !self.file_kind.matches(&path) => continue,
                Ok(DirectoryEntry { path, .. }) => not_a_regular_file(&path),
                // The target of a broken link is unknown, so rules may be missing: never skip it silently.
                Err((path, error)) => unreachable_path(&path, error),
            };
            found_any = true;
            self.found.diagnostics.push(problem);
        }
        if !found_any && self.file_kind == FileKind::Rules {
            let message = format!("there are no rules files below `{}`", root.display());
            self.found.diagnostics.push(
                Diagnostic::for_file(&NO_RULES_FILES, root.display().to_string(), message).with_help(
                    "rules files end in `.yaml` or `.yml`; hidden files and policy tests (`*.test.yaml`) are ignored",
                ),
            );
        }
        true
    }

    fn add(&mut self, path: PathBuf, canonical: PathBuf) -> bool {
        if self.canonical_paths.insert(canonical) {
            self.found.files.push(path);
        }
        self.found.files.len() <= MAX_FILES
    }
}

/// The entries of a directory, sorted by name, without hidden ones. Returns `None` if there are more than `limit`.
fn visible_children(directory: &Path, limit: usize) -> io::Result<Option<Vec<(OsString, FileType)>>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if names.len() == limit {
            return Ok(None);
        }
        names.push((name, entry.file_type()?));
    }
    names.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Some(names))
}

fn too_many_files(path: &Path) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!(
        "there are too many files below `{name}`: a bundle has at most {MAX_FILES} files, among {MAX_ENTRIES} entries"
    );
    Diagnostic::for_file(&BUNDLE_TOO_LARGE, name, message)
        .with_help("use a directory that contains only the rules")
}

/// A file that exists but can't be read.
pub(super) fn unreadable_file(path: &Path, kind: io::ErrorKind) -> Diagnostic {
    let name = path.display().to_string();
    let diagnostic = Diagnostic::for_file(&UNREADABLE_FILE, &name, format!("`{name}` can't be read: {kind}"));
    match kind {
        io::ErrorKind::PermissionDenied => diagnostic.with_help(
            "grant read permission to the user that runs Callgate, or remove the file from the bundle",
        ),
        _ => diagnostic,
    }
}

pub(super) fn not_a_regular_file(path: &Path) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("`{name}` is neither a file nor a directory");
    Diagnostic::for_file(&UNREADABLE_FILE, name, message)
        .with_help("pipes and devices are not supported; use a regular file")
}

fn unreachable_path(path: &Path, error: ReadError) -> Diagnostic {
    let name = path.display().to_string();
    match error {
        ReadError::Unreadable(io::ErrorKind::NotFound) => {}
        ReadError::Unreadable(kind) => return unreadable_file(path, kind),
        _ => {
            let message = format!("`{name}` leads out of the directories of the bundle");
            return Diagnostic::for_file(&OUTSIDE_BUNDLE, name, message)
                .with_help("copy the target, or use a directory that contains both");
        }
    }
    if let Ok(target) = fs::read_link(path) {
        let message = format!("`{name}` is a symbolic link to `{}`, which does not exist", target.display());
        return Diagnostic::for_file(&UNREADABLE_FILE, name, message)
            .with_help("remove the link, or point it to a file");
    }
    let diagnostic = Diagnostic::for_file(&MISSING_PATH, &name, format!("`{name}` does not exist"));
    match similar_path(path) {
        Some(similar) => diagnostic.with_help(format!("did you mean `{}`?", similar.display())),
        None => diagnostic,
    }
}

/// The path with its first missing component replaced by a sibling with a similar name.
fn similar_path(path: &Path) -> Option<PathBuf> {
    let missing = path.ancestors().take_while(|part| !part.exists()).last()?;
    let parent = missing.parent()?;
    let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let siblings = visible_children(directory, MAX_ENTRIES).ok()??;
    let names: Vec<_> = siblings.iter().filter_map(|(sibling, _)| sibling.to_str()).collect();
    let similar = parent.join(closest_match(missing.file_name()?.to_str()?, names)?);
    let whole = path.strip_prefix(missing).map(|rest| similar.join(rest)).ok()?;
    Some(if path != missing && whole.exists() { whole } else { similar })
}
