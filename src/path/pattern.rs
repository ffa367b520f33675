//! The patterns of `match()` and `search()`: I-Regexp (RFC 9485), run by the `regex` crate.

use regex::Regex;

use super::ast::Operand;
use crate::regexes;

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Compiled(Regex),
    /// Compiled anew for each value; only queries have it, paths refuse it.
    FromDocument(Reach, Operand),
}

/// How much of the text the pattern must cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// `match()`
    Whole,
    /// `search()`
    Part,
}

/// A pattern ready to run, or what is wrong with it.
pub(super) fn compile(pattern: &str, reach: Reach) -> Result<Regex, String> {
    let pattern = in_regex_syntax(pattern)?;
    // The pattern is compiled on its own first, so that `a)|(b` cannot break out of the group around it.
    let alone = build(&pattern)?;
    match reach {
        Reach::Part => Ok(alone),
        Reach::Whole => build(&format!(r"\A(?:{pattern})\z")),
    }
}

fn build(pattern: &str) -> Result<Regex, String> {
    regexes::compile(pattern).map_err(|error| {
        // Its last line says what is wrong; those before draw the pattern.
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// What I-Regexp writes otherwise than `regex`: its dot leaves out `\r` too, and its classes have no operators. `[` and
/// `--` in a class, which only `regex` knows, are refused.
fn in_regex_syntax(pattern: &str) -> Result<String, String> {
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
    fn match_covers_the_whole_text_and_search_a_part() {
        for (pattern, text, whole, part) in [
            ("a|b", "ab", false, true),
            ("a.c", "a\rc", false, false),
            ("a.c", "abc", true, true),
            ("[a&&b]+", "a&b", true, true),
            (r"a\.c", "abc", false, false),
            ("[.]", "x", false, false),
        ] {
            assert_eq!(
                compile(pattern, Reach::Whole).unwrap().is_match(text),
                whole,
                "{pattern} whole {text:?}"
            );
            assert_eq!(compile(pattern, Reach::Part).unwrap().is_match(text), part, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn what_is_no_pattern_or_too_large_is_refused() {
        for pattern in [
            "a)|(b",
            "(",
            "[a[b].]",
            "[[:alpha:]]",
            "[a-z--b]",
            "((((a{100}){100}){100}){100})",
            &"(".repeat(100),
        ] {
            assert!(compile(pattern, Reach::Whole).is_err(), "{pattern}");
        }
    }
}
