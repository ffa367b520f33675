//! Generates mutants: bundle → [`Mutant`]s.

use std::collections::BTreeSet;

use super::mutant::Mutant;
use super::mutant_collector::MutantCollector;
use super::{
    DEFAULT, EXPRESSION, POLICY_REMOVED, SHADOW_ENFORCED, condition_mutations, expression_mutations,
    kind_mutations, pattern_mutations,
};
use crate::reached_definitions::reached_definitions;
use callgate::diagnostic::{Edit, Span};
use callgate::middleware::KINDS;
use callgate::policy::LoadedBundle;
use callgate::script::DefinitionName;
use callgate::source::{MappingEntry, YamlNode};

/// All changes, ordered by file and position. `only`: limits them to policies and definitions whose name, or whose file's name, contains this
/// text.
pub(super) fn generate_mutants(built: &LoadedBundle, only: Option<&str>) -> Vec<Mutant> {
    let only = only.map(str::to_lowercase);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.to_lowercase().contains(only));
    let mut found = Vec::new();
    let policies = built.policies.as_ref();
    let definitions =
        policies.map(|policies| reached_definitions(policies, &built.files)).unwrap_or_default();
    for file in &built.files {
        let Some(source) = built.sources.get(file.source) else { continue };
        let mut collector = MutantCollector::new(&built.sources);
        let whole_file = wanted(source.name());
        if whole_file {
            mutate_defaults(&file.root, &mut collector);
        }
        for policy in file.root.get("policies").and_then(YamlNode::items).unwrap_or_default() {
            let id = policy.get("id").and_then(YamlNode::as_str).unwrap_or_default();
            if whole_file || wanted(id) {
                collector.policy = Some(id.to_owned());
                collector.owner_span = Some(policy.span);
                mutate_policy(policy, &mut collector);
            }
        }
        collector.policy = None;
        for (name, entry) in definitions.iter().filter(|(_, entry)| entry.key_span.source == file.source) {
            if whole_file || wanted(name.name()) {
                collector.definition = Some(format!("{} {}", name.section(), name.name()));
                collector.owner_span = Some(entry.key_span);
                mutate_definition(name, entry, &mut collector);
            }
        }
        if let Some(functions) = file.root.get("functions").filter(|_| whole_file) {
            collector.definition = Some("functions".to_owned());
            collector.owner_span = Some(functions.span);
            expression_mutations::mutate_operators(functions, EXPRESSION, &mut collector);
        }
        found.append(&mut collector.mutants);
    }
    // The node of an anchor is visited at each of its aliases.
    let mut known = BTreeSet::new();
    found.retain(|change| known.insert(edits_key(change)));
    found.sort_by_key(|change| change.span);
    found
}

fn edits_key(change: &Mutant) -> Vec<(Span, String)> {
    change.fix.edits.iter().map(|edit| (edit.span, edit.replacement.clone())).collect()
}

fn mutate_defaults(root: &YamlNode, collector: &mut MutantCollector<'_>) {
    let Some(defaults) = root.get("defaults") else { return };
    for (name, words, case) in [
        (
            "unmatched",
            &["allow", "deny"][..],
            "a case with a call that no `allow`, `approval` or `respond` matches",
        ),
        (
            "absent",
            &["match", "no_match"],
            "a case with a call that lacks a field which a restricting policy tests",
        ),
    ] {
        let Some(node) = defaults.get(name) else { continue };
        let others = words.iter().filter(|word| Some(**word) != node.as_str());
        others.for_each(|word| collector.replace(DEFAULT, node.span, *word, case));
    }
}

/// Mutates a definition that policies use. Constants are left alone.
fn mutate_definition(name: &DefinitionName, entry: &MappingEntry, collector: &mut MutantCollector<'_>) {
    match name {
        DefinitionName::Let(_) => match entry.value.items() {
            Some(items) if items.len() > 1 => {
                condition_mutations::mutate_conditions(&entry.value, true, collector);
            }
            Some(items) => {
                items.iter().for_each(|item| condition_mutations::mutate_condition(item, collector))
            }
            None => condition_mutations::mutate_condition(&entry.value, collector),
        },
        DefinitionName::Group(_) => {
            pattern_mutations::mutate_each(entry.value.items().unwrap_or_default(), collector);
        }
        DefinitionName::Data(_) | DefinitionName::Function(_) => {}
    }
}

fn mutate_policy(policy: &YamlNode, collector: &mut MutantCollector<'_>) {
    let mode = policy.get("mode");
    let word = mode.and_then(YamlNode::as_str);
    if word == Some("off") {
        return;
    }
    remove_policy(policy, collector);
    if let (Some(mode), Some("shadow")) = (mode, word) {
        let case = "a case whose call the policy would change or stop, with its outcome in shadow mode";
        collector.replace(SHADOW_ENFORCED, mode.span, "enforce", case);
    }
    if let Some(matcher) = policy.get("match") {
        pattern_mutations::mutate_matcher(matcher, collector);
        if let Some(conditions) = matcher.get("where") {
            condition_mutations::mutate_conditions(conditions, true, collector);
        }
    }
    // The effects of a policy in shadow mode are not visible.
    if word != Some("shadow") {
        let entries = policy.entries().unwrap_or_default().iter();
        let kinds = entries.filter(|entry| KINDS.iter().any(|kind| kind.name == entry.key));
        kinds.for_each(|entry| kind_mutations::mutate_kind(entry, collector));
    }
}

/// Removes a policy by `mode: off`, which has the same effect and leaves the rest of the file unchanged.
fn remove_policy(policy: &YamlNode, collector: &mut MutantCollector<'_>) {
    let Some(first) = policy.entries().and_then(<[_]>::first) else { return };
    let edit = match policy.get("mode") {
        Some(mode) => Edit { span: mode.span, replacement: "off".to_owned() },
        None => {
            let at = first.key_span.start();
            let flow = collector.span_text(policy.span).starts_with('{');
            let column = collector.sources.get(policy.span.source).map_or(1, |source| source.position(at).1);
            let between = if flow { ", ".to_owned() } else { format!("\n{}", " ".repeat(column - 1)) };
            Edit { span: Span::new(policy.span.source, at, at), replacement: format!("mode: off{between}") }
        }
    };
    let case =
        format!("a case that expects the effect of `{}`", collector.policy.as_deref().unwrap_or_default());
    collector.remove(POLICY_REMOVED, policy.span, edit, case);
}
