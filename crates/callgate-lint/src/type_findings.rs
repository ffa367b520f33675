//! Findings of the type check of a policy: problems for each tool → diagnostics that name the tools.

use std::collections::HashMap;

use crate::policy_source::PolicySource;
use callgate::diagnostic::{Diagnostics, IMPOSSIBLE_TYPE, Span, UNKNOWN_ENUM_VALUE, UNKNOWN_MEMBER};
use callgate::safe_text::escape_controls;

/// A problem at a place, apart from the tools that have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Finding {
    pub(super) span: Span,
    /// What has the wrong type, and what is needed. For a literal that is not listed, what it is compared with.
    pub(super) found: String,
    pub(super) needed: String,
    pub(super) help: String,
    pub(super) kind: FindingKind,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FindingKind {
    /// An operation that fails for every value.
    Impossible,
    /// A literal that no schema lists.
    UnlistedValue,
    /// A member that no schema lists.
    UnknownMember,
}

/// The problems of a policy, each with the tools that have it.
#[derive(Default)]
pub(super) struct Findings<'a> {
    /// In the order in which they were found.
    order: Vec<Finding>,
    /// By problem, without its help. `None` for a problem whatever the tool.
    tools: HashMap<Finding, Option<Vec<&'a str>>>,
}

impl<'a> Findings<'a> {
    /// Adds what was found for a tool, or without regard to the tool.
    pub(super) fn add(&mut self, tool: Option<&'a str>, walked: Vec<Finding>) {
        for finding in walked {
            // The help depends on the tool, where it lists what the schema permits.
            let problem = Finding { help: String::new(), ..finding.clone() };
            if !self.tools.contains_key(&problem) {
                self.order.push(finding);
            }
            let known = self.tools.entry(problem).or_insert_with(|| tool.map(|_| Vec::new()));
            if let (Some(tools), Some(tool)) = (known, tool)
                && tools.last() != Some(&tool)
            {
                tools.push(tool);
            }
        }
    }

    /// Reports each problem once, with its tools.
    pub(super) fn report(self, written: &PolicySource<'_>, tool_count: usize, found: &mut Diagnostics) {
        for finding in &self.order {
            let problem = Finding { help: String::new(), ..finding.clone() };
            let tools = self.tools.get(&problem).and_then(Option::as_deref);
            let Finding { span, found: subject, needed, help, kind } = finding;
            let is_everywhere = tools.is_none_or(|tools| tools.len() == tool_count);
            let (code, message) = match kind {
                // As long as one tool permits the value, or has the member, it is no mistake.
                FindingKind::UnlistedValue | FindingKind::UnknownMember if !is_everywhere => continue,
                FindingKind::UnknownMember => {
                    (&UNKNOWN_MEMBER, format!("{subject} has no member `{needed}`"))
                }
                FindingKind::UnlistedValue => (
                    &UNKNOWN_ENUM_VALUE,
                    format!("{subject} can't be {needed} according to the tool's schema"),
                ),
                FindingKind::Impossible => {
                    let tools = tools.map(list_tools).unwrap_or_default();
                    (&IMPOSSIBLE_TYPE, format!("{subject}{tools}, and {needed}"))
                }
            };
            found.push(written.diagnostic(code, *span, message).with_help(help.clone()));
        }
    }
}

/// ` in `a`, `b` and 2 more`
fn list_tools(tools: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> =
        tools.iter().take(SHOWN).map(|tool| format!("`{}`", escape_controls(tool))).collect();
    match (shown.as_slice(), tools.len().checked_sub(SHOWN).filter(|more| *more > 0)) {
        (shown, Some(more)) => format!(" in {} and {more} more tools", shown.join(", ")),
        ([first @ .., last], None) if !first.is_empty() => format!(" in {} and {last}", first.join(", ")),
        (shown, None) => format!(" in {}", shown.concat()),
    }
}
