//! What a detector looks at: one folded text, the key it stands under, and the words near a place.

use std::ops::Range;

use regex::Regex;

use super::fold::Folded;

/// Compiles one of the detectors' own patterns.
#[expect(clippy::expect_used, reason = "the patterns are constants of this room; the corpus runs every one")]
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is well formed")
}

/// A pattern of context words: whole words, in any case, `_` counting as a space.
pub(super) fn words(alternatives: &str) -> Regex {
    pattern(&format!(r"(?i)(?:(?-u:\b)|_)(?:{alternatives})(?:(?-u:\b)|_)"))
}

/// The names that a text stands under in a JSON value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keys<'a> {
    /// The nearest key.
    pub(super) own: Option<&'a str>,
    /// The key above it.
    pub(super) parent: Option<&'a str>,
}

impl<'a> Keys<'a> {
    /// The names of what stands under `key` here.
    pub(super) fn under(self, key: &'a str) -> Self {
        Self { own: Some(key), parent: self.own }
    }

    /// A key as words: `customerSsn`, `customer_ssn` and `Customer-SSN` are all `customer ssn` but for case; folded as texts are.
    pub(super) fn spaced(key: &str) -> String {
        let folded = Folded::new(key);
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

/// One text to look at.
pub(super) struct Subject<'a> {
    /// The folded text.
    pub(super) text: &'a str,
    /// Where it stands.
    pub(super) keys: Keys<'a>,
}

impl<'a> Subject<'a> {
    /// The last two characters before a place, nearest first.
    pub(super) fn before(&self, at: usize) -> (Option<char>, Option<char>) {
        let mut characters = self.text.get(..at).unwrap_or_default().chars().rev();
        (characters.next(), characters.next())
    }

    /// The first two characters from a place on.
    pub(super) fn after(&self, at: usize) -> (Option<char>, Option<char>) {
        let mut characters = self.text.get(at..).unwrap_or_default().chars();
        (characters.next(), characters.next())
    }

    /// Up to `bytes` bytes of text before a place.
    pub(super) fn tail(&self, at: usize, bytes: usize) -> &'a str {
        let from = (at.saturating_sub(bytes)..=at).find(|from| self.text.is_char_boundary(*from));
        from.and_then(|from| self.text.get(from..at)).unwrap_or_default()
    }

    /// Whether a place is no part of a longer word or number.
    pub(super) fn stands_alone(&self, range: &Range<usize>) -> bool {
        let attached = |(near, beyond): (Option<char>, Option<char>)| match near {
            Some('-' | '+') => beyond.is_some_and(char::is_alphanumeric),
            Some('.' | '/') => beyond.is_some_and(|beyond| beyond.is_ascii_digit()),
            near => near.is_some_and(is_word),
        };
        let before = self.before(range.start);
        before.0 != Some('+') && !attached(before) && !attached(self.after(range.end))
    }

    /// Where context words stand, to be asked for many places.
    pub(super) fn context(&self, words: &Regex) -> Context {
        let under_key = [self.keys.own, self.keys.parent]
            .into_iter()
            .flatten()
            .any(|key| words.is_match(&Keys::spaced(key)));
        let places =
            if under_key { Vec::new() } else { words.find_iter(self.text).map(|m| m.range()).collect() };
        Context { under_key, places }
    }
}

/// A character that makes what it touches part of a longer whole.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The places of context words in one text.
pub(super) struct Context {
    under_key: bool,
    places: Vec<Range<usize>>,
}

impl Context {
    /// Whether a word stands at most `before` bytes before a place or `after` bytes after it, or in its key.
    pub(super) fn near(&self, range: &Range<usize>, before: usize, after: usize) -> bool {
        if self.under_key {
            return true;
        }
        let next = self.places.partition_point(|place| place.start < range.start);
        let preceding = next.checked_sub(1).and_then(|index| self.places.get(index));
        preceding.is_some_and(|place| place.end + before >= range.start)
            || self.places.get(next).is_some_and(|place| place.start <= range.end + after)
    }
}
