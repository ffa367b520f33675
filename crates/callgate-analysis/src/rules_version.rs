//! One version of a bundle: files → compiled policies with their sources and policy tests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use callgate::diagnostic::{Location, Span};
use callgate::policy::{self, CompiledPolicies, LoadedBundle, Policy};
use callgate::source::YamlNode;
use callgate_policy_tests::{LoadedSuite, definitions_of_policy};

use crate::vocabulary::Vocabulary;

/// One version of a bundle, with its policy tests.
#[derive(Debug)]
pub struct RulesVersion {
    loaded: LoadedBundle,
    compiled: Arc<CompiledPolicies>,
    tests: LoadedSuite,
}

impl RulesVersion {
    /// Loads the rules files and policy tests at and below these paths. Tests with errors are left out.
    ///
    /// # Errors
    /// The bundle with its diagnostics, if the rules have errors.
    pub fn load(paths: &[PathBuf]) -> Result<Self, Box<LoadedBundle>> {
        Self::new(policy::build(paths), callgate_policy_tests::load(paths))
    }

    /// Compiles rules in memory: pairs of a file's name and its text.
    ///
    /// # Errors
    /// As [`RulesVersion::load`].
    pub fn from_texts<N: Into<String>, T: Into<String>>(
        texts: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Self, Box<LoadedBundle>> {
        Self::new(policy::build_texts(texts), callgate_policy_tests::load_texts::<String, String>([]))
    }

    fn new(mut loaded: LoadedBundle, mut tests: LoadedSuite) -> Result<Self, Box<LoadedBundle>> {
        match loaded.policies.take().map(Arc::new) {
            Some(compiled) => {
                tests.resolve_names(&compiled);
                Ok(Self { loaded, compiled, tests })
            }
            None => Err(Box::new(loaded)),
        }
    }

    /// The compiled policies.
    pub fn policies(&self) -> &Arc<CompiledPolicies> {
        &self.compiled
    }

    /// The policy tests beside the rules.
    pub fn tests(&self) -> &LoadedSuite {
        &self.tests
    }

    pub(crate) fn loaded(&self) -> &LoadedBundle {
        &self.loaded
    }

    /// The nodes of all policies by id, also of those that are off.
    pub(crate) fn policy_nodes(&self) -> HashMap<&str, &YamlNode> {
        let files = self.loaded.files.iter();
        let nodes =
            files.flat_map(|file| file.root.get("policies").and_then(YamlNode::items).unwrap_or_default());
        nodes.filter_map(|node| Some((node.get("id")?.as_str()?, node))).collect()
    }

    pub(crate) fn locate(&self, span: Span) -> Option<Location> {
        self.loaded.sources.locate(span)
    }

    /// Adds to `vocabulary` what a policy reads, the definitions that it reaches included.
    pub(crate) fn add_terms(&self, policy: &Policy, node: &YamlNode, vocabulary: &mut Vocabulary) {
        vocabulary.add_policy(node);
        for (name, entry) in definitions_of_policy(policy, &self.compiled, &self.loaded.files) {
            match name.section() {
                "let" => vocabulary.add_named_value(&entry.value),
                "data" => vocabulary.add_constant(&entry.value),
                _ => {}
            }
        }
        let calls_functions = policy.definitions.iter().any(|(name, _)| name.section() == "functions");
        let texts = self.loaded.files.iter().filter_map(|file| file.root.get("functions")?.as_str());
        texts.filter(|_| calls_functions).for_each(|text| vocabulary.add_text(text));
    }
}
