//! Error messages for invalid regular expressions: problem, position and fix.

use std::ops::Range;

/// A problem of a regular expression.
pub(super) struct RegexProblem {
    /// The problem.
    pub(super) message: String,
    /// The byte range in the pattern.
    pub(super) range: Range<usize>,
    /// The fix.
    pub(super) help: &'static str,
}

/// Converts the error of a pattern.
pub(super) fn regex_problem(pattern: &str, error: &regex::Error) -> RegexProblem {
    let whole = 0..pattern.len();
    if matches!(error, regex::Error::CompiledTooBig(_)) {
        return RegexProblem {
            message: "the compiled regular expression is too large".to_owned(),
            range: whole,
            help: "use smaller repetition counts",
        };
    }
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let help = if reason.contains("look-") || reason.contains("backreference") {
        "the syntax is that of the Rust `regex` crate, without look-around and back-references; use `not:` or several tests instead"
    } else if reason.contains("repetition operator missing") {
        "`*`, `+` and `?` repeat what precedes them: `.*` matches any text, `\\*` a literal star"
    } else {
        "for the literal character, put a backslash before it, and write the regular expression in single quotes"
    };
    let range = error_range(pattern, &text).unwrap_or(whole);
    RegexProblem { message: format!("`{pattern}` is not a valid regular expression: {reason}"), range, help }
}

/// The range that the error message marks with carets below the pattern.
fn error_range(pattern: &str, error: &str) -> Option<Range<usize>> {
    let (pattern_line, carets) = error
        .lines()
        .zip(error.lines().skip(1))
        .find(|(_, below)| below.contains('^') && below.chars().all(|c| c == '^' || c == ' '))?;
    let indentation = pattern_line.strip_suffix(pattern)?.chars().count();
    let before = carets.chars().take_while(|c| *c == ' ').count().checked_sub(indentation)?;
    let count = carets.chars().filter(|c| *c == '^').count();
    let byte = |at: usize| pattern.char_indices().map(|(byte, _)| byte).nth(at).unwrap_or(pattern.len());
    Some(byte(before)..byte(before + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_invalid_characters() {
        for (pattern, wrong) in
            [("ü(a", "("), ("[a-", "["), ("a(?=b)", "(?="), (r"(a)\1", r"\1"), ("*.txt", "*")]
        {
            let error = regex::Regex::new(pattern).unwrap_err();
            let problem = regex_problem(pattern, &error);
            assert_eq!(pattern.get(problem.range), Some(wrong), "{pattern}: {error}");
        }
    }
}
