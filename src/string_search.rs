//! Searches a text for many strings in one pass: strings + text → where they occur.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Strings to search for.
#[derive(Clone, Debug)]
pub(crate) struct StringSearch(AhoCorasick);

/// Strings to search for, of which one may be a part of another one.
#[derive(Debug)]
pub(crate) struct OverlappingSearch(AhoCorasick);

impl StringSearch {
    /// Prepares the search. Returns `None` if there are too many strings.
    pub(crate) fn new<T: AsRef<[u8]>>(strings: impl IntoIterator<Item = T>) -> Option<Self> {
        AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(strings).ok().map(Self)
    }

    /// Whether one of the strings occurs in a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Where the strings occur, from left to right, without overlaps: at each position the longest one.
    pub(crate) fn ranges(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.0.find_iter(text).map(|found| found.range())
    }
}

impl OverlappingSearch {
    /// Prepares the search. Returns `None` if there are too many strings.
    pub(crate) fn new<T: AsRef<[u8]>>(strings: impl IntoIterator<Item = T>) -> Option<Self> {
        AhoCorasick::new(strings).ok().map(Self)
    }

    /// Prepares the search so that it takes little memory. Returns `None` if there are too many strings.
    pub(crate) fn compact<T: AsRef<[u8]>>(strings: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        builder.kind(Some(AhoCorasickKind::ContiguousNFA)).build(strings).ok().map(Self)
    }

    /// The index of each string that occurs in a text, once for each occurrence.
    pub(crate) fn indices(&self, text: &str) -> impl Iterator<Item = usize> {
        self.0.find_overlapping_iter(text).map(|found| found.pattern().as_usize())
    }
}
