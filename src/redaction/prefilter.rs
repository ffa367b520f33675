//! Prefilter: plain words, in and around which no detector matches. They make up most of ordinary prose.

use super::normalized_text::is_unchanged;

/// The maximum length of a plain word; random tokens and secrets of letters alone are longer.
const MAX_LETTERS: usize = 15;

/// Returns the number of letters of a plain word: letters with at most one punctuation mark before and a few after. Returns `None`
/// for other words. Every detector needs a digit, another sign, or more letters in a row, except for some Italian codici fiscali: see
/// [`is_possible_codice_fiscale`].
pub(super) fn plain_word_letters(word: &str) -> Option<usize> {
    let word = word.strip_prefix(['(', '"', '\'']).unwrap_or(word);
    let word = word.strip_suffix([',', ';', ')', '"', '\'']).unwrap_or(word);
    // Inside a quoted value these are significant characters, at its end they are not.
    let word = word.trim_end_matches(['.', '!', '?']);
    let mut count = 0;
    for c in word.chars() {
        let letter = c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic() && is_unchanged(c);
        if !letter {
            return None;
        }
        count += 1;
    }
    (count <= MAX_LETTERS).then_some(count)
}

/// Whether a word may be a group of a codice fiscale whose digits are all written as letters; `before` is the number of letters of
/// the previous word.
pub(super) fn is_possible_codice_fiscale(before: usize, word: &str, letters: usize) -> bool {
    let digit = |c: char| matches!(c.to_ascii_uppercase(), 'L' | 'M' | 'N' | 'P'..='V');
    match (before, letters) {
        (6, 5 | 10) => word.chars().filter(char::is_ascii_alphabetic).take(2).all(digit),
        (11, 5) => true,
        _ => false,
    }
}
