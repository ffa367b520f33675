//! Mutations of operators in expressions, scripts and the filters of paths.

use super::mutant_collector::MutantCollector;
use super::{EXPRESSION, Mutation};
use callgate::diagnostic::Span;
use callgate::source::{StringStyle, YamlNode, YamlValue};

/// Operators and their replacements; an operator comes before its prefixes. Those that are replaced by themselves only look
/// like one of the others, and are skipped.
const OPERATORS: [(&str, &str); 15] = [
    ("&&", "||"),
    ("||", "&&"),
    ("==", "!="),
    ("!=", "=="),
    ("=>", "=>"),
    ("->", "->"),
    ("<<", "<<"),
    (">>", ">>"),
    ("<=", "<"),
    (">=", ">"),
    ("//", "//"),
    ("<", "<="),
    (">", ">="),
    ("!", ""),
    ("#{", "#{"),
];

/// Mutates each operator of an expression or a script, in the text of the file.
pub(super) fn mutate_operators(node: &YamlNode, mutation: Mutation, collector: &mut MutantCollector<'_>) {
    let YamlValue::String(text) = &node.value else { return };
    // The quotes of the YAML string do not belong to the expression.
    let quotes = usize::from(text.style == StringStyle::Quoted);
    let written = collector.span_text(node.span);
    let Some(inside) = written.get(quotes..written.len().saturating_sub(quotes)) else { return };
    let found: Vec<(usize, &str, &str)> = find_operators(inside);
    for (at, operator, other) in found {
        let start = node.span.start() + quotes + at;
        let span = Span::new(node.span.source, start, start + operator.len());
        let case = format!("a case whose result depends on this `{operator}`");
        collector.replace(mutation, span, other, case);
    }
}

/// Mutates each operator in the filters of a path.
pub(super) fn mutate_filters(node: &YamlNode, collector: &mut MutantCollector<'_>) {
    if node.as_str().is_some_and(|path| path.contains("[?")) {
        mutate_operators(node, EXPRESSION, collector);
    }
}

/// The operators outside strings and comments: position, operator, replacement.
fn find_operators(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let at = text.len() - rest.len();
        let known = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator));
        let length = match (character, known) {
            ('"' | '\'' | '`', _) => quoted_length(rest, character),
            (_, Some(("//", _))) => rest.find('\n').unwrap_or(rest.len()),
            (_, Some((operator, other))) => {
                if operator != other {
                    found.push((at, *operator, *other));
                }
                operator.len()
            }
            _ => character.len_utf8(),
        };
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    found
}

/// The length of the quoted string at the start of `rest`, including both quotes.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_operators_outside_strings_and_comments() {
        for (text, expected) in [
            ("a && !b", &[(2, "&&"), (5, "!")][..]),
            ("a != \"x && y\" || b", &[(2, "!="), (14, "||")]),
            ("a <= 1 // < 2\n&& b < 'it\\'s <'", &[(2, "<="), (14, "&&"), (19, "<")]),
            ("items.map(|item| item.a >= 2)", &[(24, ">=")]),
            ("#{ a: 1 }", &[]),
            ("\"never closed && ", &[]),
            ("ä == ö", &[(3, "==")]),
        ] {
            let found: Vec<_> =
                find_operators(text).into_iter().map(|(at, operator, _)| (at, operator)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
