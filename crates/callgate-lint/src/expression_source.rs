//! Expressions and paths of rules files: nodes → each text that reads the call, with its position.

use std::ops::Range;

use crate::condition_source::member_path;
use callgate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use callgate::matcher::EXPR_KEY;
use callgate::source::{LoadedFile, YamlNode, YamlValue, span_in};

/// What a text of a rules file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// A JSONPath.
    Path,
    /// An expression, also one in a template.
    Expression,
    /// A script, or functions.
    Script,
}

/// A text of a rules file that reads the call.
#[derive(Clone, Debug)]
pub(super) struct ExpressionSource<'a> {
    pub(super) kind: SourceKind,
    /// The id of the policy. `None` for a definition.
    pub(super) policy: Option<&'a str>,
    pub(super) node: &'a YamlNode,
    /// The text.
    pub(super) text: &'a str,
    /// The position of the text in the string of the node.
    pub(super) start: usize,
}

impl ExpressionSource<'_> {
    /// Creates a diagnostic at a part of the text.
    pub(super) fn diagnostic(
        &self,
        sources: &SourceMap,
        code: &'static Code,
        part: Range<usize>,
        message: String,
    ) -> Diagnostic {
        let span = span_in(sources, self.node, self.start + part.start..self.start + part.end);
        let mut diagnostic = Diagnostic::new(code, span, message);
        diagnostic.policy = self.policy.map(str::to_owned);
        diagnostic
    }
}

/// A test of a condition, in a policy or in a definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestNode<'a> {
    /// The id of the policy. `None` for a definition.
    pub(super) policy: Option<&'a str>,
    pub(super) node: &'a YamlNode,
}

impl<'a> TestNode<'a> {
    /// The path or expression that is tested.
    pub(super) fn subject(&self) -> &'a str {
        let subject = self.node.get("path").or_else(|| self.node.get(EXPR_KEY));
        subject.and_then(YamlNode::as_str).unwrap_or_default()
    }

    /// The operands of these operators: each item of a list.
    pub(super) fn operands(&self, operators: &[&str]) -> Vec<&'a YamlNode> {
        let operands = operators.iter().filter_map(|key| self.node.get(key));
        operands.flat_map(|operand| operand.items().unwrap_or(std::slice::from_ref(operand))).collect()
    }

    /// Creates a diagnostic.
    pub(super) fn diagnostic(&self, code: &'static Code, span: Span, message: String) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(code, span, message);
        diagnostic.policy = self.policy.map(str::to_owned);
        diagnostic
    }
}

/// Returns the tests in the conditions of the files.
pub(super) fn collect_tests(files: &[LoadedFile]) -> Vec<TestNode<'_>> {
    let mut found = Vec::new();
    for (policy, node, _) in roots(files) {
        collect_tests_in(node, policy, &mut found);
    }
    found
}

fn collect_tests_in<'a>(node: &'a YamlNode, policy: Option<&'a str>, found: &mut Vec<TestNode<'a>>) {
    match &node.value {
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect_tests_in(item, policy, found)),
        YamlValue::Mapping(entries) => {
            if entries.len() > 1 && (node.get("path").is_some() || node.get(EXPR_KEY).is_some()) {
                found.push(TestNode { policy, node });
            }
            entries.iter().for_each(|entry| collect_tests_in(&entry.value, policy, found));
        }
        _ => {}
    }
}

/// The keys whose values are conditions, or lists of them.
const CONDITION_KEYS: [&str; 4] = ["where", "all", "any", "not"];
/// The keys whose strings are paths or expressions.
const VALUE_KEYS: [&str; 6] = ["values", "key", "value", "cost", "cost_after", "fields"];
/// The keys whose values are not read from a call: patterns, literals, documentation.
const LITERAL_KEYS: [&str; 9] =
    ["matches", "pattern", "patterns", "description", "schema", "tool", "server", "id", "data"];

/// Returns the paths, expressions, scripts and expressions of templates in the policies and definitions of the files.
pub(super) fn collect_expressions(files: &[LoadedFile]) -> Vec<ExpressionSource<'_>> {
    let mut found = Vec::new();
    for (policy, node, position) in roots(files) {
        collect(node, position, policy, &mut found);
    }
    found
}

/// The policies and the definitions of the files.
fn roots(files: &[LoadedFile]) -> impl Iterator<Item = (Option<&str>, &YamlNode, Position)> {
    files.iter().flat_map(|file| {
        let root = &file.root;
        let policies = root.get("policies").and_then(YamlNode::items).unwrap_or_default().iter();
        let policies = policies.map(|policy| {
            let id = policy.get("id").and_then(YamlNode::as_str);
            (id, policy, Position::Other)
        });
        let sections = [Some(root), root.get("defaults")].into_iter().flatten();
        let definitions = sections.flat_map(|section| {
            let lets = section.get("let").and_then(YamlNode::entries).unwrap_or_default().iter();
            let functions = section.get("functions").map(|functions| (None, functions, Position::Script));
            lets.map(|entry| (None, &entry.value, Position::Condition)).chain(functions)
        });
        policies.chain(definitions)
    })
}

/// What the strings of a node are.
#[derive(Clone, Copy)]
enum Position {
    Condition,
    Value,
    Path,
    Script,
    Other,
}

fn collect<'a>(
    node: &'a YamlNode,
    position: Position,
    policy: Option<&'a str>,
    found: &mut Vec<ExpressionSource<'a>>,
) {
    match &node.value {
        YamlValue::String(string) => {
            let text = string.text.as_str();
            let kind = match position {
                Position::Condition => SourceKind::Expression,
                Position::Value if text.trim_start().starts_with('$') => SourceKind::Path,
                Position::Value => SourceKind::Expression,
                Position::Path => SourceKind::Path,
                Position::Script => SourceKind::Script,
                Position::Other => return collect_template(node, policy, found),
            };
            found.push(ExpressionSource { kind, policy, node, text, start: 0 });
        }
        YamlValue::Sequence(items) => items.iter().for_each(|item| collect(item, position, policy, found)),
        YamlValue::Mapping(entries) => {
            for entry in entries {
                let position = match entry.key.as_str() {
                    EXPR_KEY => Position::Condition,
                    "path" => Position::Path,
                    "script" => Position::Script,
                    key if CONDITION_KEYS.contains(&key) => Position::Condition,
                    key if VALUE_KEYS.contains(&key) => Position::Value,
                    key if LITERAL_KEYS.contains(&key) => continue,
                    _ => Position::Other,
                };
                collect(&entry.value, position, policy, found);
            }
        }
        _ => {}
    }
}

/// Collects the expressions of a template.
fn collect_template<'a>(node: &'a YamlNode, policy: Option<&'a str>, found: &mut Vec<ExpressionSource<'a>>) {
    let text = node.as_str().unwrap_or_default();
    let mut end = 0;
    while let Some(at) = text.get(end..).and_then(|rest| rest.find("{{")) {
        let start = end + at + 2;
        let Some(length) = text.get(start..).and_then(|rest| rest.find("}}")) else { return };
        end = start + length;
        if let Some(text) = text.get(start..end) {
            found.push(ExpressionSource { kind: SourceKind::Expression, policy, node, text, start });
        }
    }
}

/// Returns the chains of members that an expression reads, outside strings: `input.to`, `context.text.contains`.
pub(super) fn member_chains(expression: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = expression.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = expression.get(at..).unwrap_or_default();
        let length = match c {
            '"' | '\'' | '`' => {
                rest.get(1..).and_then(|inner| inner.find(c)).map_or(rest.len(), |end| end + 2)
            }
            c if is_name_character(c) => {
                let end = rest.find(|c: char| !(is_name_character(c) || c == '.')).unwrap_or(rest.len());
                let chain = rest.get(..end).unwrap_or_default();
                if chain.contains('.') {
                    found.push((at, chain));
                }
                end
            }
            c => c.len_utf8(),
        };
        at += length.max(1);
    }
    found
}

/// Returns the paths that an expression reads from the call, outside strings and without the names of methods, with their positions.
pub(super) fn paths_read(expression: &str) -> Vec<(usize, String)> {
    let paths = member_chains(expression).into_iter().filter_map(|(at, chain)| {
        let is_call = expression.get(at + chain.len()..)?.trim_start().starts_with('(');
        let chain = if is_call { chain.rsplit_once('.')?.0 } else { chain };
        Some((at, member_path(chain.trim_end_matches('.'))?))
    });
    paths.collect()
}

/// Returns the paths and expressions of the values and conditions of a kind.
pub(super) fn values_and_conditions(kind: &YamlNode) -> Vec<ExpressionSource<'_>> {
    let mut found = Vec::new();
    collect(kind, Position::Condition, None, &mut found);
    found.retain(|source| source.kind != SourceKind::Script);
    found
}

/// Returns the expressions of a condition, or of a list of conditions.
pub(super) fn condition_expressions(conditions: &YamlNode) -> Vec<ExpressionSource<'_>> {
    let mut found = Vec::new();
    collect(conditions, Position::Condition, None, &mut found);
    found.retain(|source| source.kind == SourceKind::Expression);
    found
}

/// Whether a character can be in a name.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the name at the start of a text: letters, digits and `_`.
pub(super) fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !is_name_character(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the positions at which a text has a name that is no part of a longer one.
pub(super) fn find_name<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let before = text.get(..*at).and_then(|before| before.chars().next_back());
        let behind = text.get(at + name.len()..).and_then(|behind| behind.chars().next());
        !before.is_some_and(is_name_character) && !behind.is_some_and(is_name_character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_expressions_are_found() {
        let found = |text| paths_read(text).into_iter().map(|(_, path)| path).collect::<Vec<_>>();
        assert_eq!(
            found("input.items.all(|x| x.n > 1) && context.a == \"input.b\""),
            ["$.input.items", "$.context.a"]
        );
        assert_eq!(found("order.amount > 1 || input.a?.b"), ["$.input.a"]);
    }

    #[test]
    fn names_are_found_as_a_whole() {
        let found = |text: &'static str| find_name(text, "fee").collect::<Vec<_>>();
        assert_eq!(found("fee(a) + fees + x.fee"), [0, 18]);
        assert_eq!(leading_name("order[1]"), "order");
    }

    #[test]
    fn expressions_of_templates_are_found() {
        let node = callgate::policy::build_texts([(
            "rules.yaml",
            "policies: [ { id: a, match: { tool: t, where: [ input.a == 1, { path: $.input.b, ne: { expr: input.c } } ] }, \
             deny: { message: 'Not {{ input.d }} or {{input.e}}.' } } ]",
        )]);
        let texts: Vec<&str> = collect_expressions(&node.files).iter().map(|source| source.text).collect();
        assert_eq!(texts, ["input.a == 1", "$.input.b", "input.c", " input.d ", "input.e"]);
    }
}
