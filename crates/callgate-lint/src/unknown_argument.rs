//! Lint: paths to arguments that no tool has.

use crate::argument_lookup::{ArgumentLookup, PathLookup, first_name};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, UNKNOWN_ARGUMENT, closest_match};
use callgate::path::{Path, PathStep};
use callgate::source::{YamlNode, YamlValue, span_in};

pub(super) static LINT: Lint = Lint { code: &UNKNOWN_ARGUMENT, needs: RequiredInput::Tools, check };

/// The keys that have paths as values.
const PATH_KEYS: [&str; 6] = ["path", "key", "cost", "fields", "edits", "value"];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let arguments = ArgumentLookup::new(checked);
    for written in &checked.policies {
        let mut path_nodes = Vec::new();
        collect_paths(written.node, false, &mut path_nodes);
        for node in path_nodes {
            let Some(path) = node.as_str().and_then(|text| Path::parse(text).ok()) else { continue };
            let PathLookup::Absent(names) = arguments.find(written, &path) else { continue };
            let step = match path.steps().and_then(<[PathStep]>::last) {
                Some(PathStep::Name(name)) => name.as_str(),
                _ => first_name(path.text()).unwrap_or_default(),
            };
            let help = match closest_match(step, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "its parent is not an object".to_owned(),
                None => {
                    let mut names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    names.sort();
                    names.dedup();
                    format!("the arguments are {}", names.join(", "))
                }
            };
            let at = path.text().rfind(step).unwrap_or(0);
            let span = span_in(checked.sources, node, at..at + step.len());
            let message = format!("no tool that this policy applies to has `{}`", path.text());
            found.push(written.diagnostic(&UNKNOWN_ARGUMENT, span, message).with_help(help));
        }
    }
}

/// Collects the strings under a node that are paths into the arguments. `here` is whether the node itself may be one.
fn collect_paths<'a>(node: &'a YamlNode, here: bool, path_nodes: &mut Vec<&'a YamlNode>) {
    match &node.value {
        YamlValue::String(text) if here && text.text.starts_with("$.input") => path_nodes.push(node),
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect_paths(item, here, path_nodes)),
        YamlValue::Mapping(entries) => {
            // These steps of `transform` create arguments.
            let makes = ["default", "set", "template"].iter().any(|key| node.get(key).is_some());
            for entry in entries.iter().filter(|entry| !(makes && entry.key == "path")) {
                // Schemas and fixed results contain no paths.
                if !["schema", "output"].contains(&entry.key.as_str()) || entry.value.items().is_some() {
                    collect_paths(&entry.value, PATH_KEYS.contains(&entry.key.as_str()), path_nodes);
                }
            }
        }
        _ => {}
    }
}
