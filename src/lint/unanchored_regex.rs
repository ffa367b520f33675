//! Regular expressions as lists of what is permitted, which are found inside of longer texts, too.

use super::checked::Checked;
use super::{Lint, Needs};
use crate::call::Root;
use crate::diagnostic::{Diagnostics, UNANCHORED_REGEX};
use crate::matcher::NamePattern;

pub(super) static LINT: Lint = Lint { code: &UNANCHORED_REGEX, needs: Needs::Nothing, check };

fn check(checked: &Checked<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        let permits = written.is(&["allow"]);
        let restricts = written.is(&["deny", "halt", "approval"]);
        if !permits && !restricts {
            continue;
        }
        for test in written.tests.iter().filter(|test| test.path.root() == Root::Input) {
            let Some(operator) = test.operator("matches") else { continue };
            let lifts = (permits && test.positive) || (restricts && !test.positive);
            let Some(open) = operator.value.as_str().and_then(open_end).filter(|_| lifts) else { continue };
            let message = format!("this is found inside of longer texts, too: {open}");
            found.push(
                written
                    .tells(&UNANCHORED_REGEX, operator.value.span, message)
                    .help("say where the text starts and ends: `^(?:…)$`; for URLs and addresses there are `host:` and `domain:`"),
            );
        }
        for (pattern, node) in written.policy.matcher.tools.iter().zip(written.tool_nodes()) {
            // A name that begins alike is often meant; one that holds the word somewhere hardly ever.
            let NamePattern::Regex(regex) = pattern else { continue };
            if !permits || anchors(regex.as_str()).starts {
                continue;
            }
            let message =
                format!("this permits every tool in whose name `{}` is found somewhere", regex.as_str());
            found.push(
                written
                    .tells(&UNANCHORED_REGEX, node.span, message)
                    .help("say how the name starts, as in `/^get_/`, or use a glob, as in `get_*`"),
            );
        }
    }
}

/// What may stand around a match; nothing where the expression says how the text starts and ends, or where what it asks for
/// looks like a beginning.
fn open_end(pattern: &str) -> Option<&'static str> {
    let anchors = anchors(pattern);
    let word = pattern.ends_with(|c: char| c.is_alphanumeric());
    match (anchors.starts, anchors.ends) {
        (false, false) => Some("anything may stand before and behind it"),
        (false, true) => Some("anything may stand before it"),
        (true, false) if word => Some("anything may stand behind it"),
        (true, _) => None,
    }
}

struct Anchors {
    starts: bool,
    ends: bool,
}

/// Whether an expression says somewhere how a text starts and how it ends. One that says so of some of its branches only is
/// given the benefit of the doubt.
fn anchors(pattern: &str) -> Anchors {
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
    fn what_says_how_a_text_starts_and_ends_is_told_apart() {
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
            assert_eq!(open_end(pattern).is_some(), open, "{pattern}");
        }
    }
}
