//! The names that a bundle defines for its expressions: named values, constants, functions and groups of tools.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::data_set::DataSet;
use super::definition_name::DefinitionName;
use super::named_value::NamedValue;
use super::program::SharedFunctions;
use crate::json::{self, Digest, Value, json};
use crate::name_pattern::NamePattern;
use crate::path::{ElementName, ElementNames};

/// The definitions of a bundle.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The named values; `None` for a definition with an error, which has been reported.
    lets: HashMap<String, Option<Arc<NamedValue>>>,
    data: Arc<DataSet>,
    functions: Arc<SharedFunctions>,
    /// The patterns of each group, those of nested groups included.
    groups: HashMap<String, Vec<NamePattern>>,
    /// The digest of each definition's content, that of the definitions it reaches included.
    digests: HashMap<DefinitionName, Digest>,
    /// The names of elements, in a condition on elements.
    elements: ElementNames,
    /// Whether the functions have an error, which has been reported.
    pub(super) has_invalid_functions: bool,
    /// Whether unknown names are collected instead of refused.
    pub(super) collects_unknown: bool,
}

impl Names {
    /// Names that accept every identifier, to find out which ones a text uses.
    pub(super) fn collecting() -> Self {
        Self { collects_unknown: true, ..Self::default() }
    }

    /// Sets the constants.
    pub fn set_data(&mut self, data: DataSet) {
        self.data = Arc::new(data);
    }

    /// Sets the functions.
    pub fn set_functions(&mut self, functions: SharedFunctions) {
        self.functions = Arc::new(functions);
    }

    /// Notes that the functions have an error, so that calls of them are not reported, too.
    pub fn set_invalid_functions(&mut self) {
        self.has_invalid_functions = true;
    }

    /// Adds a group.
    pub fn add_group(&mut self, name: &str, patterns: Vec<NamePattern>) {
        self.groups.insert(name.to_owned(), patterns);
    }

    /// Adds a named value, or the name of one whose definition has an error.
    pub fn add_let(&mut self, name: &str, value: Option<NamedValue>) {
        let value = value.map(|value| {
            let named = value.definitions().clone();
            let known = named.iter().filter_map(|name| match name {
                DefinitionName::Let(name) => self.lets.get(name)?.as_ref(),
                _ => None,
            });
            Arc::new(value.with_named(known))
        });
        self.lets.insert(name.to_owned(), value);
    }

    /// Adds the digest of a definition's content.
    pub fn add_digest(&mut self, name: DefinitionName, digest: Digest) {
        self.digests.insert(name, digest);
    }

    /// Adds the name of elements, for the condition on them.
    pub fn add_element(&mut self, name: ElementName) {
        self.elements.push(name);
    }

    /// The names of elements.
    pub fn elements(&self) -> &ElementNames {
        &self.elements
    }

    /// The named value with this name: `None` if there is none, `Some(None)` if its definition has an error.
    pub fn find_let(&self, name: &str) -> Option<Option<&Arc<NamedValue>>> {
        self.lets.get(name).map(Option::as_ref)
    }

    /// The names of the named values.
    pub fn let_names(&self) -> impl Iterator<Item = &str> {
        self.lets.keys().map(String::as_str)
    }

    /// The constants.
    pub fn data(&self) -> &Arc<DataSet> {
        &self.data
    }

    /// The functions.
    pub fn functions(&self) -> &Arc<SharedFunctions> {
        &self.functions
    }

    /// The patterns of a group.
    pub fn group(&self, name: &str) -> Option<&[NamePattern]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// The names of the groups.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The digest of all definitions. Returns `None` if there are none.
    pub fn content_digest(&self) -> Option<Digest> {
        let mut all: Vec<(&DefinitionName, &Digest)> = self.digests.iter().collect();
        all.sort_by_key(|(name, _)| *name);
        let all =
            all.into_iter().map(|(name, digest)| json!([name.section(), name.name(), digest.to_string()]));
        let all: Value = all.collect();
        all.as_array().is_some_and(|all| !all.is_empty()).then(|| json::digest(&all))
    }

    /// The content of these definitions and of those that they reach, for the digest of what uses them.
    pub fn digests_of<'n>(
        &'n self,
        names: &'n BTreeSet<DefinitionName>,
    ) -> impl Iterator<Item = (&'n DefinitionName, Digest)> {
        names.iter().filter_map(|name| Some((name, *self.digests.get(name)?)))
    }
}
