//! Lint: regular expressions that are written between slashes, which are then part of them.

use crate::expression_source::collect_tests;
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, SLASHES_IN_REGEX};

pub(super) static LINT: Lint = Lint { code: &SLASHES_IN_REGEX, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for test in collect_tests(checked.files) {
        for node in test.operands(&["matches"]) {
            let Some(inner) = node.as_str().and_then(delimited) else { continue };
            let message = "the slashes are part of this regular expression".to_owned();
            let help = format!("write `{inner}`: only patterns of tools and servers stand between slashes");
            found.push(test.diagnostic(&SLASHES_IN_REGEX, node.span, message).with_help(help));
        }
    }
}

/// Returns the expression between two slashes, with flags that follow them, unless the text may be a path such as `/tmp/`.
fn delimited(text: &str) -> Option<String> {
    let unflagged = text.trim_end_matches(['d', 'g', 'i', 'm', 's', 'u', 'v', 'x', 'y']);
    let flags = text.strip_prefix(unflagged).filter(|_| unflagged.ends_with('/')).unwrap_or_default();
    let inner =
        text.strip_suffix(flags)?.strip_prefix('/')?.strip_suffix('/').filter(|inner| !inner.is_empty())?;
    let is_expression =
        inner.starts_with('^') || inner.ends_with('$') || inner.contains(['\\', '[', '(', '|', '*', '+']);
    let is_path = inner.contains('/') && !inner.starts_with('^') && !inner.ends_with('$');
    let supported: String = flags.chars().filter(|flag| "imsx".contains(*flag)).collect();
    let prefix = if supported.is_empty() { String::new() } else { format!("(?{supported})") };
    (is_expression && !is_path).then(|| format!("{prefix}{inner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expressions_between_slashes_are_found() {
        for (text, inner) in [
            ("/^a/", Some("^a")),
            (r"/\d+/", Some(r"\d+")),
            ("/a|b/", Some("a|b")),
            ("/^/etc/", Some("^/etc")),
            ("/^a$/i", Some("(?i)^a$")),
            ("/^a$/g", Some("^a$")),
            ("/home/[a-z]+/src", None),
            ("/a+", None),
            ("/tmp/", None),
            ("/home/[a-z]+/", None),
            ("^/a/$", None),
            ("/", None),
            ("//", None),
        ] {
            assert_eq!(delimited(text).as_deref(), inner, "{text}");
        }
    }
}
