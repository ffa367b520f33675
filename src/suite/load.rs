//! Paths or texts → a suite, with everything that is wrong with its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::read;
use super::run::Suite;
use crate::authoring::meant;
use crate::diagnostic::{Diagnostic, Diagnostics, NO_RULES_FILES, SourceMap, Span, UNKNOWN_POLICY};
use crate::policy::Chains;
use crate::source::{self, Loaded, is_policy_test};
use crate::text::{cut, inert};

/// What was read of test files.
#[derive(Debug)]
pub struct LoadedSuite {
    /// The cases. While there are errors they are not the whole suite.
    pub suite: Suite,
    /// Everything that was found, in the order of files and places.
    pub diagnostics: Diagnostics,
    /// The test files, so that diagnostics can be shown.
    pub sources: SourceMap,
    /// The files beside the tests that they draw on, also those that can't be read.
    pub drawn_files: Vec<PathBuf>,
    named: Vec<(Span, String)>,
}

/// Reads all test files (`*.test.yaml`, `*.test.yml`) at and below the paths. Where there are none, the suite is empty.
pub fn load(paths: &[PathBuf]) -> LoadedSuite {
    read_all(source::load_policy_tests(paths))
}

/// Reads test files that are already in memory, each with the name that diagnostics call it by.
pub fn load_texts<N: Into<String>, T: Into<String>>(texts: impl IntoIterator<Item = (N, T)>) -> LoadedSuite {
    read_all(source::load_texts(texts))
}

fn read_all(loaded: Loaded) -> LoadedSuite {
    let Loaded { mut sources, files, mut diagnostics, .. } = loaded;
    let (mut suite, mut named, mut drawn_files) = (Suite::default(), Vec::new(), Vec::new());
    for file in &files {
        let read = read::read(file, &mut sources, &mut diagnostics);
        suite.files.push(read.file);
        named.extend(read.named);
        drawn_files.extend(read.drawn_files);
    }
    diagnostics.sort();
    LoadedSuite { suite, diagnostics, sources, drawn_files, named }
}

impl LoadedSuite {
    /// The ids of the policies that tests name.
    pub fn policies_named(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(_, id)| id.as_str())
    }

    /// Reports the policies that tests name and the bundle does not have.
    pub fn check_against(&mut self, chains: &Chains) {
        let ids: BTreeSet<&str> = chains.policies().iter().map(|policy| policy.id.as_str()).collect();
        for (span, id) in self.named.iter().filter(|(_, id)| !ids.contains(id.as_str())) {
            // Looking for what was meant takes long in a large bundle, for problems that are not shown.
            let near = if self.diagnostics.is_full() { None } else { meant(id, ids.iter().copied()) };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write the id of a policy of the rules that are tested; one with `mode: off` does not count".to_owned(),
            };
            let message = format!("the bundle has no policy `{}`", cut(&inert(id)));
            self.diagnostics.push(Diagnostic::new(&UNKNOWN_POLICY, *span, message).help(help));
        }
        self.diagnostics.sort();
    }
}

/// Of paths under which there are rules and tests, those that the bundle is loaded from: all but test files, and but
/// directories in which there are only tests.
pub fn rules_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| !holds_only_tests(path)).cloned().collect()
}

fn holds_only_tests(path: &Path) -> bool {
    if !path.is_dir() {
        return is_policy_test(path);
    }
    let below = [path.to_owned()];
    let no_rules = |diagnostic: &Diagnostic| diagnostic.code == &NO_RULES_FILES;
    source::load(&below).diagnostics.iter().any(no_rules)
        && !source::load_policy_tests(&below).files.is_empty()
}
