//! Lint: unanchored regular expressions as allowlists, which also match parts of longer strings.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::call::Root;
use callgate::diagnostic::{Diagnostics, UNANCHORED_REGEX};
use callgate::matcher::NamePattern;

pub(super) static LINT: Lint = Lint { code: &UNANCHORED_REGEX, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        let permits = written.has_kind(&["allow"]);
        let restricts = written.stops_calls();
        if !permits && !restricts {
            continue;
        }
        for test in written.tests.iter().filter(|test| test.root() == Some(Root::Input)) {
            let Some(operator) = test.operator("matches") else { continue };
            let lifts = (permits && test.positive) || (restricts && !test.positive);
            let patterns = operator.value.items().unwrap_or(std::slice::from_ref(&operator.value));
            for pattern in patterns.iter().filter(|_| lifts) {
                let Some(open) = pattern.as_str().and_then(missing_anchors) else { continue };
                let message = format!("this regular expression also matches inside longer strings: {open}");
                found.push(written.diagnostic(&UNANCHORED_REGEX, pattern.span, message).with_help(
                    "anchor it: `^(?:…)$`; for URLs and mail addresses use `host:` and `domain:`",
                ));
            }
        }
        for (pattern, node) in written.tool_patterns() {
            // Authors often mean a prefix, but hardly ever a word anywhere in the name.
            let NamePattern::Regex(regex) = pattern else { continue };
            if !permits || find_anchors(regex.as_str()).starts {
                continue;
            }
            let message =
                format!("this permits every tool whose name contains a match of `{}`", regex.as_str());
            found.push(
                written
                    .diagnostic(&UNANCHORED_REGEX, node.span, message)
                    .with_help("anchor the start of the name, as in `/^get_/`, or use a glob, as in `get_*`"),
            );
        }
    }
}

/// Returns what may surround a match. Returns `None` if the expression is anchored, or looks like a prefix.
fn missing_anchors(pattern: &str) -> Option<&'static str> {
    let anchors = find_anchors(pattern);
    let word = pattern.ends_with(|c: char| c.is_alphanumeric());
    match (anchors.starts, anchors.ends) {
        (false, false) => Some("any text may precede and follow the match"),
        (false, true) => Some("any text may precede the match"),
        (true, false) if word => Some("any text may follow the match"),
        (true, _) => None,
    }
}

struct Anchors {
    starts: bool,
    ends: bool,
}

/// Returns whether an expression has anchors for the start and the end. An anchor in some of its branches counts.
fn find_anchors(pattern: &str) -> Anchors {
    let (mut starts, mut ends, mut in_class, mut escaped) = (false, false, false, false);
    for c in pattern.chars() {
        match c {
            'A' if escaped => starts = true,
            'z' if escaped => ends = true,
            _ if escaped => {}
            '[' => in_class = true,
            ']' => in_class = false,
            '^' if !in_class => starts = true,
            '$' if !in_class => ends = true,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    Anchors { starts, ends }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_missing_anchors() {
        for (pattern, open) in [
            ("^a$", false),
            (r"\Aa\z", false),
            ("^https://example.com/", false),
            ("^https://example.com", true),
            ("[^a]$", true),
            (r"\^a$", true),
            (r"^a\$", false),
            ("(^|/)a($|/)", false),
            ("a", true),
        ] {
            assert_eq!(missing_anchors(pattern).is_some(), open, "{pattern}");
        }
    }
}
