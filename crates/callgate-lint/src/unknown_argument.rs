//! Lint: paths to arguments that no tool has.

use crate::argument_lookup::{ArgumentLookup, PathLookup, first_name};
use crate::expression_source::{condition_expressions, paths_read};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::diagnostic::{Diagnostic, Diagnostics, Span, UNKNOWN_ARGUMENT, closest_match};
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
            let Some((path, names)) = node.as_str().and_then(|text| unknown(&arguments, written, text))
            else {
                continue;
            };
            let step = last_step(&path);
            let at = path.text().rfind(step).unwrap_or(0);
            let span = span_in(checked.sources, node, at..at + step.len());
            found.push(diagnostic(written, &path, &names, span));
        }
        let conditions = written.node.get("match").and_then(|matcher| matcher.get("where"));
        for source in conditions.map(condition_expressions).unwrap_or_default() {
            for (at, text) in paths_read(source.text) {
                let Some((path, names)) = unknown(&arguments, written, &text) else { continue };
                let step = last_step(&path);
                // In an expression, no `$.` stands before the path.
                let at = source.start + at + text.rfind(step).unwrap_or(2).saturating_sub(2);
                let span = span_in(checked.sources, source.node, at..at + step.len());
                found.push(diagnostic(written, &path, &names, span));
            }
        }
    }
}

/// Returns a path that no tool of the policy has, with the names that exist in place of its last step.
fn unknown<'t>(
    arguments: &ArgumentLookup<'_, 't>,
    written: &PolicySource<'t>,
    text: &str,
) -> Option<(Path, Vec<&'t str>)> {
    let path = Path::parse(text).ok()?;
    match arguments.find(written, &path) {
        PathLookup::Absent(names) => Some((path, names)),
        PathLookup::Found(_) | PathLookup::Unknown => None,
    }
}

/// The name that is probably wrong.
fn last_step(path: &Path) -> &str {
    match path.steps().and_then(<[PathStep]>::last) {
        Some(PathStep::Name(name)) => name.as_str(),
        _ => first_name(path.text()).unwrap_or_default(),
    }
}

fn diagnostic(written: &PolicySource<'_>, path: &Path, names: &[&str], span: Span) -> Diagnostic {
    let help = match closest_match(last_step(path), names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "its parent is not an object".to_owned(),
        None => {
            let mut names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.sort();
            names.dedup();
            format!("the arguments are {}", names.join(", "))
        }
    };
    let message = format!("no tool that this policy applies to has `{}`", path.text());
    written.diagnostic(&UNKNOWN_ARGUMENT, span, message).with_help(help)
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
