//! Lint: conditions that ask whether an argument is a part of a trusted text, which a part of a longer value passes, too.

use crate::condition_source::member_path;
use crate::expression_source::{
    SourceKind, TestNode, collect_expressions, collect_tests, is_name_character, member_chains,
};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use callgate::diagnostic::{Diagnostics, SUBSTRING_PROVENANCE};
use callgate::source::YamlNode;

pub(super) static LINT: Lint = Lint { code: &SUBSTRING_PROVENANCE, needs: RequiredInput::Nothing, check };

/// The last names of members that hold texts. A list of values is compared element by element, which is exact.
const TEXT_NAMES: [&str; 12] = [
    "text",
    "last",
    "task",
    "message",
    "request",
    "prompt",
    "instruction",
    "instructions",
    "question",
    "content",
    "body",
    "transcript",
];

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for test in collect_tests(checked.files) {
        let Some(argument) = searched_argument(&test) else { continue };
        let text = test.subject();
        let path = member_path(text).unwrap_or_else(|| text.to_owned());
        let message = format!(
            "`{argument}` passes if it is any part of `{text}`: `doe@example.com` is a part of `john.doe@example.com`"
        );
        let key_span =
            test.node.entries().into_iter().flatten().find(|entry| entry.key.starts_with("contains"));
        let span = key_span.map_or(test.node.span, |entry| entry.key_span);
        let help = format!(
            "write `path: {argument}, mentioned_in: {{ path: {path} }}, as: email` (or `url`, `host`, `iban`, `number`, `path`, `word`)"
        );
        found.push(test.diagnostic(&SUBSTRING_PROVENANCE, span, message).with_help(help));
    }
    for source in collect_expressions(checked.files) {
        if source.kind == SourceKind::Path {
            continue;
        }
        for search in find_searches(source.text) {
            let (argument, text) = (search.argument, search.text);
            let message = format!(
                "`{argument}` passes if it is any part of `{text}`: `doe@example.com` is a part of `john.doe@example.com`"
            );
            let part = search.at..search.at + search.length;
            let paths = member_path(argument).zip(member_path(text));
            let Some((argument, text)) = paths else { continue };
            let help = format!(
                "write the test `path: {argument}, mentioned_in: {{ path: {text} }}, as: email` (or `url`, `host`, `iban`, `number`, `path`, `word`)"
            );
            found.push(
                source.diagnostic(checked.sources, &SUBSTRING_PROVENANCE, part, message).with_help(help),
            );
        }
    }
}

/// Returns the argument that a test searches in a trusted text.
fn searched_argument(test: &TestNode<'_>) -> Option<String> {
    let subject = test.subject();
    let subject = member_path(subject).unwrap_or_else(|| subject.to_owned());
    if !is_trusted_text(&subject) {
        return None;
    }
    let operands = test.operands(&["contains", "contains_any"]);
    let sources = operands.iter().filter_map(|operand| {
        let path = operand.get("path").and_then(YamlNode::as_str).map(str::to_owned);
        path.or_else(|| member_path(operand.get("expr")?.as_str()?))
    });
    sources.into_iter().find(|path| path.starts_with("$.input"))
}

/// Whether a path leads to a text that the agent does not write.
fn is_trusted_text(path: &str) -> bool {
    let is_trusted = ["$.context.", "$.task", "$.session."].iter().any(|root| path.starts_with(root));
    let last = path.rsplit(|c: char| !is_name_character(c)).find(|name| !name.is_empty()).unwrap_or_default();
    let last = last.to_lowercase();
    is_trusted && TEXT_NAMES.iter().any(|name| last == *name || last.ends_with(&format!("_{name}")))
}

/// A search of an argument in a text, in an expression.
struct Search<'t> {
    argument: &'t str,
    text: &'t str,
    at: usize,
    length: usize,
}

/// Finds `TEXT.contains(ARGUMENT)`, `contains(TEXT, ARGUMENT)` and `ARGUMENT in TEXT`, where both are members of the call.
fn find_searches(expression: &str) -> Vec<Search<'_>> {
    let members = member_chains(expression);
    let mut found = Vec::new();
    for pair in members.windows(2) {
        let [(first_at, first), (second_at, second)] = *pair else { continue };
        let between = expression.get(first_at + first.len()..second_at).unwrap_or_default();
        let before = expression.get(..first_at).unwrap_or_default().trim_end();
        let compact: String = between.split_whitespace().collect();
        let (argument, text) = match compact.as_str() {
            "in" => (first, second),
            "," if before.ends_with("contains(") => (second, first),
            "(" if first.ends_with(".contains") => (second, first.trim_end_matches(".contains")),
            _ => continue,
        };
        let is_search = member_path(argument).is_some_and(|path| path.starts_with("$.input."))
            && member_path(text).is_some_and(|path| is_trusted_text(&path));
        if is_search {
            found.push(Search { argument, text, at: first_at, length: second_at + second.len() - first_at });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_of_arguments_in_texts_are_found() {
        for (expression, searched) in [
            ("context.task_text.contains(input.to)", Some("input.to")),
            ("contains( context.message, input.to )", Some("input.to")),
            ("input.a == 1 && input.to in context.message", Some("input.to")),
            ("input.to in context.contacts", None),
            ("context.message.contains(\"x\")", None),
            ("input.message.contains(context.message)", None),
            ("\"input.to in context.message\"", None),
        ] {
            let found: Vec<&str> = find_searches(expression).iter().map(|search| search.argument).collect();
            assert_eq!(found.first().copied(), searched, "{expression}");
        }
    }
}
