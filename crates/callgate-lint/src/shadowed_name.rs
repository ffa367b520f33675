//! Lint: closure parameters and script variables that have the name of a named value.

use std::collections::BTreeSet;

use crate::expression_source::{SourceKind, collect_expressions, find_name, leading_name};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, SHADOWED_NAME};
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &SHADOWED_NAME, needs: RequiredInput::Nothing, check };

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let lets: BTreeSet<&str> = checked.compiled.names().let_names().collect();
    if lets.is_empty() {
        return;
    }
    let functions: Vec<_> = checked.files.iter().filter_map(|file| file.root.get("functions")).collect();
    let is_function = |node: &YamlNode| functions.iter().any(|known| known.span == node.span);
    for source in collect_expressions(checked.files) {
        // Functions see no named values.
        if source.kind == SourceKind::Path || is_function(source.node) {
            continue;
        }
        for (at, name) in declared_names(source.text) {
            if !lets.contains(name) {
                continue;
            }
            let message = format!("`{name}` hides the named value of this name here");
            let part = at..at + name.len();
            let diagnostic = source.diagnostic(checked.sources, &SHADOWED_NAME, part, message);
            found.push(diagnostic.with_help("give it another name"));
        }
    }
}

/// The names that an expression or script declares: parameters of closures, `let`, `const` and `for`.
fn declared_names(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let name_after = |at: usize| {
        let rest = text.get(at..)?;
        let start = at + (rest.len() - rest.trim_start().len());
        let name = leading_name(text.get(start..)?);
        (!name.is_empty()).then_some((start, name))
    };
    for keyword in ["let", "const", "for"] {
        found.extend(find_name(text, keyword).filter_map(|at| name_after(at + keyword.len())));
    }
    let is_operator = |at: usize| {
        let beside = [at.checked_sub(1), at.checked_add(1)];
        beside.into_iter().flatten().any(|at| text.as_bytes().get(at) == Some(&b'|'))
    };
    let bars: Vec<usize> = text.match_indices('|').map(|(at, _)| at).filter(|at| !is_operator(*at)).collect();
    for bars in bars.chunks_exact(2) {
        let [open, close] = *bars else { continue };
        let mut at = open + 1;
        for parameter in text.get(open + 1..close).unwrap_or_default().split(',') {
            found.extend(name_after(at).filter(|(start, name)| start + name.len() <= close));
            at += parameter.len() + 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_names_are_found() {
        for (text, names) in [
            ("input.items.all(|item| item.n > 1 || item.m)", &["item"][..]),
            ("xs.reduce(|sum, order| sum + order)", &["sum", "order"]),
            ("let total = 0; for order in xs { total += order }", &["total", "order"]),
            ("a || b", &[]),
        ] {
            let found: Vec<&str> = declared_names(text).into_iter().map(|(_, name)| name).collect();
            assert_eq!(found, names, "{text}");
        }
    }
}
