//! Lint: members that no schema and no constant lists. The type check finds them.

use crate::lint::Lint;
use crate::lint_inputs::RequiredInput;
use crate::type_findings::{Finding, FindingKind};
use callgate::diagnostic::{Span, UNKNOWN_MEMBER, closest_match};
use callgate::script::UnknownMember;

/// What it reports is found while types are checked.
pub(super) static LINT: Lint =
    Lint { code: &UNKNOWN_MEMBER, needs: RequiredInput::Nothing, check: |_, _| {} };

/// The most names in a help.
const MAX_SHOWN: usize = 12;

/// Creates the finding of a member.
pub(super) fn finding(unknown: &UnknownMember, span: Span) -> Finding {
    let known = || unknown.known.iter().map(String::as_str);
    let help = match closest_match(&unknown.member, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let names: Vec<String> = known().take(MAX_SHOWN).map(|name| format!("`{name}`")).collect();
            let more = if unknown.known.len() > MAX_SHOWN { ", …" } else { "" };
            format!("its members are {}{more}", names.join(", "))
        }
    };
    Finding {
        span,
        found: unknown.object.clone(),
        needed: unknown.member.clone(),
        help,
        kind: FindingKind::UnknownMember,
    }
}

/// The expression that reads the same value as a path, with its position in the path. Returns `None` for a path that has other steps than
/// names and indices.
pub(super) fn path_as_expression(path: &str) -> Option<(usize, &str)> {
    let rest = path.strip_prefix('$')?;
    let expression = rest.strip_prefix('.').unwrap_or(rest);
    let is_step = |step: &str| {
        let (name, indices) = step.split_at(step.find('[').unwrap_or(step.len()));
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name && indices.chars().all(|c| c.is_ascii_digit() || ['[', ']'].contains(&c))
    };
    expression.split('.').all(is_step).then_some((path.len() - expression.len(), expression))
}
