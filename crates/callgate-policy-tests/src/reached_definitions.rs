//! The definitions that policies use: rules files + compiled policies → names with their definitions.

use std::collections::BTreeSet;

use callgate::policy::{CompiledPolicies, Policy};
use callgate::script::DefinitionName;
use callgate::source::{LoadedFile, MappingEntry, YamlNode};

/// The names of the definitions that policies name, directly or through others.
pub fn reached_names(policies: &CompiledPolicies, files: &[LoadedFile]) -> BTreeSet<DefinitionName> {
    let mut reached = BTreeSet::new();
    for (name, _) in policies.policies().iter().flat_map(|policy| &policy.definitions) {
        add_reached(name, policies, files, &mut reached);
    }
    reached
}

/// The definitions with these names, ordered by name. Functions have none of their own.
pub(crate) fn reached_definitions<'f>(
    policies: &CompiledPolicies,
    files: &'f [LoadedFile],
) -> Vec<(DefinitionName, &'f MappingEntry)> {
    reached_names(policies, files).into_iter().filter_map(|name| with_entry(name, files)).collect()
}

fn with_entry(name: DefinitionName, files: &[LoadedFile]) -> Option<(DefinitionName, &MappingEntry)> {
    let entry = definition(files, name.section(), name.name())?;
    Some((name, entry))
}

/// The definitions that one policy names, directly or through others, ordered by name. Functions have none of their own.
pub fn definitions_of_policy<'f>(
    policy: &Policy,
    policies: &CompiledPolicies,
    files: &'f [LoadedFile],
) -> Vec<(DefinitionName, &'f MappingEntry)> {
    let mut reached = BTreeSet::new();
    for (name, _) in &policy.definitions {
        add_reached(name, policies, files, &mut reached);
    }
    reached.into_iter().filter_map(|name| with_entry(name, files)).collect()
}

/// Adds a definition and those that it names.
fn add_reached(
    name: &DefinitionName,
    policies: &CompiledPolicies,
    files: &[LoadedFile],
    reached: &mut BTreeSet<DefinitionName>,
) {
    if !reached.insert(name.clone()) {
        return;
    }
    match name {
        DefinitionName::Let(name) => {
            let value = policies.names().find_let(name).flatten();
            for inner in value.into_iter().flat_map(|value| value.definitions()) {
                add_reached(inner, policies, files, reached);
            }
        }
        DefinitionName::Group(name) => {
            let patterns = definition(files, "groups", name).and_then(|entry| entry.value.items());
            let texts = patterns.unwrap_or_default().iter().filter_map(YamlNode::as_str);
            for group in texts.filter_map(|text| text.strip_prefix('@')) {
                add_reached(&DefinitionName::Group(group.to_owned()), policies, files, reached);
            }
        }
        DefinitionName::Data(_) | DefinitionName::Function(_) => {}
    }
}

/// The definition of a name that counts: one outside `defaults` replaces those under it.
fn definition<'f>(files: &'f [LoadedFile], section: &str, name: &str) -> Option<&'f MappingEntry> {
    let find = |node: Option<&'f YamlNode>| node?.entries()?.iter().find(|entry| entry.key == name);
    let own = files.iter().find_map(|file| find(file.root.get(section)));
    own.or_else(|| files.iter().find_map(|file| find(file.root.get("defaults")?.get(section))))
}
