//! `groups`: names for lists of tool patterns.

use std::collections::BTreeMap;

use super::{DefinitionReader, shapes};
use crate::diagnostic::{CYCLIC_DEFINITION, Diagnostic};
use crate::json;
use crate::matcher::{NamePattern, PatternList};
use crate::rules_schema::PolicyReader;
use crate::script::{DefinitionName, Names};
use crate::source::{MappingEntry, YamlNode};

/// Reads all groups, those that other groups contain first.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &mut Names) {
    let groups = reader.section(&shapes::GROUPS);
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
    let inner = entry.value.items().unwrap_or_default().iter().filter_map(group_name);
    for inner in inner {
        add_group(inner, groups, open, reader, names);
    }
    open.pop();
    if names.group(name).is_some() {
        return;
    }
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    policy_reader.names = std::sync::Arc::new(names.clone());
    let mut patterns = PatternList::read(&entry.value, &mut policy_reader).patterns;
    patterns.retain(|pattern| !matches!(pattern, NamePattern::Nothing));
    let texts: Vec<String> = patterns.iter().map(|pattern| format!("{pattern:?}")).collect();
    names.add_digest(DefinitionName::Group(name.to_owned()), json::digest(&json::json!(texts)));
    names.add_group(name, patterns);
}

fn group_name(node: &YamlNode) -> Option<&str> {
    node.as_str()?.strip_prefix('@')
}
