//! Words and phrases in a text.

use super::boundary::is_hidden;
use crate::unicode::{fold_case, is_word_char};

/// Marks the begin and the end of a word, and what is not a token, in an encoded text. No text has these characters elsewhere in its
/// encoding.
const WORD_START: char = '\u{2}';
const WORD_END: char = '\u{3}';
pub(super) const NOT_A_TOKEN: char = '\u{1}';

/// The minimum number of letters and digits of a subject.
const MIN_LENGTH: usize = 2;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPart<'t> {
    /// A word, without a final `'s`.
    Word(&'t str),
    /// A final `'s`.
    Possessive,
    /// A run of white space.
    Space,
    /// An invisible character, or what touches one.
    NotAToken,
    /// Any other character.
    Other(char),
}

/// Returns the words of a composed text, with folded case.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_part(text, |part| {
        if let TextPart::Word(word) = part {
            words.push(fold_word(word));
        }
    });
    words
}

/// Encodes a composed text so that a phrase is mentioned in it exactly if its encoding contains that of the phrase.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + text.len() / 2);
    for_each_part(text, |part| match part {
        TextPart::Word(word) => {
            encoded.push(WORD_START);
            encoded.push_str(&fold_word(word));
            encoded.push(WORD_END);
        }
        TextPart::Possessive => encoded.push_str("'s"),
        TextPart::Space => encoded.push(' '),
        TextPart::NotAToken => encoded.push(NOT_A_TOKEN),
        TextPart::Other(c) => encoded.push(c),
    });
    encoded
}

/// Encodes a phrase. Returns `None` if it has fewer than two letters or digits, or white space at its ends.
pub(super) fn encode_subject(phrase: &str) -> Option<String> {
    let length = phrase.chars().filter(|c| c.is_alphanumeric()).take(MIN_LENGTH).count();
    let is_whole = length == MIN_LENGTH && phrase.trim() == phrase;
    is_whole.then(|| encode(phrase)).filter(|encoded| !encoded.contains(NOT_A_TOKEN))
}

/// Folds the case of a word; a typographic apostrophe is an apostrophe, and a typographic hyphen is a hyphen.
fn fold_word(word: &str) -> String {
    fold_case(word).replace('’', "'").replace(is_hyphen, "-")
}

fn for_each_part<'t>(text: &'t str, mut visit: impl FnMut(TextPart<'t>)) {
    let mut rest = text;
    let mut touches_hidden = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_hidden(first) => {
                visit(TextPart::NotAToken);
                first.len_utf8()
            }
            _ if first.is_whitespace() => {
                visit(TextPart::Space);
                rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() && !is_hidden(c)).len()
            }
            _ if is_word_char(first) => {
                let (word, after) = rest.split_at_checked(word_length(rest)).unwrap_or((rest, ""));
                if touches_hidden || after.chars().next().is_some_and(is_hidden) {
                    visit(TextPart::NotAToken);
                } else {
                    match strip_possessive(word) {
                        Some(stem) => {
                            visit(TextPart::Word(stem));
                            visit(TextPart::Possessive);
                        }
                        None => visit(TextPart::Word(word)),
                    }
                }
                word.len()
            }
            _ => {
                let after = rest.chars().nth(1);
                let is_touched = touches_hidden || after.is_some_and(is_hidden);
                visit(if is_touched { TextPart::NotAToken } else { TextPart::Other(first) });
                first.len_utf8()
            }
        };
        touches_hidden = is_hidden(first);
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// Returns the length of the word at the start of a text: runs of word characters with single joining characters between them.
fn word_length(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let continues =
            is_word_char(c) || joins(c) && chars.peek().is_some_and(|(_, next)| is_word_char(*next));
        if !continues {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// Whether a character between two word characters joins them. An em dash separates words, and so do full-width forms such as `：`.
fn joins(c: char) -> bool {
    // Quotation marks are in Hebrew abbreviations, middle dots in Catalan words and in names.
    matches!(c, '\'' | '’' | '"' | '״' | '׳' | '.' | '@' | '/' | ':' | '·' | '‧') || is_hyphen(c)
}

/// Whether a character is a hyphen, or a dash that is written in its place.
fn is_hyphen(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2013}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}')
}

fn strip_possessive(word: &str) -> Option<&str> {
    let stem = word.strip_suffix(['s', 'S'])?.strip_suffix(['\'', '’'])?;
    (!stem.is_empty()).then_some(stem)
}
