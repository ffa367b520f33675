//! The rules files of compiled policies: which of them a later build can take over without compiling them again.
//!
//! What a policy is compiled from are the text of its file, the number of that file in locations, the definitions and defaults of the
//! bundle, and the files that it refers to. Policies that refer to files are always compiled again.

use std::collections::HashSet;
use std::sync::Arc;

use regex::RegexSet;

use super::Policy;
use crate::diagnostic::{SourceFile, SourceId, SourceMap};
use crate::json::Digest;
use crate::regex_compiler;
use crate::script::Names;

/// The maximum number of tool patterns of all policies, those of groups included.
pub(super) const MAX_PATTERNS: usize = 1_000_000;

/// A rules file and its policies.
#[derive(Debug)]
pub struct CompiledFile {
    /// Its number in locations.
    pub(super) source: SourceId,
    /// The digest of its text.
    pub(super) content: Digest,
    /// Everything in it but the policies, as canonical JSON.
    pub(super) other_keys: Box<str>,
    /// Whether other files depend on it: it has more than policies.
    pub(super) has_definitions: bool,
    /// Whether a policy refers to a file.
    pub(super) has_references: bool,
    /// Its policies, with those that are off, in order.
    pub(super) policies: Box<[Arc<Policy>]>,
    /// The number of values in it.
    pub(super) nodes: usize,
    /// The number of tool patterns of its policies.
    pub(super) pattern_count: usize,
    /// What its regular expressions take of the budget of a bundle.
    pub(super) regex_bytes: usize,
}

/// The rules files of a bundle.
#[derive(Debug, Default)]
pub struct CompiledFiles {
    /// The names of all files that were found, in order.
    pub(super) names: Box<[String]>,
    /// The files, in order, without those that are data of the bundle.
    pub(super) files: Box<[Arc<CompiledFile>]>,
    /// What the definitions of the bundle take of the budget of regular expressions.
    pub(super) definitions_regex_bytes: usize,
}

/// What a build takes over from an earlier one.
#[derive(Debug, Default)]
pub struct Reused {
    pub(super) files: Vec<Arc<CompiledFile>>,
    /// The names that the bundle defined. New policies share them with those of the files, because a call evaluates a named value once.
    pub(super) names: Option<Arc<Names>>,
    /// The patterns of tools.
    pub(super) patterns: RegexSet,
}

/// The names of files, in order.
pub(super) fn names_of(sources: &SourceMap) -> Box<[String]> {
    sources.iter().map(|(_, file)| file.name().to_owned()).collect()
}

impl CompiledFiles {
    /// The file of this number, if it has the same name and text, and no policy in it depends on more than the bundle's definitions.
    pub(super) fn unchanged(&self, source: SourceId, file: &SourceFile) -> Option<&Arc<CompiledFile>> {
        let position = self.files.binary_search_by_key(&source, |known| known.source).ok()?;
        let known = self.files.get(position)?;
        let can_be_reused = !known.has_definitions && !known.has_references;
        (can_be_reused
            && self.names.get(source.index())? == file.name()
            && known.content == Digest::compute(file.text().as_bytes()))
        .then_some(known)
    }

    /// The files on which others depend.
    pub(super) fn definitions(&self) -> impl Iterator<Item = (SourceId, Digest)> {
        self.files.iter().filter(|file| file.has_definitions).map(|file| (file.source, file.content))
    }

    /// Whether all files together are within the limits that a build of all of them enforces.
    pub(super) fn is_within_limits(&self) -> bool {
        let (patterns, regex_bytes) =
            self.files.iter().fold((0, self.definitions_regex_bytes), |sums, file| {
                (sums.0 + file.pattern_count, sums.1 + file.regex_bytes)
            });
        patterns <= MAX_PATTERNS && regex_compiler::is_within_budget(regex_bytes)
    }

    /// Whether no policy has the id of another. Those of the files that were reused are unique among themselves, and so are those of all others.
    pub(super) fn are_ids_unique(&self, is_reused: &HashSet<SourceId>) -> bool {
        let ids_of = |are_reused: bool| {
            let files = self.files.iter().filter(move |file| is_reused.contains(&file.source) == are_reused);
            files.flat_map(|file| &file.policies).map(|policy| policy.id.as_str())
        };
        let ids: HashSet<&str> = ids_of(false).collect();
        ids_of(true).all(|id| !ids.contains(id))
    }
}
