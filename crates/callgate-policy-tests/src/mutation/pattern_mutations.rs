//! Mutations of name patterns and regular expressions, which then match more, or less.

use super::mutant::item_removal;
use super::mutant_collector::MutantCollector;
use super::{ANCHOR, ITEM_REMOVED, Mutation, PATTERN};
use callgate::source::{YamlNode, exact_span_in};

/// Mutates the patterns of `match`.
pub(super) fn mutate_matcher(matcher: &YamlNode, collector: &mut MutantCollector<'_>) {
    if matcher.entries().is_none() {
        return mutate_patterns(matcher, collector);
    }
    ["tool", "server"]
        .into_iter()
        .filter_map(|key| matcher.get(key))
        .for_each(|node| mutate_patterns(node, collector));
}

/// Mutates one pattern or a list: replaces all by `*`, removes one, and removes the anchors or stars of each.
fn mutate_patterns(node: &YamlNode, collector: &mut MutantCollector<'_>) {
    let patterns = node.items().unwrap_or(std::slice::from_ref(node));
    // Other patterns make no difference beside a star.
    if patterns.iter().any(|pattern| pattern.as_str() == Some("*")) {
        return;
    }
    let id = collector.policy.clone().unwrap_or_default();
    collector.replace(
        PATTERN,
        node.span,
        "\"*\"",
        format!("a case with a call of another name, to which `{id}` does not apply"),
    );
    mutate_each(patterns, collector);
}

/// Mutates the patterns of a group: removes one, and the anchors or stars of each.
pub(super) fn mutate_each(patterns: &[YamlNode], collector: &mut MutantCollector<'_>) {
    for (index, pattern) in patterns.iter().enumerate() {
        if let Some(edit) = item_removal(collector.file_text(pattern.span), patterns, index) {
            let written = collector.span_text(pattern.span).to_owned();
            collector.remove(
                ITEM_REMOVED,
                pattern.span,
                edit,
                format!("a case with a call whose name matches only `{written}`"),
            );
        }
        let Some(text) = pattern.as_str() else { continue };
        if text.starts_with('/') {
            remove_anchors(pattern, ANCHOR, collector);
        } else {
            remove_stars(pattern, text, collector);
        }
    }
}

/// Removes each star of a glob.
fn remove_stars(pattern: &YamlNode, text: &str, collector: &mut MutantCollector<'_>) {
    for (at, _) in text.match_indices('*') {
        if let Some(span) = exact_span_in(collector.sources, pattern, at..at + 1) {
            collector.replace(
                PATTERN,
                span,
                "",
                format!("a case with a call whose name matches `{text}` and is longer"),
            );
        }
    }
}

/// Removes the anchor at the start, or at the end, of a regular expression.
pub(super) fn remove_anchors(node: &YamlNode, mutation: Mutation, collector: &mut MutantCollector<'_>) {
    let Some(text) = node.as_str() else { return };
    let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let (regex, before) = inner.map_or((text, 0), |inner| (inner, 1));
    let flags = regex
        .strip_prefix("(?")
        .and_then(|rest| rest.split_once(')'))
        .filter(|(flags, _)| flags.chars().all(char::is_alphabetic));
    let start = before + flags.map_or(0, |(flags, _)| flags.len() + 3);
    let first = text.get(start..).is_some_and(|rest| rest.starts_with('^')).then_some((start, "before"));
    let last = (regex.ends_with('$') && !regex.ends_with("\\$")).then(|| (before + regex.len() - 1, "after"));
    for (at, side) in [first, last].into_iter().flatten() {
        if let Some(span) = exact_span_in(collector.sources, node, at..at + 1) {
            let case =
                format!("a case with a string that matches except for extra characters {side} the match");
            collector.replace(mutation, span, "", case);
        }
    }
}
