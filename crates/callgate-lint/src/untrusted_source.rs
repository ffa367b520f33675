//! Lint: sources of `mentioned_in` that the model writes itself, so that everything is mentioned in them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::expression_source::{SourceKind, collect_expressions, collect_tests, find_name, leading_name};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, UNTRUSTED_SOURCE};
use callgate::matcher::EXPR_KEY;
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &UNTRUSTED_SOURCE, needs: RequiredInput::Nothing, check };

const HELP: &str = "name a source that the model does not write: the task, the context, or a fact that the result of a tool set";

/// The definitions of named values that are expressions.
type Definitions<'a> = HashMap<&'a str, &'a str>;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    let sections = checked.files.iter().flat_map(|file| {
        let defaults = file.root.get("defaults").and_then(|defaults| defaults.get("let"));
        [defaults, file.root.get("let")]
    });
    let entries = sections.flatten().filter_map(YamlNode::entries).flatten();
    let definitions: Definitions<'_> =
        entries.filter_map(|entry| Some((entry.key.as_str(), entry.value.as_str()?))).collect();
    for test in collect_tests(checked.files) {
        for operand in test.operands(&["mentioned_in"]) {
            let (path, expression) = (operand.get("path"), operand.get(EXPR_KEY));
            let Some((node, text)) = path.or(expression).and_then(|node| Some((node, node.as_str()?))) else {
                continue;
            };
            let is_written = match path {
                Some(_) => text.trim_start().starts_with("$.input"),
                None => is_written_by_model(text, &definitions),
            };
            if is_written {
                found.push(test.diagnostic(&UNTRUSTED_SOURCE, node.span, message(text)).with_help(HELP));
            }
        }
    }
    for source in collect_expressions(checked.files) {
        if source.kind == SourceKind::Path {
            continue;
        }
        for range in mention_sources(source.text) {
            let text = source.text.get(range.clone()).unwrap_or_default();
            if is_written_by_model(text, &definitions) {
                let found_here =
                    source.diagnostic(checked.sources, &UNTRUSTED_SOURCE, range.clone(), message(text));
                found.push(found_here.with_help(HELP));
            }
        }
    }
}

fn message(source: &str) -> String {
    format!("the model writes `{}` itself, so it can mention any value there", source.trim())
}

/// Whether a value contains an argument of the call. An argument that selects, as in `facts.order[input.id]`, is no part of it.
fn is_written_by_model(expression: &str, definitions: &Definitions<'_>) -> bool {
    let (mut open, mut followed) = (vec![expression], HashSet::new());
    while let Some(expression) = open.pop() {
        let values = without_literals_and_indices(expression);
        let reads = |name| {
            find_name(&values, name).any(|at| !values.get(..at).is_some_and(|before| before.ends_with('.')))
        };
        if reads("input") {
            return true;
        }
        let named = definitions.iter().filter(|(name, _)| reads(name) && followed.insert(**name));
        open.extend(named.map(|(_, definition)| *definition));
    }
    false
}

/// The text without strings and without the content of brackets.
fn without_literals_and_indices(expression: &str) -> String {
    let (mut kept, mut depth, mut quote) = (String::new(), 0_usize, None);
    for c in expression.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth = depth.saturating_sub(1),
            (None, c) if depth == 0 => kept.push(c),
            (None, _) => {}
        }
    }
    kept
}

/// The sources of the calls of `mentioned`: the second argument, or the first one of a method.
fn mention_sources(expression: &str) -> Vec<Range<usize>> {
    let calls = find_name(expression, "mentioned").filter_map(|at| {
        let is_method = expression.get(..at)?.trim_end().ends_with('.');
        let open = at + leading_name(expression.get(at..)?).len();
        let rest = expression.get(open..)?;
        let start = open + rest.len() - rest.trim_start().len() + 1;
        let arguments = arguments_from(expression, start)?;
        arguments.get(usize::from(!is_method)).cloned()
    });
    calls.collect()
}

/// The arguments of a call whose list begins at a position.
fn arguments_from(text: &str, start: usize) -> Option<Vec<Range<usize>>> {
    if !text.get(..start)?.ends_with('(') {
        return None;
    }
    let (mut arguments, mut begin, mut depth, mut quote) = (Vec::new(), start, 0_usize, None);
    for (at, c) in text.get(start..)?.char_indices().map(|(at, c)| (start + at, c)) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ',') if depth == 0 => {
                arguments.push(begin..at);
                begin = at + 1;
            }
            (None, ')' | ']' | '}') => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => {
                    arguments.push(begin..at);
                    return Some(arguments.into_iter().map(|range| trimmed(text, range)).collect());
                }
            },
            (None, _) => {}
        }
    }
    None
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or_default();
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_mentions_are_found() {
        for (expression, sources) in [
            ("mentioned(input.to, task.text, \"email\")", vec!["task.text"]),
            ("input.to.mentioned( [input.note, \"a, b\"], \"email\")", vec!["[input.note, \"a, b\"]"]),
            ("mentioned(f(a, b), g(c), \"word\") || x", vec!["g(c)"]),
            ("is_mentioned && mentioned", vec![]),
        ] {
            let found: Vec<&str> =
                mention_sources(expression).into_iter().map(|at| expression.get(at).unwrap()).collect();
            assert_eq!(found, sources, "{expression}");
        }
    }

    #[test]
    fn arguments_that_select_are_no_part_of_a_source() {
        let definitions =
            Definitions::from([("note", "input.note"), ("order", "session.facts.order[input.id]")]);
        for (expression, is_written) in [
            ("input.note", true),
            ("task.text + input.note", true),
            ("note", true),
            ("order.text", false),
            ("session.facts.mail[input.id].body", false),
            ("context.input", false),
            ("\"input.note\"", false),
        ] {
            assert_eq!(is_written_by_model(expression, &definitions), is_written, "{expression}");
        }
    }
}
