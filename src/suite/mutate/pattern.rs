//! Changes of name patterns and regular expressions: what fits more, or less.

use super::change::without_item;
use super::find::Finder;
use super::{ANCHOR, ITEM_REMOVED, Mutation, PATTERN};
use crate::source::{Node, exact_place};

/// The patterns of `match`.
pub(super) fn of_matcher(matcher: &Node, finder: &mut Finder<'_>) {
    if matcher.entries().is_none() {
        return of_patterns(matcher, finder);
    }
    ["tool", "server"]
        .into_iter()
        .filter_map(|key| matcher.get(key))
        .for_each(|node| of_patterns(node, finder));
}

/// One pattern or a list of them: all are exchanged for every name, one is left out, each loses what makes it fit less or
/// more.
fn of_patterns(node: &Node, finder: &mut Finder<'_>) {
    let patterns = node.items().unwrap_or(std::slice::from_ref(node));
    if patterns.iter().any(|pattern| pattern.as_str() == Some("*")) {
        return;
    }
    let id = finder.policy.clone().unwrap_or_default();
    finder.replace(
        PATTERN,
        node.span,
        "\"*\"",
        format!("a case with a call of another name, which `{id}` leaves alone"),
    );
    for (index, pattern) in patterns.iter().enumerate() {
        if let Some(edit) = without_item(finder.file(pattern.span), patterns, index) {
            let written = finder.text(pattern.span).to_owned();
            finder.leave_out(
                ITEM_REMOVED,
                pattern.span,
                edit,
                format!("a case with a call whose name fits `{written}` only"),
            );
        }
        let Some(text) = pattern.as_str() else { continue };
        if text.starts_with('/') {
            of_anchors(pattern, ANCHOR, finder);
        } else {
            of_stars(pattern, text, finder);
        }
    }
}

/// A glob loses each of its stars.
fn of_stars(pattern: &Node, text: &str, finder: &mut Finder<'_>) {
    for (at, _) in text.match_indices('*') {
        if let Some(place) = exact_place(finder.sources, pattern, at..at + 1) {
            finder.replace(
                PATTERN,
                place,
                "",
                format!("a case with a call whose name fits `{text}` and is longer"),
            );
        }
    }
}

/// A regular expression loses the anchor at its start, or at its end.
pub(super) fn of_anchors(node: &Node, mutation: Mutation, finder: &mut Finder<'_>) {
    let Some(text) = node.as_str() else { return };
    let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let (regex, before) = inner.map_or((text, 0), |inner| (inner, 1));
    let flags = regex
        .strip_prefix("(?")
        .and_then(|rest| rest.split_once(')'))
        .filter(|(flags, _)| flags.chars().all(char::is_alphabetic));
    let start = before + flags.map_or(0, |(flags, _)| flags.len() + 3);
    let first = text.get(start..).is_some_and(|rest| rest.starts_with('^')).then_some((start, "before"));
    let last =
        (regex.ends_with('$') && !regex.ends_with("\\$")).then(|| (before + regex.len() - 1, "behind"));
    for (at, side) in [first, last].into_iter().flatten() {
        if let Some(place) = exact_place(finder.sources, node, at..at + 1) {
            let case = format!("a case with a text that fits but for something more {side} it");
            finder.replace(mutation, place, "", case);
        }
    }
}
