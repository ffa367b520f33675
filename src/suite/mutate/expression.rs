//! Changes of operators inside of expressions, scripts and the filters of paths.

use super::find::Finder;
use super::{EXPRESSION, Mutation};
use crate::diagnostic::Span;
use crate::source::{Node, NodeValue, TextStyle};

/// Operators and what stands in their place; an operator that begins with another stands before it. Those that are replaced
/// by themselves only look like one of the others.
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

/// Each operator of an expression or a script, as it is written in the file.
pub(super) fn of_text(node: &Node, mutation: Mutation, finder: &mut Finder<'_>) {
    let NodeValue::String(text) = &node.value else { return };
    // The quotes of the YAML text are none of the expression's.
    let quotes = usize::from(text.style == TextStyle::Quoted);
    let written = finder.text(node.span);
    let Some(inside) = written.get(quotes..written.len().saturating_sub(quotes)) else { return };
    let found: Vec<(usize, &str, &str)> = operators(inside);
    for (at, operator, other) in found {
        let start = node.span.start + quotes + at;
        let place = Span { start, end: start + operator.len(), ..node.span };
        let case = format!("a case in which this `{operator}` decides");
        finder.replace(mutation, place, other, case);
    }
}

/// Each operator of the filters of a path.
pub(super) fn of_filter(node: &Node, finder: &mut Finder<'_>) {
    if node.as_str().is_some_and(|path| path.contains("[?")) {
        of_text(node, EXPRESSION, finder);
    }
}

/// The operators outside of texts and comments, with what stands in their place.
fn operators(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let at = text.len() - rest.len();
        let known = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator));
        let length = match (character, known) {
            ('"' | '\'' | '`', _) => text_length(rest, character),
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

/// How long the text between two of these quotes is, with both.
fn text_length(rest: &str, quote: char) -> usize {
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
    fn operators_are_found_outside_of_texts_and_comments() {
        for (text, expected) in [
            ("a && !b", &[(2, "&&"), (5, "!")][..]),
            ("a != \"x && y\" || b", &[(2, "!="), (14, "||")]),
            ("a <= 1 // < 2\n&& b < 'it\\'s <'", &[(2, "<="), (14, "&&"), (19, "<")]),
            ("items.map(|item| item.a >= 2)", &[(24, ">=")]),
            ("#{ a: 1 }", &[]),
            ("\"never closed && ", &[]),
            ("ä == ö", &[(3, "==")]),
        ] {
            let found: Vec<_> = operators(text).into_iter().map(|(at, operator, _)| (at, operator)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
