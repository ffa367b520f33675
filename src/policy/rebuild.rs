//! Builds after a change: an earlier build and the files → policies, of which those in unchanged files are taken over.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::compiled_files::{self, Reused};
use super::{CompiledPolicies, LoadedBundle, build, build_with};
use crate::diagnostic::SourceId;
use crate::script::Names;
use crate::source::{self, MAX_NODES};

/// Loads and compiles the bundle of all rules files under these paths, with the result of [`build`]. Files that have not changed since
/// `previous` was built are not parsed and compiled again where that can make no difference; [`LoadedBundle::files`] lacks them.
pub fn rebuild(paths: &[PathBuf], previous: &CompiledPolicies) -> LoadedBundle {
    rebuild_changed(paths, previous).unwrap_or_else(|| build(paths))
}

/// Returns `None` if all files must be compiled. That is so after an error, too: a report of errors knows all files.
fn rebuild_changed(paths: &[PathBuf], previous: &CompiledPolicies) -> Option<LoadedBundle> {
    let known = previous.files();
    let unchanged = RefCell::new(Vec::new());
    let loaded = source::load_changed(paths, |source, file| {
        let file = known.unchanged(source, file);
        unchanged.borrow_mut().extend(file.cloned());
        file.is_some()
    });
    let files = unchanged.into_inner();
    if files.is_empty() {
        return Some(build_with(loaded, Reused::default(), &Names::default()));
    }
    let nodes = files.iter().map(|file| file.nodes).sum::<usize>() + loaded.nodes;
    // Another file at another place has other numbers in locations.
    if nodes > MAX_NODES || compiled_files::names_of(&loaded.sources) != known.names {
        return None;
    }
    let is_reused: HashSet<SourceId> = files.iter().map(|file| file.source).collect();
    let (names, patterns) = (Some(Arc::clone(previous.shared_names())), previous.patterns().clone());
    let reused = Reused { files, names, patterns };
    let built = build_with(loaded, reused, &Names::default());
    let policies = built.policies.as_ref()?;
    let is_same_for_all = policies.files().definitions().eq(known.definitions())
        && Arc::ptr_eq(policies.shared_names(), previous.shared_names());
    (is_same_for_all && policies.files().is_within_limits() && policies.files().are_ids_unique(&is_reused))
        .then_some(built)
}
