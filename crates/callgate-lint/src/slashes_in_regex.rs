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

/// Returns what is between two slashes, unless it may be a path such as `/tmp/`.
fn delimited(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('/')?.strip_suffix('/').filter(|inner| !inner.is_empty())?;
    let is_expression =
        inner.starts_with('^') || inner.ends_with('$') || inner.contains(['\\', '[', '(', '|', '*', '+']);
    let is_path = inner.contains('/') && !inner.starts_with('^') && !inner.ends_with('$');
    (is_expression && !is_path).then_some(inner)
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
            ("/tmp/", None),
            ("/home/[a-z]+/", None),
            ("^/a/$", None),
            ("/", None),
            ("//", None),
        ] {
            assert_eq!(delimited(text), inner, "{text}");
        }
    }
}
