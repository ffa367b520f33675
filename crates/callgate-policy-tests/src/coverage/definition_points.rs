//! The coverage points of a bundle's definitions: rules files + names → boolean named values, and the patterns of groups.

use std::sync::Arc;

use crate::reached_definitions::{reached_definitions, reached_names};
use callgate::diagnostic::Span;
use callgate::policy::CompiledPolicies;
use callgate::script::{CodeBranch, DefinitionName, NamedValue, functions};
use callgate::source::LoadedFile;

/// The definitions that have branches.
#[derive(Debug, Default)]
pub(super) struct CountedDefinitions {
    /// The boolean named values that policies reach, with the locations of their names.
    pub(super) lets: Vec<(Arc<NamedValue>, Span)>,
    /// The patterns of the groups that policies name, with their locations.
    pub(super) patterns: Vec<(String, Span)>,
    /// The functions that policies call, and the arms of `switch` in them.
    pub(super) functions: Vec<CodeBranch>,
}

impl CountedDefinitions {
    pub(super) fn new(policies: &CompiledPolicies, files: &[LoadedFile]) -> Self {
        let mut counted = Self::default();
        let names = reached_names(policies, files);
        let is_called =
            |branch: &&CodeBranch| names.contains(&DefinitionName::Function(branch.function.clone()));
        counted.functions =
            policies.names().functions().branches().iter().filter(is_called).cloned().collect();
        for (name, entry) in reached_definitions(policies, files) {
            match name {
                DefinitionName::Let(name) => {
                    let Some(value) = policies.names().find_let(&name).flatten() else { continue };
                    if value.is_condition() || entry.value.as_str().is_some_and(is_boolean) {
                        counted.lets.push((Arc::clone(value), entry.key_span));
                    }
                }
                DefinitionName::Group(_) => {
                    let texts = entry.value.items().unwrap_or_default().iter();
                    counted.patterns.extend(texts.filter_map(|pattern| {
                        let text = pattern.as_str().filter(|text| !text.starts_with('@'))?;
                        let inner = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
                        Some((inner.unwrap_or(text).to_owned(), pattern.span))
                    }));
                }
                DefinitionName::Data(_) | DefinitionName::Function(_) => {}
            }
        }
        counted
    }
}

/// Whether an expression certainly results in a boolean, judging by its outermost operators or its last call.
fn is_boolean(expression: &str) -> bool {
    let text = expression.trim();
    if text.starts_with("if ") || text.starts_with("switch ") {
        return false;
    }
    let outer = outermost(text);
    let has_operator =
        ["&&", "||", "==", "!=", "<", ">", " in ", "!in"].iter().any(|key| outer.contains(key));
    let last_call = outer.strip_suffix("()").map(|head| {
        let start = head.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
        head.get(start..).unwrap_or_default()
    });
    let returns_boolean = |name: &str| {
        functions().any(|function| function.name == name && function.description.starts_with("whether"))
    };
    has_operator || outer.starts_with('!') || last_call.is_some_and(returns_boolean)
}

/// The text without strings and without what is between brackets.
fn outermost(text: &str) -> String {
    let (mut outer, mut depth, mut quote, mut escaped) = (String::new(), 0usize, None, false);
    for c in text.chars() {
        if let Some(end) = quote {
            if c == end && !escaped {
                quote = None;
            }
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' | '\'' | '`' => quote = Some(c),
            '(' | '[' | '{' => {
                if depth == 0 {
                    outer.push(c);
                }
                depth += 1;
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    outer.push(c);
                }
            }
            c if depth == 0 => outer.push(c),
            _ => {}
        }
    }
    outer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boolean_expressions_are_recognised() {
        for (expression, expected) in [
            ("input.amount > 100", true),
            ("!exists(session.facts.order)", true),
            ("exists(session.facts.order[input.id])", true),
            ("is_tool(\"@sends\") && input.n == 1", true),
            ("input.id in data.blocked", true),
            ("session.facts.order[input.a > 1]", false),
            ("input.amount ?? 0", false),
            ("input.items.map(|x| x.n > 1)", false),
            ("\"a > b\"", false),
            ("if input.n > 1 { 2 } else { 3 }", false),
        ] {
            assert_eq!(is_boolean(expression), expected, "{expression}");
        }
    }
}
