//! Lint: literals with the characters of a pattern, which equality compares as they are.

use crate::expression_source::collect_tests;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, PATTERN_IN_LITERAL};

pub(super) static LINT: Lint = Lint { code: &PATTERN_IN_LITERAL, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for test in collect_tests(checked.files) {
        for node in test.operands(&["eq", "ne", "in", "not_in"]) {
            let Some((text, (what, help))) = node.as_str().and_then(|text| Some((text, describe(text)?)))
            else {
                continue;
            };
            let message = format!("`{text}` is compared as it is: {what}");
            found.push(test.diagnostic(&PATTERN_IN_LITERAL, node.span, message).with_help(help));
        }
    }
}

/// Returns what is wrong with a literal that looks like a pattern, and what to write instead.
fn describe(text: &str) -> Option<(&'static str, String)> {
    let is_anchored = text.len() > 2 && text.starts_with('^') && text.ends_with('$');
    if is_anchored || (text.len() > 2 && text.starts_with("/^") && text.ends_with('/')) {
        let inner = if is_anchored { text } else { text.trim_matches('/') };
        return Some(("it is not used as a regular expression", format!("write `matches: '{inner}'`")));
    }
    // A star alone, or in prose or a calculation, is a literal.
    let stars = text.matches('*').count();
    if stars == 0 || text.trim_matches('*').is_empty() || text.contains(char::is_whitespace) {
        return None;
    }
    let what = "`*` stands for itself here";
    let prefix = text.strip_suffix('*').filter(|_| stars == 1);
    let suffix = text.strip_prefix('*').filter(|_| stars == 1);
    let help = match (prefix, suffix) {
        (Some(directory), _)
            if directory.len() > 1 && directory.starts_with('/') && directory.ends_with('/') =>
        {
            format!("write `inside: {}`", directory.trim_end_matches('/'))
        }
        (Some(prefix), _) => format!("write `starts_with: {prefix}`"),
        (None, Some(suffix)) => match suffix.strip_prefix('@') {
            Some(domain) if domain.contains('.') => format!("write `domain: {domain}`"),
            _ => format!("write `ends_with: '{suffix}'`"),
        },
        (None, None) => "write `matches:` with a regular expression".to_owned(),
    };
    Some((what, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_from_literals() {
        for (text, help) in [
            ("refund*", Some("write `starts_with: refund`")),
            ("*@example.com", Some("write `domain: example.com`")),
            ("/etc/*", Some("write `inside: /etc`")),
            ("*.pdf", Some("write `ends_with: '.pdf'`")),
            ("a*b", Some("write `matches:` with a regular expression")),
            ("^a$", Some("write `matches: '^a$'`")),
            ("*", None),
            ("**", None),
            ("SELECT * FROM t", None),
            ("a.b", None),
        ] {
            assert_eq!(describe(text).map(|(_, help)| help).as_deref(), help, "{text}");
        }
    }
}
