//! Patterns for the names of tools, servers and errors: exact, glob with `*`, or `/regex/`.

use regex::Regex;

use crate::regex_compiler;

/// The maximum length of a pattern.
const MAX_BYTES: usize = 1024;

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NamePatternError {
    /// The problem.
    pub message: String,
    /// The fix.
    pub help: String,
}

/// A pattern for names.
#[derive(Clone, Debug)]
pub enum NamePattern {
    /// Exactly this name.
    Exact(String),
    /// A glob: each `*` matches any number of characters, and the glob must match the whole name.
    Glob(String),
    /// A regular expression, which can match anywhere in the name.
    Regex(Regex),
    /// No name: an empty group.
    Nothing,
}

impl NamePattern {
    /// Whether every name that matches one of `narrow` is certain to match one of `wide`. An empty list matches every name.
    pub fn covers_all(wide: &[Self], narrow: &[Self]) -> bool {
        let everything = |pattern: &Self| matches!(pattern, Self::Glob(glob) if glob == "*");
        if wide.is_empty() || wide.iter().any(everything) {
            return true;
        }
        let covered = |pattern| wide.iter().any(|wide| wide.covers(pattern));
        !narrow.is_empty() && narrow.iter().all(covered)
    }

    fn covers(&self, narrow: &Self) -> bool {
        match (self, narrow) {
            (_, Self::Exact(name)) => self.matches(name),
            (Self::Glob(wide), Self::Glob(narrow)) => {
                let head = narrow.split('*').next().unwrap_or_default();
                let tail = narrow.rsplit('*').next().unwrap_or_default();
                let starts = wide
                    .strip_suffix('*')
                    .is_some_and(|prefix| !prefix.contains('*') && head.starts_with(prefix));
                let ends = wide
                    .strip_prefix('*')
                    .is_some_and(|suffix| !suffix.contains('*') && tail.ends_with(suffix));
                wide == narrow || starts || ends
            }
            (Self::Regex(wide), Self::Regex(narrow)) => wide.as_str() == narrow.as_str(),
            _ => false,
        }
    }

    /// Parses a pattern.
    ///
    /// # Errors
    /// A pattern that matches no name, or an invalid regular expression.
    pub fn parse(text: &str) -> Result<Self, NamePatternError> {
        let error = |message: &str, help: String| Err(NamePatternError { message: message.to_owned(), help });
        if text.len() > MAX_BYTES {
            return error(
                "the pattern is too long: the maximum is 1,024 bytes",
                "write a shorter pattern; names of tools are shorter".to_owned(),
            );
        }
        if text.is_empty() {
            return error("an empty pattern matches no name", "write `\"*\"` to match every name".to_owned());
        }
        if text.trim() != text {
            let message = "a pattern with leading or trailing white space matches no name";
            return error(message, format!("write `{}`", text.trim()));
        }
        if let Some(pattern) = Self::regex_of(text) {
            return regex_compiler::compile(pattern).map(Self::Regex).map_err(|problem| {
                let problem = problem.to_string();
                let why = problem.lines().last().unwrap_or_default().trim_start_matches("error: ");
                let message = format!("invalid regular expression: {why}");
                NamePatternError { message, help: "correct the pattern between the slashes".to_owned() }
            });
        }
        if text.starts_with('/') {
            return match text.rsplit_once('/') {
                Some((pattern, flags)) if pattern.len() > 1 && flags.chars().all(char::is_alphabetic) => {
                    error(
                        "unexpected text after the `/` that ends the regular expression",
                        format!("write `/(?{flags}){}/`", pattern.trim_start_matches('/')),
                    )
                }
                _ => error("a regular expression must end with `/`", format!("write `{text}/`")),
            };
        }
        Ok(if text.contains('*') { Self::Glob(text.to_owned()) } else { Self::Exact(text.to_owned()) })
    }

    /// The regular expression between the slashes of a pattern, if it is one.
    pub fn regex_of(text: &str) -> Option<&str> {
        text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|_| text.len() <= MAX_BYTES)
    }

    /// Returns the pattern as a regular expression for a `RegexSet`. Returns `None` for an exact name.
    pub fn as_regex(&self) -> Option<String> {
        match self {
            Self::Exact(_) => None,
            Self::Glob(glob) => {
                let pieces: Vec<String> = glob.split('*').map(regex::escape).collect();
                Some(format!("(?s)^{}$", pieces.join(".*")))
            }
            Self::Regex(regex) => Some(regex.as_str().to_owned()),
            Self::Nothing => Some(r"[^\s\S]".to_owned()),
        }
    }

    /// The pattern as written, without the slashes of a regular expression.
    pub fn text(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Glob(text) => text,
            Self::Regex(regex) => regex.as_str(),
            Self::Nothing => "",
        }
    }

    /// Whether the pattern matches a name.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Glob(glob) => glob_matches(glob, name),
            Self::Regex(regex) => regex.is_match(name),
            Self::Nothing => false,
        }
    }
}

/// Matches each piece between two `*` at its first occurrence. The first piece is anchored to the start, the last one to the end.
fn glob_matches(glob: &str, name: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else { return glob == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(name) = name.strip_prefix(head) else { return false };
    let Some(mut name) = name.strip_suffix(tail) else { return false };
    for piece in middle.split('*') {
        match name.split_once(piece) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_matches_the_whole_name_and_star_any_characters() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("*", "a/b.c\n", true),
            ("refund.*", "refund.create", true),
            ("refund.*", "refundXcreate", false),
            ("refund.*", "a.refund.create", false),
            ("*.delete", "x.delete", true),
            ("*.delete", "x.delete.y", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*", "xaabx", true),
            ("a?c", "abc", false),
            ("[a]*", "[a]b", true),
        ] {
            assert_eq!(NamePattern::Glob(glob.to_owned()).matches(name), expected, "{glob} on {name}");
        }
    }
}
