//! Boundaries of tokens: which characters may be beside one.

use smallvec::SmallVec;

use crate::unicode::{ascii_form, is_invisible, is_punctuation};

/// Whether a character makes what it touches no token: control characters other than white space, and invisible characters.
pub(super) fn is_hidden(c: char) -> bool {
    is_invisible(c) || c.is_control() && !c.is_whitespace()
}

/// The last character before an offset.
pub(super) fn char_before(text: &str, at: usize) -> Option<char> {
    text.get(..at).and_then(|before| before.chars().next_back())
}

/// The first character from an offset on.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..).and_then(|after| after.chars().next())
}

/// The two first characters from an offset on.
pub(super) fn chars_at(text: &str, at: usize) -> (Option<char>, Option<char>) {
    let mut after = text.get(at..).unwrap_or_default().chars();
    (after.next(), after.next())
}

/// The two last characters before an offset, the nearer one first.
pub(super) fn chars_before(text: &str, at: usize) -> (Option<char>, Option<char>) {
    let mut before = text.get(..at).unwrap_or_default().chars().rev();
    (before.next(), before.next())
}

/// The ASCII character that programs may take a character for, or the character itself.
pub(super) fn ascii_look(c: char) -> char {
    ascii_form(c).unwrap_or(c)
}

/// Returns the start of the longest run of characters before an offset that pass a test.
pub(super) fn run_start(text: &str, at: usize, test: impl Fn(char) -> bool) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.trim_end_matches(test).len()
}

/// Returns the end of the longest run of characters from an offset on that pass a test.
pub(super) fn run_end(text: &str, at: usize, test: impl Fn(char) -> bool) -> usize {
    let after = text.get(at..).unwrap_or_default();
    at + (after.len() - after.trim_start_matches(test).len())
}

/// Removes the punctuation at the end of a token: closing brackets only if they are unbalanced.
pub(super) fn trim_punctuation<'t>(token: &'t str, brackets: &[(char, char)]) -> &'t str {
    let count = |c: char| token.matches(c).count();
    let unbalanced =
        brackets.iter().map(|(close, open)| (*close, count(*close).saturating_sub(count(*open))));
    let mut unbalanced: SmallVec<[(char, usize); 4]> = unbalanced.collect();
    let mut end = token.len();
    for c in token.chars().rev() {
        let bracket = unbalanced.iter_mut().find(|(close, left)| *close == c && *left > 0);
        match bracket {
            Some((_, left)) => *left -= 1,
            None if ".,;:!?'".contains(c) => {}
            None if !c.is_ascii() && is_punctuation(c) => {}
            None => break,
        }
        end -= c.len_utf8();
    }
    token.get(..end).unwrap_or_default()
}

/// Whether a space may separate groups of digits, or a number from its currency: also no-break and thin spaces.
pub(super) fn is_group_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}
