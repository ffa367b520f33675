//! Loads bundles: paths or strings → document trees and diagnostics.

use std::path::PathBuf;

use super::document_tree::YamlNode;
use super::file_content::{NotUtf8Error, decode};
use super::file_discovery::{BundleFiles, FileKind, find_files, not_a_regular_file, unreadable_file};
use super::parse::parse_within;
use crate::diagnostic::{
    BUNDLE_TOO_LARGE, Diagnostic, Diagnostics, FILE_TOO_LARGE, NOT_UTF8, SourceFile, SourceId, SourceMap,
    Span,
};
use crate::file_access::{FileSandbox, MAX_BUNDLE_BYTES, MAX_FILE_BYTES, ReadError};

/// The files read from a bundle.
#[derive(Debug, Default)]
pub struct LoadedSources {
    /// The content of every file, including files with errors.
    pub sources: SourceMap,
    /// The files with a tree, in the order of the paths given, below a directory by name.
    pub files: Vec<LoadedFile>,
    /// The number of values in `files`.
    pub(crate) nodes: usize,
    /// The problems found. If there are errors, `files` is incomplete and must not be activated.
    pub diagnostics: Diagnostics,
}

/// One loaded rules file.
#[derive(Debug)]
pub struct LoadedFile {
    /// Its content, in [`LoadedSources::sources`].
    pub source: SourceId,
    /// Its tree.
    pub root: YamlNode,
    /// The number of values in it.
    pub nodes: usize,
}

/// Reads all rules files at and below the paths.
///
/// A file given explicitly is read regardless of its ending. Below a directory, every `*.yaml` and `*.yml` is read, except policy
/// tests (`*.test.yaml`) and hidden files. Symbolic links are followed if their target is below the same paths; a file reached
/// twice is read once. Only regular files are opened. For a path to a file, everything in its directory counts as below
/// it. A file's name is the given path, joined with the path found below it.
pub fn load(paths: &[PathBuf]) -> LoadedSources {
    load_changed(paths, |_, _| false)
}

/// Reads all rules files at and below the paths, and parses those that are not known.
pub fn load_changed(paths: &[PathBuf], is_known: impl Fn(SourceId, &SourceFile) -> bool) -> LoadedSources {
    load_wanted(FileKind::Rules, paths, FileSandbox::from_paths(paths), &is_known)
}

/// Reads a file of the user who runs the program, such as a gateway's configuration: it may refer to files anywhere.
pub fn load_trusted(path: &std::path::Path) -> LoadedSources {
    load_wanted(FileKind::Rules, &[path.to_owned()], FileSandbox::unrestricted(), &|_, _| false)
}

/// Reads all policy tests (`*.test.yaml`, `*.test.yml`) at and below the paths, like [`load`] for rules files. It is not an error
/// if a path has none.
pub fn load_policy_tests(paths: &[PathBuf]) -> LoadedSources {
    load_wanted(FileKind::Tests, paths, FileSandbox::from_paths(paths), &|_, _| false)
}

fn load_wanted(
    wanted: FileKind,
    paths: &[PathBuf],
    roots: FileSandbox,
    is_known: &dyn Fn(SourceId, &SourceFile) -> bool,
) -> LoadedSources {
    let BundleFiles { files, diagnostics, roots, .. } = find_files(wanted, paths, roots);
    let sources = SourceMap::with_roots(roots.clone());
    let mut loaded = LoadedSources { sources, diagnostics, ..LoadedSources::default() };
    for path in files {
        let name = path.display().to_string();
        match roots.read(&path) {
            Ok(bytes) => loaded.add(name, bytes, is_known),
            Err(ReadError::TooLarge) => loaded.diagnostics.push(too_large(&name)),
            Err(ReadError::BundleTooLarge) => {
                let message =
                    format!("with `{name}` the bundle is larger than {} MiB", MAX_BUNDLE_BYTES >> 20);
                let help = "use a directory that contains only the rules";
                loaded
                    .diagnostics
                    .push(Diagnostic::for_file(&BUNDLE_TOO_LARGE, name, message).with_help(help));
                break;
            }
            Err(ReadError::Unreadable(kind)) => loaded.diagnostics.push(unreadable_file(&path, kind)),
            // It was a regular file below the roots when it was found.
            Err(_) => loaded.diagnostics.push(not_a_regular_file(&path)),
        }
    }
    loaded.diagnostics.sort();
    loaded
}

/// Reads rules files from memory, each with its name for diagnostics. Files that they refer to are looked up in the directories of
/// these names and below.
pub fn load_texts<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
) -> LoadedSources {
    let texts: Vec<(String, String)> =
        texts.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    let roots = FileSandbox::from_names(texts.iter().map(|(name, _)| name.as_str()));
    load_texts_below(texts, roots)
}

/// Reads rules files from memory, which may refer to files below these directories.
pub fn load_texts_below<N: Into<String>, T: Into<String>>(
    texts: impl IntoIterator<Item = (N, T)>,
    roots: FileSandbox,
) -> LoadedSources {
    let mut loaded = LoadedSources { sources: SourceMap::with_roots(roots), ..LoadedSources::default() };
    for (name, text) in texts {
        loaded.add(name.into(), text.into().into_bytes(), &|_, _| false);
    }
    loaded.diagnostics.sort();
    loaded
}

impl LoadedSources {
    fn add(&mut self, name: String, bytes: Vec<u8>, is_known: &dyn Fn(SourceId, &SourceFile) -> bool) {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            self.diagnostics.push(too_large(&name));
            return;
        }
        match decode(bytes) {
            Ok(text) => {
                let source = self.sources.add(name, text.as_str());
                if self.sources.get(source).is_some_and(|file| is_known(source, file)) {
                    return;
                }
                let before = self.nodes;
                if let Some(root) = parse_within(source, &text, &mut self.nodes, &mut self.diagnostics) {
                    self.files.push(LoadedFile { source, root, nodes: self.nodes - before });
                }
            }
            Err(problem) => self.add_unreadable_text(name, &problem),
        }
    }

    fn add_unreadable_text(&mut self, name: String, problem: &NotUtf8Error) {
        // Keeps the readable content for display, with the replacement character in place of the byte.
        let source = self.sources.add(name, problem.lossy.as_str());
        let span = Span::new(source, problem.at, problem.at + char::REPLACEMENT_CHARACTER.len_utf8());
        let message = format!("the byte 0x{:02X} is not UTF-8 here", problem.byte);
        self.diagnostics.push(Diagnostic::new(&NOT_UTF8, span, message).with_help(problem.help()));
    }
}

fn too_large(name: &str) -> Diagnostic {
    let message = format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20);
    Diagnostic::for_file(&FILE_TOO_LARGE, name, message).with_help("split it into several rules files")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::diagnostic::render;

    fn bundle(files: &[(&str, &str)]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    /// The names of the files read and the diagnostics, without the directory's own name.
    fn outcome(directory: &TempDir, paths: &[&str]) -> (Vec<String>, String) {
        let paths: Vec<_> = paths.iter().map(|path| directory.path().join(path)).collect();
        let loaded = load(&paths);
        let root = format!("{}/", directory.path().display());
        let name = |file: &LoadedFile| loaded.sources.get(file.source).unwrap().name().replace(&root, "");
        let text = render::text(&loaded.diagnostics, &loaded.sources, false).replace(&root, "");
        (loaded.files.iter().map(name).collect(), text)
    }

    #[test]
    fn loads_all_rules_files_sorted_by_name() {
        let directory = bundle(&[
            ("b.yaml", "policies: []"),
            ("a/z.yml", "policies: []"),
            ("a/b.YAML", "policies: []"),
            ("c.test.yaml", "not: rules"),
            ("c.test.yml", "not: rules"),
            ("notes.txt", "not rules"),
            (".hidden.yaml", "x: 1"),
            (".git/config.yaml", "x: 1"),
            ("d.yaml/inside.yaml", "policies: []"),
        ]);
        let (files, problems) = outcome(&directory, &[""]);
        assert_eq!(files, ["a/b.YAML", "a/z.yml", "b.yaml", "d.yaml/inside.yaml"]);
        assert_eq!(problems, "");
        let (files, _) = outcome(&directory, &["notes.txt", "b.yaml", "", "b.yaml"]);
        assert_eq!(files, ["notes.txt", "b.yaml", "a/b.YAML", "a/z.yml", "d.yaml/inside.yaml"]);
    }

    #[test]
    fn finds_policy_tests_next_to_the_rules() {
        let directory = bundle(&[
            ("a.yaml", "policies: []"),
            ("a.test.yaml", "cases: []"),
            ("b/c.test.yml", "cases: []"),
            (".hidden.test.yaml", "cases: []"),
            ("test.yaml", "policies: []"),
        ]);
        let find = |paths: &[&str]| {
            let paths: Vec<_> = paths.iter().map(|path| directory.path().join(path)).collect();
            let loaded = load_policy_tests(&paths);
            (loaded.files.len(), loaded.diagnostics.len())
        };
        assert_eq!(find(&[""]), (2, 0));
        assert_eq!(find(&["a.test.yaml", "a.yaml", "b", "b/c.test.yml"]), (2, 0));
        assert_eq!(find(&["a.yaml"]), (0, 0));
        assert_eq!(find(&["gone.test.yaml"]), (0, 1));
    }

    #[test]
    fn follows_links_within_the_bundle_without_loops() {
        let directory = bundle(&[("rules/a.yaml", "policies: []"), ("other/b.yaml", "policies: []")]);
        let at = |name: &str| directory.path().join(name);
        symlink(at("rules"), at("rules/self")).unwrap();
        symlink(at("other"), at("rules/linked")).unwrap();
        symlink(at("rules/a.yaml"), at("rules/z.yaml")).unwrap();
        let (files, problems) = outcome(&directory, &[""]);
        assert_eq!(files, ["other/b.yaml", "rules/a.yaml"]);
        assert_eq!(problems, "");
        let (files, problems) = outcome(&directory, &["rules"]);
        assert_eq!(files, ["rules/a.yaml"]);
        assert!(problems.contains("CG006") && problems.contains("rules/linked` leads out of"), "{problems}");
    }

    #[test]
    fn a_directory_whose_files_were_given_explicitly_is_not_empty() {
        let directory = bundle(&[("rules/a.yaml", "policies: []")]);
        let (files, problems) = outcome(&directory, &["rules/a.yaml", "rules", ""]);
        assert_eq!((files.len(), problems.as_str()), (1, ""));
    }

    #[cfg(feature = "snippets")]
    #[test]
    fn reports_all_unreadable_paths_at_once() {
        let directory = bundle(&[
            ("policies/refunds.yaml", "policies: []"),
            ("empty/readme.md", ""),
            ("latin1.yaml", ""),
            ("utf16.yaml", ""),
        ]);
        let at = |name: &str| directory.path().join(name);
        fs::write(at("latin1.yaml"), b"a: 1\nb: caf\xe9 x\n").unwrap();
        fs::write(at("utf16.yaml"), b"\xff\xfea\0:\0").unwrap();
        fs::write(at("large.yaml"), "# ".repeat(5 << 20)).unwrap();
        symlink("gone.yaml", at("dangling.yaml")).unwrap();
        symlink("loop.yaml", at("loop.yaml")).unwrap();
        std::process::Command::new("mkfifo").arg(at("pipe.yaml")).status().unwrap();
        let paths = ["polices/refunds.yaml", "policies/refund.yaml", "nothing-like-it", "empty", ""];
        let (files, problems) = outcome(&directory, &paths);
        assert_eq!(files, ["policies/refunds.yaml"]);
        insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!("source_unreadable_paths", problems);
        });
    }

    #[test]
    fn missing_permission_has_a_help_text() {
        let diagnostic = unreadable_file(Path::new("a.yaml"), ErrorKind::PermissionDenied);
        assert_eq!(diagnostic.message, "`a.yaml` can't be read: permission denied");
        assert!(diagnostic.help.is_some());
    }

    #[test]
    fn loads_strings_like_files_and_ignores_byte_order_marks() {
        let loaded = load_texts([("a", "\u{feff}x: 1\r\nx: 2\r\n"), ("b", "\u{feff}!t y: 1"), ("c", "z: 1")]);
        let locations: Vec<_> = loaded
            .diagnostics
            .iter()
            .map(|diagnostic| loaded.sources.locate(diagnostic.span.unwrap()).unwrap())
            .map(|location| (location.file, location.line, location.column, location.end_column))
            .collect();
        assert_eq!(locations, [("a".to_owned(), 2, 1, 2), ("b".to_owned(), 1, 1, 3)]);
        assert_eq!(loaded.files.len(), 3);
    }
}
