//! Policies that do the same for the same calls.

use std::collections::HashMap;

use super::checked::Checked;
use super::written::Written;
use super::{Lint, Needs};
use crate::diagnostic::{DUPLICATE_POLICY, Diagnostics, Fix, Span};
use crate::json;
use crate::source::{Node, NodeValue};

pub(super) static LINT: Lint = Lint { code: &DUPLICATE_POLICY, needs: Needs::Nothing, check };

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    let mut first: HashMap<String, &Written<'_>> = HashMap::new();
    for written in checked.acting() {
        let Some(earlier) = first.get(&behaviour(written)) else {
            first.insert(behaviour(written), written);
            continue;
        };
        let message = format!("`{}` does what `{}` does, for the same calls", written.id(), earlier.id());
        let fix = idempotent(written).then(|| removal(checked, written)).flatten();
        found.push(
            written
                .tells(&DUPLICATE_POLICY, written.id_span(), message)
                .label(earlier.id_span(), "the other one")
                .help("take one of the two away, or change what was forgotten after copying")
                .fix(fix),
        );
    }
}

/// Whether two policies are the same but for their names and what they are for.
pub(super) fn is_same(a: &Written<'_>, b: &Written<'_>) -> bool {
    behaviour(a) == behaviour(b)
}

fn behaviour(written: &Written<'_>) -> String {
    let matcher = written.node.get("match").map(Node::to_json);
    json::canonical(&crate::json::json!([matcher, written.kind.key, written.kind.value.to_json()]))
}

/// Whether the second of two changes nothing: neither what becomes of a call nor how it is counted or recorded. Where the
/// two stand apart in order, others may act between them.
fn idempotent(written: &Written<'_>) -> bool {
    written.is(&["deny", "halt", "allow", "validate", "label"]) && written.node.get("description").is_none()
}

/// Takes the lines of a policy out of its file, where no other stands on them.
fn removal(checked: &Checked<'_>, written: &Written<'_>) -> Option<Fix> {
    let span = written.node.span;
    let text = checked.text(span.source);
    let line = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let marker = text.get(line..span.start)?.trim();
    let last = last_end(text, written.node)?;
    let end = text.get(last..)?.find('\n').map_or(text.len(), |at| last + at + 1);
    let alone = marker == "-" && text.get(last..end)?.trim().is_empty();
    alone.then(|| Fix::replace(format!("remove `{}`", written.id()), Span::new(span.source, line, end), ""))
}

/// Where the last word of a node ends; nothing where that can't be told.
fn last_end(text: &str, node: &Node) -> Option<usize> {
    // The ends of flow collections and of aliases are written; a block one ends where its last item does.
    if text.get(node.span.start..)?.starts_with(['{', '[', '*']) {
        return Some(node.span.end);
    }
    match &node.value {
        NodeValue::Mapping(entries) => last_end(text, &entries.last()?.value),
        NodeValue::Sequence(items) => last_end(text, items.last()?),
        _ => Some(node.span.end),
    }
}
