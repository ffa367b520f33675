//! Lint: patterns that match none of the known tools.

use std::collections::{HashMap, HashSet};

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::scalars::{replaceable_span, replacement_source};
use callgate::diagnostic::{Diagnostics, Fix, UNKNOWN_TOOL, closest_match};
use callgate::matcher::NamePattern;

pub(super) static LINT: Lint = Lint { code: &UNKNOWN_TOOL, needs: RequiredInput::Tools, check };

/// Maximum number of unknown names with a suggestion. If more are unknown, the list of tools is probably wrong.
const MAX_SUGGESTIONS: usize = 50;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let names: Vec<&str> = checked.tools.iter().map(|tool| tool.name.as_str()).collect();
    // For each unknown pattern, the name that was probably meant.
    let mut unknown: HashMap<&str, Option<&str>> = HashMap::new();
    let sections = checked.files.iter().filter_map(|file| file.root.get("groups")?.entries());
    let own_groups: HashSet<&str> = sections.flatten().map(|entry| entry.key.as_str()).collect();
    for written in &checked.policies {
        for (pattern, node) in written.tool_patterns() {
            let written_text = node.as_str().unwrap_or_default();
            let group = Some(written_text).filter(|text| text.starts_with('@'));
            let text = if group.is_some() { pattern.text() } else { written_text };
            // A default lists tools that a host may not have.
            if group.is_some_and(|group| !own_groups.contains(group.trim_start_matches('@'))) {
                continue;
            }
            // A pattern of a group is reported where the group is first used.
            if matches!(pattern, NamePattern::Nothing) || group.is_some() && unknown.contains_key(text) {
                continue;
            }
            if !checked.matching_tools(pattern).is_empty() {
                continue;
            }
            let compared = unknown.len() < MAX_SUGGESTIONS && matches!(pattern, NamePattern::Exact(_));
            let near = *unknown
                .entry(text)
                .or_insert_with(|| closest_match(text, names.iter().copied().filter(|_| compared)));
            let message = match pattern {
                NamePattern::Exact(name) => format!("unknown tool `{name}`"),
                _ => format!("no tool matches `{text}`"),
            };
            let message = match group {
                Some(group) => format!("{message} of the group `{group}`"),
                None => message,
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the policy never applies to it; name a known tool, or remove the pattern".to_owned(),
            };
            let same_letters = near.filter(|near| group.is_none() && near.eq_ignore_ascii_case(text));
            let fix = same_letters.and_then(|near| {
                let span = replaceable_span(checked.sources, node)?;
                Some(Fix::replace(format!("write `{near}`"), span, replacement_source(node, near)))
            });
            found.push(written.diagnostic(&UNKNOWN_TOOL, node.span, message).with_help(help).with_fix(fix));
        }
    }
}
