//! Input of a detector: one normalized text, its JSON keys, and the context words near an offset.

use std::ops::Range;

use regex::Regex;

use super::normalized_text::NormalizedText;

/// Compiles a built-in pattern.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants of this module; the corpus runs every one"
)]
pub(super) fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is valid")
}

/// Compiles a pattern of context words: whole words, case-insensitive, `_` counts as a space.
pub(super) fn compile_words(alternatives: &str) -> Regex {
    compile_pattern(&format!(r"(?i)(?:(?-u:\b)|_)(?:{alternatives})(?:(?-u:\b)|_)"))
}

/// The JSON keys of a string.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JsonKeys<'a> {
    /// The nearest key.
    pub(super) own: Option<&'a str>,
    /// Its parent key.
    pub(super) parent: Option<&'a str>,
}

impl<'a> JsonKeys<'a> {
    /// The keys of the value under `key`.
    pub(super) fn child(self, key: &'a str) -> Self {
        Self { own: Some(key), parent: self.own }
    }

    /// Splits a key into words: `customerSsn`, `customer_ssn` and `Customer-SSN` all become `customer ssn` except for case; normalized.
    pub(super) fn to_words(key: &str) -> String {
        let folded = NormalizedText::new(key);
        let key = folded.text();
        let mut spaced = String::with_capacity(key.len() + 4);
        let mut after_lower = false;
        for c in key.chars() {
            if after_lower && c.is_uppercase() {
                spaced.push(' ');
            }
            after_lower = c.is_lowercase() || c.is_ascii_digit();
            spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        }
        spaced
    }
}

/// The input of a detector.
pub(super) struct DetectorInput<'a> {
    /// The normalized text.
    pub(super) text: &'a str,
    /// Its JSON keys.
    pub(super) keys: JsonKeys<'a>,
}

impl<'a> DetectorInput<'a> {
    /// The last two characters before an offset, nearest first.
    pub(super) fn chars_before(&self, at: usize) -> (Option<char>, Option<char>) {
        let mut characters = self.text.get(..at).unwrap_or_default().chars().rev();
        (characters.next(), characters.next())
    }

    /// The first two characters from an offset on.
    pub(super) fn chars_after(&self, at: usize) -> (Option<char>, Option<char>) {
        let mut characters = self.text.get(at..).unwrap_or_default().chars();
        (characters.next(), characters.next())
    }

    /// Up to `bytes` bytes of text before an offset.
    pub(super) fn text_before(&self, at: usize, bytes: usize) -> &'a str {
        let from = (at.saturating_sub(bytes)..=at).find(|from| self.text.is_char_boundary(*from));
        from.and_then(|from| self.text.get(from..at)).unwrap_or_default()
    }

    /// Whether a range is not part of a longer word or number.
    pub(super) fn is_isolated(&self, range: &Range<usize>) -> bool {
        let attached = |(near, beyond): (Option<char>, Option<char>)| match near {
            Some('-' | '+') => beyond.is_some_and(char::is_alphanumeric),
            Some('.' | '/') => beyond.is_some_and(|beyond| beyond.is_ascii_digit()),
            near => near.is_some_and(is_word),
        };
        let before = self.chars_before(range.start);
        before.0 != Some('+') && !attached(before) && !attached(self.chars_after(range.end))
    }

    /// Finds context words, for several lookups.
    pub(super) fn find_context_words(&self, words: &Regex) -> ContextWords {
        let under_key = [self.keys.own, self.keys.parent]
            .into_iter()
            .flatten()
            .any(|key| words.is_match(&JsonKeys::to_words(key)));
        let ranges =
            if under_key { Vec::new() } else { words.find_iter(self.text).map(|m| m.range()).collect() };
        ContextWords { under_key, ranges }
    }
}

/// Whether a character continues a word or number.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The positions of context words in one text.
pub(super) struct ContextWords {
    under_key: bool,
    ranges: Vec<Range<usize>>,
}

impl ContextWords {
    /// Whether a context word is at most `before` bytes before a range, `after` bytes after it, or in its key.
    pub(super) fn is_near(&self, range: &Range<usize>, before: usize, after: usize) -> bool {
        if self.under_key {
            return true;
        }
        let next = self.ranges.partition_point(|other| other.start < range.start);
        let preceding = next.checked_sub(1).and_then(|index| self.ranges.get(index));
        preceding.is_some_and(|other| other.end + before >= range.start)
            || self.ranges.get(next).is_some_and(|other| other.start <= range.end + after)
    }
}
