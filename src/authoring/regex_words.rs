//! Why a text is no regular expression, in short: where, what, and what to write instead.

use std::ops::Range;

/// A problem of a regular expression.
pub(super) struct RegexProblem {
    /// What is wrong.
    pub(super) message: String,
    /// Where in the pattern, in bytes.
    pub(super) range: Range<usize>,
    /// What to do.
    pub(super) help: &'static str,
}

/// Reads the error of a pattern.
pub(super) fn problem(pattern: &str, error: &regex::Error) -> RegexProblem {
    let whole = 0..pattern.len();
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return RegexProblem {
            message: "this regular expression becomes too large".to_owned(),
            range: whole,
            help: "make its repetitions smaller",
        };
    }
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let help = if reason.contains("look-") || reason.contains("backreference") {
        "the syntax is that of the Rust `regex` crate: no look-around, no back-references; `not:` and several tests can say the same"
    } else if reason.contains("repetition operator missing") {
        "`*`, `+` and `?` repeat what stands before them: `.*` is any text, `\\*` a star"
    } else {
        "to mean the character itself, put a backslash before it, and write the regular expression in single quotes"
    };
    let range = place(pattern, &text).unwrap_or(whole);
    RegexProblem { message: format!("`{pattern}` is no regular expression: {reason}"), range, help }
}

/// The place that the error's own drawing points at: the line with carets, below the pattern on one line.
fn place(pattern: &str, error: &str) -> Option<Range<usize>> {
    let (drawn, carets) = error
        .lines()
        .zip(error.lines().skip(1))
        .find(|(_, below)| below.contains('^') && below.chars().all(|c| c == '^' || c == ' '))?;
    let indentation = drawn.strip_suffix(pattern)?.chars().count();
    let before = carets.chars().take_while(|c| *c == ' ').count().checked_sub(indentation)?;
    let count = carets.chars().filter(|c| *c == '^').count();
    let byte = |at: usize| pattern.char_indices().map(|(byte, _)| byte).nth(at).unwrap_or(pattern.len());
    Some(byte(before)..byte(before + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_that_of_the_wrong_characters() {
        for (pattern, wrong) in
            [("ü(a", "("), ("[a-", "["), ("a(?=b)", "(?="), (r"(a)\1", r"\1"), ("*.txt", "*")]
        {
            let error = regex::Regex::new(pattern).unwrap_err();
            let problem = problem(pattern, &error);
            assert_eq!(pattern.get(problem.range), Some(wrong), "{pattern}: {error}");
        }
    }
}
