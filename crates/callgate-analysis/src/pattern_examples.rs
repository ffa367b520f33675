//! Example strings of patterns: a regular expression or a glob → short strings that it matches, as far as they can be built.

use callgate::matcher::NamePattern;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest example, in bytes.
const MAX_BYTES: usize = 200;
/// The most examples of one pattern.
const MAX_EXAMPLES: usize = 4;

/// Returns strings that a regular expression probably matches. Callers confirm them by matching.
pub(crate) fn examples_of_regex(pattern: &str) -> Vec<String> {
    let Ok(hir) = regex_syntax::parse(pattern) else { return Vec::new() };
    let mut examples = build(&hir);
    examples.retain(|example| !example.is_empty());
    examples
}

/// Returns names that a pattern for tools or servers matches.
pub(crate) fn examples_of_name(pattern: &NamePattern) -> Vec<String> {
    let mut examples = match pattern {
        NamePattern::Exact(name) => vec![name.clone()],
        NamePattern::Glob(glob) => vec![glob.replace('*', "x"), glob.replace('*', "")],
        NamePattern::Regex(_) => {
            let text = pattern.text();
            let inner = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
            examples_of_regex(inner.unwrap_or(text))
        }
        NamePattern::Nothing => Vec::new(),
    };
    examples.retain(|name| !name.is_empty() && pattern.matches(name));
    examples
}

/// The examples of an expression, the simplest first; several only for alternatives.
fn build(hir: &Hir) -> Vec<String> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).into_iter().collect(),
        HirKind::Class(class) => character_of(class).into_iter().map(String::from).collect(),
        HirKind::Repetition(repetition) => {
            let count =
                usize::try_from(repetition.min.max(u32::from(repetition.max != Some(0)))).unwrap_or(1);
            let mut inner = build(&repetition.sub);
            inner.retain(|example| example.len().saturating_mul(count) <= MAX_BYTES);
            inner.into_iter().map(|example| example.repeat(count)).collect()
        }
        HirKind::Capture(capture) => build(&capture.sub),
        HirKind::Concat(parts) => {
            let mut examples = vec![String::new()];
            for part in parts {
                let next = build(part);
                examples = examples
                    .iter()
                    .flat_map(|before| next.iter().map(move |after| format!("{before}{after}")))
                    .filter(|example| example.len() <= MAX_BYTES)
                    .take(MAX_EXAMPLES)
                    .collect();
            }
            examples
        }
        HirKind::Alternation(branches) => branches.iter().flat_map(build).take(MAX_EXAMPLES).collect(),
    }
}

/// A character of a class: a letter or digit if it has one.
fn character_of(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
    };
    let has = |wanted: char| ranges.iter().any(|(start, end)| (*start..=*end).contains(&wanted));
    "a1Ax-_. ".chars().find(|c| has(*c)).or_else(|| ranges.first().map(|(start, _)| *start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_match_their_pattern() {
        for pattern in [
            "^pay_[0-9]{3}$",
            "a|b|c",
            "(?i)refund",
            r"\bdrop\s+table\b",
            "^(pending|shipped) \\(item",
            "[^a-z]+",
            "x?y*z+",
        ] {
            let examples = examples_of_regex(pattern);
            let regex = regex_syntax::parse(pattern);
            assert!(regex.is_ok() && !examples.is_empty(), "{pattern}");
        }
        assert_eq!(examples_of_regex("^pay_[0-9]{3}$"), ["pay_111"]);
        assert_eq!(examples_of_regex("^(get|list)_x"), ["get_x", "list_x"]);
    }

    #[test]
    fn examples_stay_short() {
        for pattern in [
            "a{1000000}",
            "((a|b|c|d){50}){50}",
            "(((((((a|b)(a|b))(a|b))(a|b))(a|b))(a|b))(a|b))",
            "(",
            "[a&&b]",
        ] {
            let examples = examples_of_regex(pattern);
            assert!(
                examples.len() <= MAX_EXAMPLES && examples.iter().all(|example| example.len() <= MAX_BYTES),
                "{pattern}"
            );
        }
    }
}
