//! Lint: policies that do the same for the same calls.

use std::collections::HashMap;

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use callgate::diagnostic::{DUPLICATE_POLICY, Diagnostics, Fix, Span};
use callgate::json;
use callgate::source::{YamlNode, YamlValue};

pub(super) static LINT: Lint = Lint { code: &DUPLICATE_POLICY, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let mut first: HashMap<String, &PolicySource<'_>> = HashMap::new();
    for written in checked.enforced_policies() {
        let Some(earlier) = first.get(&behaviour(written)) else {
            first.insert(behaviour(written), written);
            continue;
        };
        let message = format!("`{}` does the same as `{}` for the same calls", written.id(), earlier.id());
        let fix = is_safe_to_remove(written).then(|| removal_fix(checked, written)).flatten();
        found.push(
            written
                .diagnostic(&DUPLICATE_POLICY, written.id_span(), message)
                .with_label(earlier.id_span(), "the other policy")
                .with_help("remove one of the two, or make the change that was missed after copying")
                .with_fix(fix),
        );
    }
}

/// Whether two policies are the same except for their ids and descriptions.
pub(super) fn are_duplicates(a: &PolicySource<'_>, b: &PolicySource<'_>) -> bool {
    behaviour(a) == behaviour(b)
}

fn behaviour(written: &PolicySource<'_>) -> String {
    let matcher = written.node.get("match").map(YamlNode::to_json);
    json::canonical_text(&callgate::json::json!([matcher, written.kind.key, written.kind.value.to_json()]))
}

/// Whether removing the second of two equal policies changes nothing: neither a call's outcome nor how it is counted or recorded.
/// Other policies may be evaluated between the two.
fn is_safe_to_remove(written: &PolicySource<'_>) -> bool {
    written.has_kind(&["deny", "halt", "require", "allow", "validate", "label"])
        && written.node.get("description").is_none()
}

/// Returns a fix that removes the lines of a policy. Returns `None` if something else is on them.
fn removal_fix(checked: &LintContext<'_>, written: &PolicySource<'_>) -> Option<Fix> {
    let span = written.node.span;
    let text = checked.text(span.source);
    let line = text.get(..span.start())?.rfind('\n').map_or(0, |at| at + 1);
    let marker = text.get(line..span.start())?.trim();
    let last = end_of_node(text, written.node)?;
    let end = text.get(last..)?.find('\n').map_or(text.len(), |at| last + at + 1);
    let alone = marker == "-" && text.get(last..end)?.trim().is_empty();
    alone.then(|| Fix::replace(format!("remove `{}`", written.id()), Span::new(span.source, line, end), ""))
}

/// Returns the end of a node's last token. Returns `None` if it can't be determined.
fn end_of_node(text: &str, node: &YamlNode) -> Option<usize> {
    // Spans of flow collections and aliases are exact; a block collection ends with its last item.
    if text.get(node.span.start()..)?.starts_with(['{', '[', '*']) {
        return Some(node.span.end());
    }
    match &node.value {
        YamlValue::Mapping(entries) => end_of_node(text, &entries.last()?.value),
        YamlValue::Sequence(items) => end_of_node(text, items.last()?),
        _ => Some(node.span.end()),
    }
}
