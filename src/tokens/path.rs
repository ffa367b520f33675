//! File paths in a text.

use super::Token;
use super::boundary::{char_at, is_hidden, trim_punctuation};
use crate::address::Undecided;
use crate::unicode::is_punctuation;

const BRACKETS: [(char, char); 4] = [(')', '('), (']', '['), ('}', '{'), ('>', '<')];

/// Opening quotation marks, each with the one that closes it.
const QUOTES: [(char, char); 9] = [
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
];

/// Returns the paths of a composed text: quoted strings of one line, and runs without white space outside of them. `.` and `//` are
/// resolved.
pub(super) fn find(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut quotes = QuoteSearch { text, unclosed_until: [0; QUOTES.len()] };
    let mut at = 0;
    while let Some(first) = char_at(text, at) {
        if first.is_whitespace() || is_opening(first) {
            at += first.len_utf8();
            continue;
        }
        let quoted = quotes.content_at(at);
        let written = match quoted {
            Some(content) => content,
            None => {
                text.get(at..).and_then(|rest| rest.split(char::is_whitespace).next()).unwrap_or_default()
            }
        };
        let start = if quoted.is_some() { at + first.len_utf8() } else { at };
        let unquoted = if quoted.is_some() { written } else { written.trim_start_matches(is_quote) };
        let path = trim_punctuation(unquoted, &BRACKETS);
        if check_subject(path).is_ok()
            && let Some(form) = normalize(path)
        {
            let from = start + (written.len() - unquoted.len());
            tokens.push(Token::new(from..from + path.len(), form));
        }
        // The closing mark and what follows it are skipped as the end of a run.
        at = start + written.len();
        if quoted.is_some() {
            at += char_at(text, at).map_or(0, char::len_utf8);
            let rest = text.get(at..).unwrap_or_default();
            at += rest.find(char::is_whitespace).unwrap_or(rest.len());
        }
    }
    tokens
}

/// Checks a path as a subject.
///
/// # Errors
/// Returns [`Undecided`] for what programs may expand or decode.
pub(super) fn check_subject(path: &str) -> Result<(), Undecided> {
    if path.contains(['~', '\\']) {
        return Err(Undecided("the path has a `~` or a backslash"));
    }
    if path.split('/').any(|segment| segment == "..") {
        return Err(Undecided("the path has a `..`"));
    }
    let is_escape =
        |window: &[u8]| matches!(window, [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if path.as_bytes().windows(3).any(is_escape) {
        return Err(Undecided("the path has a percent-escape"));
    }
    Ok(())
}

/// Returns the normal form of a subject. Returns `None` if it has anything that surrounds paths in texts.
pub(super) fn parse_subject(path: &str) -> Option<String> {
    let is_whole = trim_punctuation(path, &BRACKETS) == path
        && !path.starts_with(|c| is_opening(c) || is_quote(c) || char::is_whitespace(c))
        && !path.ends_with(char::is_whitespace);
    if is_whole { normalize(path) } else { None }
}

/// Returns the path without empty segments and `.`. Returns `None` if nothing is left, and for hidden characters and quotation marks
/// other than apostrophes.
fn normalize(path: &str) -> Option<String> {
    if path.chars().any(|c| is_hidden(c) || is_quote(c) && c != '\'' && c != '’') {
        return None;
    }
    let mut form = String::with_capacity(path.len());
    for segment in path.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
        if !form.is_empty() || path.starts_with('/') {
            form.push('/');
        }
        form.push_str(segment);
    }
    if form.is_empty() && path.starts_with('/') {
        form.push('/');
    }
    (!form.is_empty()).then_some(form)
}

fn is_opening(c: char) -> bool {
    "([{<*".contains(c)
}

fn is_quote(c: char) -> bool {
    QUOTES.iter().any(|(open, close)| c == *open || c == *close)
}

/// Finds quoted strings. Each part of a line is searched at most once for each mark.
struct QuoteSearch<'t> {
    text: &'t str,
    /// For each pair the offset before which no closing mark is left.
    unclosed_until: [usize; QUOTES.len()],
}

impl<'t> QuoteSearch<'t> {
    /// Returns the content of the quoted string that begins at an offset.
    fn content_at(&mut self, at: usize) -> Option<&'t str> {
        let opening = char_at(self.text, at)?;
        let ((_, close), unclosed_until) =
            QUOTES.iter().zip(&mut self.unclosed_until).find(|((open, _), _)| *open == opening)?;
        let start = at + opening.len_utf8();
        if start < *unclosed_until || char_at(self.text, start)?.is_whitespace() {
            return None;
        }
        let mut previous = opening;
        for (offset, c) in self.text.get(start..)?.char_indices() {
            let end = start + offset;
            let next = char_at(self.text, end + c.len_utf8());
            let is_bounded = next.is_none_or(|next| {
                next.is_whitespace() || next.is_ascii_punctuation() || is_punctuation(next)
            });
            if c == *close && offset > 0 && is_bounded && !previous.is_whitespace() {
                return self.text.get(start..end);
            }
            if c == '\n' {
                *unclosed_until = end;
                return None;
            }
            previous = c;
        }
        *unclosed_until = self.text.len();
        None
    }
}
