//! Which files a bundle consists of.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Diagnostics, MISSING_PATH, NO_RULES_FILES, UNREADABLE_FILE, nearest};

/// Whether a file of this name holds rules: `*.yaml` or `*.yml`, but no policy test.
pub fn is_rules_file(path: &Path) -> bool {
    has_ending(path, &[".yaml", ".yml"]) && !is_policy_test(path)
}

/// Whether a file of this name holds policy tests: `*.test.yaml` or `*.test.yml`.
pub fn is_policy_test(path: &Path) -> bool {
    has_ending(path, &[".test.yaml", ".test.yml"])
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// What lies at and below the paths of a bundle. Nothing of it is read yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The rules files, each once.
    pub files: Vec<PathBuf>,
    /// The policy tests that lie beside them, below a directory.
    pub tests: Vec<PathBuf>,
    /// The directories that were searched.
    pub directories: Vec<PathBuf>,
    /// What is wrong with the paths.
    pub diagnostics: Diagnostics,
}

/// Looks for the files of the bundle that these paths stand for, as [`load`](super::load) reads them.
pub fn survey(paths: &[PathBuf]) -> Survey {
    survey_for(Wanted::Rules, paths)
}

/// What files below a path are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Rules files. One that is named is read whatever its ending.
    Rules,
    /// Policy tests. Where there are none, that is no problem.
    Tests,
}

impl Wanted {
    fn takes(self, path: &Path) -> bool {
        match self {
            Self::Rules => is_rules_file(path),
            Self::Tests => is_policy_test(path),
        }
    }
}

/// Looks for these files.
pub(super) fn survey_for(wanted: Wanted, paths: &[PathBuf]) -> Survey {
    let mut finder = Finder { wanted, found: Survey::default(), known: HashSet::new() };
    paths.iter().for_each(|path| finder.find(path));
    finder.found
}

struct Finder {
    wanted: Wanted,
    found: Survey,
    /// The files so far by the path that no symbolic link is part of.
    known: HashSet<PathBuf>,
}

impl Finder {
    /// Adds what a path that the user gave stands for.
    fn find(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(kind) if kind.is_dir() => self.find_below(path),
            Ok(kind) if kind.is_file() => {
                if self.wanted == Wanted::Rules || self.wanted.takes(path) {
                    self.add(path.to_owned());
                }
            }
            Ok(_) => self.found.diagnostics.push(not_regular(path)),
            Err(error) => self.found.diagnostics.push(unreachable_path(path, &error)),
        }
    }

    /// Adds the wanted files below a directory, in the order of their names.
    fn find_below(&mut self, root: &Path) {
        let mut pending = vec![root.to_owned()];
        let mut entered = HashSet::new();
        let mut found_any = false;
        while let Some(path) = pending.pop() {
            let problem = match fs::metadata(&path) {
                Ok(kind) if kind.is_dir() => {
                    // A link to a directory above would lead round in circles.
                    if !entered.insert(unlinked(&path)) {
                        continue;
                    }
                    match visible_children(&path) {
                        Ok(children) => {
                            self.found.directories.push(path);
                            pending.extend(children.into_iter().rev());
                            continue;
                        }
                        Err(error) => unreadable(&path, error.kind()),
                    }
                }
                Ok(kind) if kind.is_file() => {
                    if self.wanted.takes(&path) {
                        found_any = true;
                        self.add(path);
                    } else if is_policy_test(&path) {
                        self.found.tests.push(path);
                    }
                    continue;
                }
                Ok(_) if !self.wanted.takes(&path) => continue,
                Ok(_) => not_regular(&path),
                // Where a link should lead can't be known, so rules may be missing: that is never passed over.
                Err(error) => unreachable_path(&path, &error),
            };
            found_any = true;
            self.found.diagnostics.push(problem);
        }
        if !found_any && self.wanted == Wanted::Rules {
            let message = format!("there are no rules files below `{}`", root.display());
            self.found.diagnostics.push(
                Diagnostic::of_file(&NO_RULES_FILES, root.display().to_string(), message).help(
                    "rules files end in `.yaml` or `.yml`; hidden files and policy tests (`*.test.yaml`) don't count",
                ),
            );
        }
    }

    fn add(&mut self, path: PathBuf) {
        if self.known.insert(unlinked(&path)) {
            self.found.files.push(path);
        }
    }
}

fn unlinked(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The entries of a directory, sorted by name, without those whose names begin with a dot.
fn visible_children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
    names.sort();
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// A file that exists and can't be read.
pub(super) fn unreadable(path: &Path, kind: io::ErrorKind) -> Diagnostic {
    let name = path.display().to_string();
    let diagnostic = Diagnostic::of_file(&UNREADABLE_FILE, &name, format!("`{name}` can't be read: {kind}"));
    match kind {
        io::ErrorKind::PermissionDenied => {
            diagnostic.help("give the user who runs this the right to read it, or take it out of the bundle")
        }
        _ => diagnostic,
    }
}

pub(super) fn not_regular(path: &Path) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("`{name}` is neither a file nor a directory");
    Diagnostic::of_file(&UNREADABLE_FILE, name, message).help("pipes and devices are not read; give a file")
}

fn unreachable_path(path: &Path, error: &io::Error) -> Diagnostic {
    if error.kind() != io::ErrorKind::NotFound {
        return unreadable(path, error.kind());
    }
    let name = path.display().to_string();
    if let Ok(target) = fs::read_link(path) {
        let message = format!("`{name}` is a symbolic link to `{}`, which does not exist", target.display());
        return Diagnostic::of_file(&UNREADABLE_FILE, name, message)
            .help("remove the link, or let it lead to a file");
    }
    let diagnostic = Diagnostic::of_file(&MISSING_PATH, &name, format!("`{name}` does not exist"));
    match similar_path(path) {
        Some(similar) => diagnostic.help(format!("did you mean `{}`?", similar.display())),
        None => diagnostic,
    }
}

/// The path with its first missing part replaced by a sibling of a similar name.
fn similar_path(path: &Path) -> Option<PathBuf> {
    let missing = path.ancestors().take_while(|part| !part.exists()).last()?;
    let parent = missing.parent()?;
    let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let siblings = visible_children(directory).ok()?;
    let names: Vec<_> = siblings.iter().filter_map(|sibling| sibling.file_name()?.to_str()).collect();
    let similar = parent.join(nearest(missing.file_name()?.to_str()?, names)?);
    let whole = path.strip_prefix(missing).map(|rest| similar.join(rest)).ok()?;
    Some(if path != missing && whole.exists() { whole } else { similar })
}
