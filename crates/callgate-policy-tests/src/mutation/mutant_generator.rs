//! Generates mutants: bundle → [`Mutant`]s.

use std::collections::BTreeSet;

use super::mutant::Mutant;
use super::{
    DEFAULT, Mutation, POLICY_REMOVED, SHADOW_ENFORCED, condition_mutations, kind_mutations,
    pattern_mutations,
};
use callgate::diagnostic::{Edit, Fix, SourceMap, Span};
use callgate::middleware::KINDS;
use callgate::policy::LoadedBundle;
use callgate::source::YamlNode;

/// All changes, ordered by file and position. `only`: limits them to policies whose id, or whose file's name, contains this
/// text.
pub(super) fn generate_mutants(built: &LoadedBundle, only: Option<&str>) -> Vec<Mutant> {
    let only = only.map(str::to_lowercase);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.to_lowercase().contains(only));
    let mut found = Vec::new();
    for file in &built.files {
        let Some(source) = built.sources.get(file.source) else { continue };
        let mut finder =
            MutantGenerator { sources: &built.sources, policy: None, policy_span: None, mutants: Vec::new() };
        let whole_file = wanted(source.name());
        if whole_file {
            mutate_defaults(&file.root, &mut finder);
        }
        for policy in file.root.get("policies").and_then(YamlNode::items).unwrap_or_default() {
            let id = policy.get("id").and_then(YamlNode::as_str).unwrap_or_default();
            if whole_file || wanted(id) {
                finder.policy = Some(id.to_owned());
                finder.policy_span = Some(policy.span);
                mutate_policy(policy, &mut finder);
            }
        }
        found.append(&mut finder.mutants);
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

fn mutate_defaults(root: &YamlNode, finder: &mut MutantGenerator<'_>) {
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
        others.for_each(|word| finder.replace(DEFAULT, node.span, *word, case));
    }
}

fn mutate_policy(policy: &YamlNode, finder: &mut MutantGenerator<'_>) {
    let mode = policy.get("mode");
    let word = mode.and_then(YamlNode::as_str);
    if word == Some("off") {
        return;
    }
    remove_policy(policy, finder);
    if let (Some(mode), Some("shadow")) = (mode, word) {
        let case = "a case whose call the policy would change or stop, with its outcome in shadow mode";
        finder.replace(SHADOW_ENFORCED, mode.span, "enforce", case);
    }
    if let Some(matcher) = policy.get("match") {
        pattern_mutations::mutate_matcher(matcher, finder);
        if let Some(conditions) = matcher.get("where") {
            condition_mutations::mutate_conditions(conditions, true, finder);
        }
    }
    // The effects of a policy in shadow mode are not visible.
    if word != Some("shadow") {
        let entries = policy.entries().unwrap_or_default().iter();
        let kinds = entries.filter(|entry| KINDS.iter().any(|kind| kind.name == entry.key));
        kinds.for_each(|entry| kind_mutations::mutate_kind(entry, finder));
    }
}

/// Removes a policy by `mode: off`, which has the same effect and leaves the rest of the file unchanged.
fn remove_policy(policy: &YamlNode, finder: &mut MutantGenerator<'_>) {
    let Some(first) = policy.entries().and_then(<[_]>::first) else { return };
    let edit = match policy.get("mode") {
        Some(mode) => Edit { span: mode.span, replacement: "off".to_owned() },
        None => {
            let at = first.key_span.start;
            let flow = finder.span_text(policy.span).starts_with('{');
            let column = finder.sources.get(policy.span.source).map_or(1, |source| source.position(at).1);
            let between = if flow { ", ".to_owned() } else { format!("\n{}", " ".repeat(column - 1)) };
            Edit {
                span: Span { start: at, end: at, ..policy.span },
                replacement: format!("mode: off{between}"),
            }
        }
    };
    let case =
        format!("a case that expects the effect of `{}`", finder.policy.as_deref().unwrap_or_default());
    finder.remove(POLICY_REMOVED, policy.span, edit, case);
}

/// The collector of changes.
pub(super) struct MutantGenerator<'a> {
    pub(super) sources: &'a SourceMap,
    pub(super) policy: Option<String>,
    pub(super) policy_span: Option<Span>,
    mutants: Vec<Mutant>,
}

impl MutantGenerator<'_> {
    /// The text of a span.
    pub(super) fn span_text(&self, span: Span) -> &str {
        self.sources
            .get(span.source)
            .and_then(|source| source.text().get(span.start..span.end))
            .unwrap_or_default()
    }

    /// The whole text of the file that contains a span.
    pub(super) fn file_text(&self, span: Span) -> &str {
        self.sources.get(span.source).map_or("", |source| source.text())
    }

    /// Adds a change that replaces the text of a span.
    pub(super) fn replace(
        &mut self,
        mutation: Mutation,
        span: Span,
        text: impl Into<String>,
        noticed_by: impl Into<String>,
    ) {
        let edits = vec![Edit { span, replacement: text.into() }];
        self.edit(mutation, span, edits, noticed_by);
    }

    /// Adds a change of several edits in one line.
    pub(super) fn edit(
        &mut self,
        mutation: Mutation,
        span: Span,
        edits: Vec<Edit>,
        noticed_by: impl Into<String>,
    ) {
        self.add(mutation, span, edits, false, noticed_by.into());
    }

    /// Adds a change that removes text, for which the edit itself need not be displayed.
    pub(super) fn remove(
        &mut self,
        mutation: Mutation,
        span: Span,
        edit: Edit,
        noticed_by: impl Into<String>,
    ) {
        let across_lines = edit.replacement.is_empty() && self.span_text(edit.span).contains('\n');
        let is_removal = across_lines || mutation == POLICY_REMOVED;
        self.add(mutation, span, vec![edit], is_removal, noticed_by.into());
    }

    fn add(
        &mut self,
        mutation: Mutation,
        span: Span,
        edits: Vec<Edit>,
        is_removal: bool,
        noticed_by: String,
    ) {
        self.mutants.push(Mutant {
            mutation,
            policy: self.policy.clone(),
            policy_span: self.policy_span,
            span,
            fix: Fix { title: mutation.doc.to_owned(), edits },
            is_removal,
            noticed_by,
        });
    }
}
