//! `groups`: names for lists of tool patterns.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{DefinitionReader, shapes};
use crate::diagnostic::{CYCLIC_DEFINITION, Diagnostic, OUT_OF_RANGE};
use crate::json;
use crate::matcher::{NamePattern, PatternList};
use crate::rules_schema::PolicyReader;
use crate::script::{DefinitionName, Names};
use crate::source::{MappingEntry, YamlNode};

/// The maximum number of groups.
const MAX_GROUPS: usize = 1_000;
/// The maximum number of patterns in a group, those of the groups that it contains included.
const MAX_PATTERNS: usize = 1_000;

/// Reads all groups, those that other groups contain first.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &mut Names) {
    let groups = reader.section(&shapes::GROUPS);
    if let Some(entry) = groups.values().nth(MAX_GROUPS) {
        let message = format!("a bundle has at most {MAX_GROUPS} groups");
        reader.diagnostics.push(
            Diagnostic::new(&OUT_OF_RANGE, entry.key_span, message)
                .with_help("remove groups that no policy uses"),
        );
        return;
    }
    let mut open = Vec::new();
    for name in groups.keys() {
        add_group(name, &groups, &mut open, reader, names);
    }
}

/// Adds a group after the groups that it contains. `open` has the groups that contain it.
fn add_group<'g>(
    name: &'g str,
    groups: &BTreeMap<&'g str, &'g MappingEntry>,
    open: &mut Vec<&'g str>,
    reader: &mut DefinitionReader<'_>,
    names: &mut Names,
) {
    let Some(entry) = groups.get(name) else { return };
    if names.group(name).is_some() {
        return;
    }
    if let Some(start) = open.iter().position(|known| *known == name) {
        let circle: Vec<String> =
            open.iter().skip(start).chain([&name]).map(|name| format!("`@{name}`")).collect();
        let message = format!("groups contain each other in a circle: {}", circle.join(" → "));
        reader.diagnostics.push(
            Diagnostic::new(&CYCLIC_DEFINITION, entry.key_span, message)
                .with_help("list the tools themselves in one of these groups"),
        );
        names.add_group(name, Vec::new());
        return;
    }
    open.push(name);
    let items = entry.value.items().unwrap_or(std::slice::from_ref(&entry.value));
    let inner = items.iter().filter_map(group_name);
    for inner in inner {
        add_group(inner, groups, open, reader, names);
    }
    open.pop();
    if names.group(name).is_some() {
        return;
    }
    let size = |item: &YamlNode| group_name(item).and_then(|name| names.group(name)).map_or(1, <[_]>::len);
    let total: usize = items.iter().map(size).sum();
    if total > MAX_PATTERNS {
        let message = format!("a group has at most {MAX_PATTERNS} patterns, with those of the groups in it");
        reader.diagnostics.push(
            Diagnostic::new(&OUT_OF_RANGE, entry.key_span, message)
                .with_help("use globs such as `get_*`, and name each group once"),
        );
        names.add_group(name, Vec::new());
        return;
    }
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    let known = Arc::new(std::mem::take(names));
    policy_reader.names = Arc::clone(&known);
    let mut patterns = PatternList::read(&entry.value, &mut policy_reader).patterns;
    drop(policy_reader);
    *names = Arc::unwrap_or_clone(known);
    patterns.retain(|pattern| !matches!(pattern, NamePattern::Nothing));
    let texts: Vec<String> = patterns.iter().map(|pattern| format!("{pattern:?}")).collect();
    names.add_digest(DefinitionName::Group(name.to_owned()), json::digest(&json::json!(texts)));
    names.add_group(name, patterns);
}

fn group_name(node: &YamlNode) -> Option<&str> {
    node.as_str()?.strip_prefix('@')
}
