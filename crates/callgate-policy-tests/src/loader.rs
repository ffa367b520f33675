//! Loads test files: paths or texts → [`Suite`] + diagnostics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::runner::Suite;
use crate::test_file;
use callgate::diagnostic::{
    Diagnostic, Diagnostics, NO_RULES_FILES, SourceMap, Span, UNKNOWN_NAME, UNKNOWN_POLICY,
};
use callgate::policy::CompiledPolicies;
use callgate::rules_schema::did_you_mean;
use callgate::safe_text::{escape_controls, truncate};
use callgate::script::Names;
use callgate::source::{self, LoadedFile, LoadedSources, is_policy_test};

/// The loaded test files.
#[derive(Debug)]
pub struct LoadedSuite {
    /// The cases; incomplete if there are errors.
    pub suite: Suite,
    /// All diagnostics, ordered by file and position.
    pub diagnostics: Diagnostics,
    /// The test files, for rendering diagnostics.
    pub sources: SourceMap,
    /// The files that the tests refer to, including unreadable ones.
    pub referenced_files: Vec<PathBuf>,
    policy_references: Vec<(Span, String)>,
    files: Vec<LoadedFile>,
    /// The problems of the files as YAML.
    file_diagnostics: Diagnostics,
}

/// Reads all test files (`*.test.yaml`, `*.test.yml`) at and below the paths. Without any, the suite is empty.
pub fn load(paths: &[PathBuf]) -> LoadedSuite {
    read_all(source::load_policy_tests(paths))
}

/// Reads test files that are already in memory, each with the name that diagnostics use for it.
pub fn load_texts<N: Into<String>, T: Into<String>>(texts: impl IntoIterator<Item = (N, T)>) -> LoadedSuite {
    read_all(source::load_texts(texts))
}

fn read_all(loaded: LoadedSources) -> LoadedSuite {
    let LoadedSources { sources, files, diagnostics, .. } = loaded;
    let mut suite = LoadedSuite {
        suite: Suite::default(),
        diagnostics: Diagnostics::default(),
        sources,
        referenced_files: Vec::new(),
        policy_references: Vec::new(),
        files,
        file_diagnostics: diagnostics,
    };
    suite.read_files(&Arc::default());
    suite
}

impl LoadedSuite {
    fn read_files(&mut self, names: &Arc<Names>) {
        self.suite = Suite::default();
        self.diagnostics = self.file_diagnostics.clone();
        self.policy_references.clear();
        self.referenced_files.clear();
        for file in &self.files {
            let read = test_file::read(file, names, &mut self.sources, &mut self.diagnostics);
            self.suite.files.push(read.file);
            self.policy_references.extend(read.policy_references);
            self.referenced_files.extend(read.referenced_files);
        }
        self.diagnostics.sort();
    }

    /// Resolves the names of the bundle that the tests use: groups of tools, named values, constants and functions.
    pub fn resolve_names(&mut self, policies: &CompiledPolicies) {
        if self.diagnostics.iter().any(|diagnostic| diagnostic.code == &UNKNOWN_NAME) {
            self.read_files(&Arc::new(policies.names().clone()));
        }
    }

    /// Removes the problems of names that the tests use, where the bundle is not valid: it may define them.
    pub fn ignore_unknown_names(&mut self) {
        self.diagnostics.retain(|diagnostic| diagnostic.code != &UNKNOWN_NAME);
    }

    /// The ids of the policies named in tests.
    pub fn named_policies(&self) -> impl Iterator<Item = &str> {
        self.policy_references.iter().map(|(_, id)| id.as_str())
    }

    /// Resolves the names of the bundle in the tests, and reports policies that are named in tests but missing from the bundle.
    pub fn check_against(&mut self, policies: &CompiledPolicies) {
        self.resolve_names(policies);
        let ids: BTreeSet<&str> = policies.policies().iter().map(|policy| policy.id.as_str()).collect();
        for (span, id) in self.policy_references.iter().filter(|(_, id)| !ids.contains(id.as_str())) {
            // Finding a suggestion is slow in a large bundle, and further diagnostics are not shown.
            let near = if self.diagnostics.is_full() { None } else { did_you_mean(id, ids.iter().copied()) };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write the id of a policy of the tested rules; a policy with `mode: off` does not count"
                        .to_owned()
                }
            };
            let message = format!("the bundle has no policy `{}`", truncate(&escape_controls(id)));
            self.diagnostics.push(Diagnostic::new(&UNKNOWN_POLICY, *span, message).with_help(help));
        }
        self.diagnostics.sort();
    }
}

/// The paths to load the bundle from: all except test files and directories that contain only tests.
pub fn rules_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| !contains_only_tests(path)).cloned().collect()
}

fn contains_only_tests(path: &Path) -> bool {
    if !path.is_dir() {
        return is_policy_test(path);
    }
    let below = [path.to_owned()];
    let no_rules = |diagnostic: &Diagnostic| diagnostic.code == &NO_RULES_FILES;
    source::load(&below).diagnostics.iter().any(no_rules)
        && !source::load_policy_tests(&below).files.is_empty()
}
