//! Ids of drafted policies, and the patterns of their tools: names from recordings → names that are valid in rules.

use std::collections::BTreeSet;

use callgate::safe_text::is_hidden;

use super::usage_profile::ToolName;

/// The most bytes of a part of an id.
const MAX_PART: usize = 48;
/// The most bytes of a tool's name.
const MAX_NAME: usize = 128;

/// Gives ids that are unique.
#[derive(Debug, Default)]
pub(super) struct PolicyIds(BTreeSet<String>);

impl PolicyIds {
    /// The id of a policy: the tool, and what the policy does with it.
    pub(super) fn next(&mut self, name: &ToolName, suffix: &str) -> String {
        let tool = id_part(&name.tool);
        let id = if suffix.is_empty() { tool } else { format!("{tool}.{}", id_part(suffix)) };
        let mut unique = id.clone();
        let mut number = 1;
        while !self.0.insert(unique.clone()) {
            number += 1;
            unique = format!("{id}-{number}");
        }
        unique
    }
}

fn id_part(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let part: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(MAX_PART).collect();
    if part.starts_with(|c: char| c.is_ascii_alphabetic()) { part } else { format!("tool-{part}") }
}

/// Whether a name can be that of a tool or of a server: visible characters without white space.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_valid = |c: char| !c.is_control() && !c.is_whitespace() && !is_hidden(c);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_valid)
}

/// The pattern that matches exactly this name.
pub(super) fn exact_pattern(name: &str) -> String {
    match name.contains('*') || name.starts_with(['/', '@']) {
        true => format!("/^{}$/", regex_syntax::escape(name)),
        false => name.to_owned(),
    }
}
