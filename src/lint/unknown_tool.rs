//! Patterns that fit none of the known tools.

use std::collections::HashMap;

use super::checked::Checked;
use super::scalars::{in_place_of, replaceable};
use super::{Lint, Needs};
use crate::diagnostic::{Diagnostics, Fix, UNKNOWN_TOOL, nearest};
use crate::matcher::NamePattern;

pub(super) static LINT: Lint = Lint { code: &UNKNOWN_TOOL, needs: Needs::Tools, check };

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    let names: Vec<&str> = checked.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut known: HashMap<String, bool> = HashMap::new();
    for written in &checked.policies {
        for (pattern, node) in written.policy.matcher.tools.iter().zip(written.tool_nodes()) {
            let text = node.as_str().unwrap_or_default();
            let fits = known
                .entry(text.to_owned())
                .or_insert_with(|| names.iter().any(|name| pattern.matches(name)));
            if *fits {
                continue;
            }
            let (message, near) = match pattern {
                NamePattern::Exact(name) => {
                    (format!("there is no tool `{name}`"), nearest(name, names.iter().copied()))
                }
                _ => (format!("no tool fits `{text}`"), None),
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the policy does nothing for calls that never come; name one of the tools, or leave it out"
                    .to_owned(),
            };
            let same_letters = near.filter(|near| near.eq_ignore_ascii_case(text));
            let fix = same_letters.and_then(|near| {
                let span = replaceable(checked.sources, node)?;
                Some(Fix::replace(format!("write `{near}`"), span, in_place_of(node, near)))
            });
            found.push(written.tells(&UNKNOWN_TOOL, node.span, message).help(help).fix(fix));
        }
    }
}
