//! Patterns of `match()` and `search()`: I-Regexp (RFC 9485) → [`Regex`].

use regex::Regex;

use crate::regex_compiler;

/// The part of the string that the pattern must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchScope {
    /// `match()`
    Whole,
    /// `search()`
    Part,
}

/// Compiles a pattern.
///
/// # Errors
/// The pattern is invalid or too large.
pub(super) fn compile(pattern: &str, reach: MatchScope) -> Result<Regex, String> {
    let pattern = translate_to_regex(pattern)?;
    // The pattern is compiled on its own first, so that `a)|(b` cannot break out of the group around it.
    let alone = compile_regex(&pattern)?;
    match reach {
        MatchScope::Part => Ok(alone),
        MatchScope::Whole => compile_regex(&format!(r"\A(?:{pattern})\z")),
    }
}

fn compile_regex(pattern: &str) -> Result<Regex, String> {
    regex_compiler::compile(pattern).map_err(|error| {
        // The last line names the problem; those before show the pattern.
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Translates I-Regexp into the syntax of `regex`: the dot excludes `\r` too, and classes have no operators. Rejects `[` and
/// `--` in a class, which only `regex` supports.
fn translate_to_regex(pattern: &str) -> Result<String, String> {
    let mut translated = String::with_capacity(pattern.len());
    let (mut escaped, mut in_class, mut before) = (false, false, ' ');
    for c in pattern.chars() {
        match c {
            _ if escaped => translated.push(c),
            '.' if !in_class => translated.push_str(r"[^\n\r]"),
            '&' | '~' if in_class => translated.extend(['\\', c]),
            '[' if in_class => return Err("`[` within a class must be escaped".to_owned()),
            '-' if in_class && before == '-' => return Err("`--` within a class must be escaped".to_owned()),
            _ => translated.push(c),
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        before = c;
    }
    Ok(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_needs_the_whole_string_and_search_a_part() {
        for (pattern, text, whole, part) in [
            ("a|b", "ab", false, true),
            ("a.c", "a\rc", false, false),
            ("a.c", "abc", true, true),
            ("[a&&b]+", "a&b", true, true),
            (r"a\.c", "abc", false, false),
            ("[.]", "x", false, false),
        ] {
            assert_eq!(
                compile(pattern, MatchScope::Whole).unwrap().is_match(text),
                whole,
                "{pattern} whole {text:?}"
            );
            assert_eq!(
                compile(pattern, MatchScope::Part).unwrap().is_match(text),
                part,
                "{pattern} in {text:?}"
            );
        }
    }

    #[test]
    fn rejects_invalid_and_too_large_patterns() {
        for pattern in [
            "a)|(b",
            "(",
            "[a[b].]",
            "[[:alpha:]]",
            "[a-z--b]",
            "((((a{100}){100}){100}){100})",
            &"(".repeat(100),
        ] {
            assert!(compile(pattern, MatchScope::Whole).is_err(), "{pattern}");
        }
    }
}
