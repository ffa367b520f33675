//! Words in which, and in whose company, no detector can find anything: most of any prose.

use super::fold::stands_for_itself;

/// The most letters of a plain word; random tokens and secrets of letters alone are longer.
const MAX_LETTERS: usize = 15;

/// How many letters a word has, if it is plain: letters with at most one mark before and a few behind. All that detectors
/// find has a digit, another sign, or more letters in a row; an Italian codice fiscale may not, see [`may_be_code`].
pub(super) fn letters(word: &str) -> Option<usize> {
    let word = word.strip_prefix(['(', '"', '\'']).unwrap_or(word);
    let word = word.strip_suffix([',', ';', ')', '"', '\'']).unwrap_or(word);
    // Inside of a quoted value these would be signs, at the end of one they are not.
    let word = word.trim_end_matches(['.', '!', '?']);
    let mut count = 0;
    for c in word.chars() {
        let letter = c.is_ascii_alphabetic() || !c.is_ascii() && c.is_alphabetic() && stands_for_itself(c);
        if !letter {
            return None;
        }
        count += 1;
    }
    (count <= MAX_LETTERS).then_some(count)
}

/// Whether a word may be a group of a codice fiscale in which letters stand for all digits; `before` is how many letters the
/// word before it has.
pub(super) fn may_be_code(before: usize, word: &str, letters: usize) -> bool {
    let digit = |c: char| matches!(c.to_ascii_uppercase(), 'L' | 'M' | 'N' | 'P'..='V');
    match (before, letters) {
        (6, 5 | 10) => word.chars().filter(char::is_ascii_alphabetic).take(2).all(digit),
        (11, 5) => true,
        _ => false,
    }
}
