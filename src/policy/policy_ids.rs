//! Ids of policies: whether they are valid and unique, and which policy a diagnostic is about.

use std::collections::HashMap;

use crate::diagnostic::{
    DUPLICATE_ID, Diagnostic, Diagnostics, EMPTY_VALUE, OUT_OF_RANGE, Span, UNKNOWN_VALUE,
};
use crate::source::YamlNode;

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 128;

/// Reports ids of these policies that are not valid, or used before.
pub(super) fn check<'a>(nodes: impl Iterator<Item = &'a YamlNode>, diagnostics: &mut Diagnostics) {
    let mut first: HashMap<&str, Span> = HashMap::new();
    for node in nodes {
        let Some(id_node) = node.get("id") else { continue };
        let Some(id) = id_node.as_str() else { continue };
        if let Some(span) = first.get(id) {
            diagnostics.push(
                Diagnostic::new(&DUPLICATE_ID, id_node.span, format!("duplicate id `{id}`"))
                    .with_label(*span, "first used here")
                    .with_help("ids are unique in a bundle; rename one of the two policies"),
            );
            continue;
        }
        first.insert(id, id_node.span);
        if id.is_empty() {
            diagnostics.push(
                Diagnostic::new(&EMPTY_VALUE, id_node.span, "`id` is empty")
                    .with_help("write for example `refunds-need-a-person`"),
            );
        } else if id.len() > MAX_ID_BYTES {
            let message = format!("an id has at most {MAX_ID_BYTES} bytes; this one has {}", id.len());
            diagnostics.push(
                Diagnostic::new(&OUT_OF_RANGE, id_node.span, message)
                    .with_help("describe the purpose of the policy in its `description`"),
            );
        } else if id.chars().any(|c| c.is_whitespace() || c.is_control()) {
            let words: Vec<&str> = id
                .split(|c: char| c.is_whitespace() || c.is_control())
                .filter(|word| !word.is_empty())
                .collect();
            diagnostics.push(
                Diagnostic::new(
                    &UNKNOWN_VALUE,
                    id_node.span,
                    "an id must not contain white space or control characters",
                )
                .with_help(format!("write for example `{}`", words.join("-"))),
            );
        }
    }
}

/// Adds the policy's id to each diagnostic whose span lies in that policy.
pub(super) fn attach<'a>(nodes: impl Iterator<Item = &'a YamlNode>, diagnostics: &mut Diagnostics) {
    let policies: Vec<(Span, Option<&str>)> =
        nodes.map(|node| (node.span, node.get("id").and_then(YamlNode::as_str))).collect();
    for diagnostic in diagnostics.since(0) {
        let Some(span) = diagnostic.span else { continue };
        let after = policies
            .partition_point(|(policy, _)| (policy.source, policy.start()) <= (span.source, span.start()));
        let policy = after.checked_sub(1).and_then(|index| policies.get(index));
        if let Some((_, Some(id))) =
            policy.filter(|(policy, _)| policy.source == span.source && span.start() < policy.end())
        {
            diagnostic.policy = Some((*id).to_owned());
        }
    }
}
