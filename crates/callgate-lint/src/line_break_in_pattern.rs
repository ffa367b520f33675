//! Lint: regular expressions that contain a line break, or a space in its place, because they are written on several lines.

use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostic, Diagnostics, LINE_BREAK_IN_PATTERN};
use callgate::source::{StringStyle, YamlNode, YamlValue};

pub(super) static LINT: Lint = Lint { code: &LINE_BREAK_IN_PATTERN, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for file in checked.files {
        for section in ["policies", "let", "groups", "defaults"] {
            if let Some(node) = file.root.get(section) {
                collect(checked, node, false, found);
            }
        }
    }
}

fn collect(checked: &LintContext<'_>, node: &YamlNode, is_pattern: bool, found: &mut Diagnostics) {
    match &node.value {
        YamlValue::String(_) if is_pattern => {
            if let Some((message, help)) = describe(checked, node) {
                found.push(Diagnostic::new(&LINE_BREAK_IN_PATTERN, node.span, message).with_help(help));
            }
        }
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect(checked, item, is_pattern, found)),
        YamlValue::Mapping(entries) => {
            for entry in entries {
                let is_pattern = ["matches", "pattern", "patterns"].contains(&entry.key.as_str());
                collect(checked, &entry.value, is_pattern, found);
            }
        }
        _ => {}
    }
}

/// Returns the message and the help for a pattern on several lines.
fn describe(checked: &LintContext<'_>, node: &YamlNode) -> Option<(&'static str, &'static str)> {
    let YamlValue::String(string) = &node.value else { return None };
    let text = string.text.as_str();
    // In this mode white space does not belong to the expression.
    if text.starts_with("(?x") {
        return None;
    }
    let written = checked.text(node.span.source).get(node.span.start()..node.span.end())?;
    let is_folded = string.style != StringStyle::Literal && written.trim_end().contains('\n');
    if text.trim_end_matches('\n').contains('\n') {
        return Some((
            "this regular expression contains a line break, which must be in the value",
            "write it on one line; for several lines begin with `(?x)`, which ignores white space",
        ));
    }
    if text.ends_with('\n') {
        return Some((
            "this regular expression ends with a line break, which must be in the value",
            "write `>-` or `|-` in place of `>` or `|`, or write it on one line",
        ));
    }
    (is_folded && text.contains(' ')).then_some((
        "each line break of this regular expression is a space, which must be in the value",
        "write it on one line; for several lines begin with `(?x)`, which ignores white space",
    ))
}
