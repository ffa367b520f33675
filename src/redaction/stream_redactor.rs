//! Streaming redaction: the output is the same as the redaction of the whole text, however the stream is split into chunks.
//!
//! Decisions depend only on positions in the text, never on chunk boundaries. At the end of each word, the held text is searched
//! together with some of the text already released, and everything that cannot become part of a match is released:
//!
//! - Plain words of letters are held until two more words follow ([`plain`](super::prefilter)).
//! - Any other word is held until enough text follows that it can neither belong to a match nor be a match's context word.
//! - Custom patterns hold back their maximum match length, the word, or the line ([`MatchExtent`]).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::normalized_text::NormalizedText;
use super::prefilter;
use super::redacted_ranges::RedactedRange;
use super::redaction_rule::{RedactionRule, Replacement};
use super::redactor::{Redactor, SearchScope};
use crate::pattern_analysis::MatchExtent;

/// The maximum number of bytes held back.
pub const MAX_HELD: usize = 16 << 10;

/// Bytes that must follow before no detector can match any more: the longest match that contains white space (a card number,
/// 75 bytes) and the farthest context word (20 bytes after the number, 31 long), with room for matches in this range
/// that redaction makes shorter.
const DETECTORS_LOOK_AHEAD: usize = 192;

/// Bytes of released text kept for look-behind: detectors look back 40 bytes.
const LOOK_BACK: usize = 256;

/// Maximum look-behind if the window has no better position to start at.
const MAX_LOOK_BACK: usize = 4 << 10;

/// Minimum number of new bytes before the same text is searched again.
const MIN_SEARCH_STEP: usize = 64;

/// The maximum length of an escape that the end of the text may begin.
const MAX_ESCAPE: usize = 36;

/// White space that ends a word. Other ASCII white space is a control character, which normalization drops.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// More text than can be held back may be part of one match, so none of it can be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_HELD} bytes may belong to one secret")]
pub struct MatchTooLongError;

/// The streaming redaction or replacement of one text.
#[derive(Debug)]
pub struct StreamRedactor {
    rule: Arc<dyn RedactionRule>,
    /// The held text and a part of the released text before it.
    window: String,
    /// Length of the first character of the window if it is only there for look-behind.
    look_behind: usize,
    /// How much of the window has been released.
    released: usize,
    /// The length of the window at the last search.
    searched: usize,
    /// The starts of the last three words, the newest last.
    word_starts: [usize; 3],
    /// The number of letters of the last word if it is plain.
    last_plain_letters: Option<usize>,
    /// The end of the last word that is not plain.
    candidates_end: usize,
    /// Positions that no detector match crosses: the window can start there.
    cut_points: VecDeque<usize>,
    extents: PatternExtents,
    released_total: u64,
}

/// The maximum extents of the custom patterns.
#[derive(Clone, Copy, Debug, Default)]
struct PatternExtents {
    bytes: Option<usize>,
    word: bool,
    line: bool,
}

impl StreamRedactor {
    /// Redacts the matches of a redactor.
    pub fn from_redactor(redactor: Arc<Redactor>) -> Self {
        Self::new(redactor)
    }

    /// Replaces the matches of a pattern.
    pub fn from_replacement(replacement: Arc<Replacement>) -> Self {
        Self::new(replacement)
    }

    fn new(rule: Arc<dyn RedactionRule>) -> Self {
        let mut extents = PatternExtents::default();
        for pattern in rule.patterns() {
            match MatchExtent::from_pattern(pattern) {
                Some(MatchExtent::Bytes(bytes)) => extents.bytes = extents.bytes.max(Some(bytes)),
                Some(MatchExtent::Word) => extents.word = true,
                // A pattern that can span lines is matched per line.
                Some(MatchExtent::Line) | None => extents.line = true,
            }
        }
        Self {
            rule,
            window: String::new(),
            look_behind: 0,
            released: 0,
            searched: 0,
            word_starts: [0; 3],
            last_plain_letters: None,
            candidates_end: 0,
            cut_points: VecDeque::new(),
            extents,
            released_total: 0,
        }
    }

    /// The number of bytes held back.
    pub fn held_bytes(&self) -> usize {
        self.window.len() - self.released
    }

    /// The number of bytes of the text that are released.
    pub fn released_bytes(&self) -> u64 {
        self.released_total
    }

    /// Adds a chunk of text, and appends to `redacted` what can be released.
    ///
    /// # Errors
    /// Returns [`MatchTooLongError`] if more than [`MAX_HELD`] bytes would have to be held back. The text appended to
    /// `redacted` is valid; nothing of the rest can be released.
    pub fn push(&mut self, more: &str, redacted: &mut String) -> Result<(), MatchTooLongError> {
        // Without detectors, and with short patterns only, white space has no significance.
        let anywhere = !self.rule.has_detectors() && !self.extents.word && !self.extents.line;
        for c in more.chars() {
            self.window.push(c);
            if is_space(c) {
                self.end_word(c);
                if !self.extents.line || c == '\n' {
                    self.release_or_search(redacted);
                }
            } else if anywhere && self.is_search_due() {
                self.search(redacted);
            }
            if self.held_bytes() > MAX_HELD {
                return Err(MatchTooLongError);
            }
        }
        Ok(())
    }

    /// Ends the text: returns the rest of it.
    pub fn finish(&mut self) -> String {
        self.end_word(' ');
        let mut redacted = String::new();
        let hidden = self.find_in_window();
        self.release(self.window.len(), &hidden, &mut redacted);
        redacted
    }

    /// Ends a word at white space or at the end of the text.
    fn end_word(&mut self, space: char) {
        let [.., start] = self.word_starts;
        let word = self.window.get(start..).unwrap_or_default();
        let trimmed = word.trim_end_matches(is_space);
        if !trimmed.is_empty() {
            let letters = prefilter::plain_word_letters(trimmed);
            let code = match (self.last_plain_letters, letters) {
                (Some(before), Some(letters)) => {
                    prefilter::is_possible_codice_fiscale(before, trimmed, letters)
                }
                _ => false,
            };
            if letters.is_none() || code {
                self.candidates_end = self.window.len();
            }
            self.last_plain_letters = letters;
            let [_, second, third] = self.word_starts;
            self.word_starts = [second, third, self.window.len()];
        } else {
            let [.., last] = &mut self.word_starts;
            *last = self.window.len();
        }
        // Numbers continue over spaces, but not over a word, a line, or such a sign. The sign must be visible: `&shy;` is not.
        let ends = |word: &str| {
            word.ends_with(|c: char| c.is_alphabetic() || matches!(c, ',' | ';' | ':' | '!' | '?' | '"'))
        };
        let plain = self.last_plain_letters.is_some();
        if space != ' ' || ends(trimmed) && (plain || ends(NormalizedText::new(trimmed).text())) {
            self.cut_points.push_back(self.window.len());
        }
    }

    fn release_or_search(&mut self, redacted: &mut String) {
        let patterned = !self.rule.patterns().is_empty();
        if !patterned && !self.has_candidates() {
            let [before_last, ..] = self.word_starts;
            self.release(before_last, &[], redacted);
            // All text for look-behind must be plain: the window does not record what was redacted before.
            if self.candidates_end + LOOK_BACK < self.released {
                self.drop_released(self.candidates_end..self.released - LOOK_BACK, &[]);
            }
        } else if self.is_search_due() {
            self.search(redacted);
        }
    }

    /// Whether enough new text has arrived for a search: the more is held, the more is needed.
    fn is_search_due(&self) -> bool {
        self.extents.line || self.window.len() >= self.searched + MIN_SEARCH_STEP.max(self.held_bytes() / 8)
    }

    /// Whether the held text has words in which a detector can match.
    fn has_candidates(&self) -> bool {
        self.candidates_end > self.released
    }

    fn find_in_window(&self) -> Vec<RedactedRange> {
        let scope = SearchScope { start: self.look_behind, skip_detectors: !self.has_candidates() };
        self.rule.find_redactions(&self.window, &scope)
    }

    /// Searches the held text, and releases what is certain.
    fn search(&mut self, redacted: &mut String) {
        self.searched = self.window.len();
        let hidden = self.find_in_window();
        let end = self.window.len();
        let [before_last, ..] = self.word_starts;
        let mut certain = end;
        let has_candidates = self.has_candidates();
        if self.rule.has_detectors() {
            let limit = if has_candidates {
                self.look_behind_start(end, DETECTORS_LOOK_AHEAD, &hidden)
            } else {
                before_last
            };
            certain = certain.min(limit);
        }
        if let Some(bytes) = self.extents.bytes {
            // A match at the end may still be redacted, and be shorter then.
            certain = certain.min(self.look_behind_start(end, 2 * bytes + MAX_ESCAPE, &hidden));
        }
        if self.extents.line {
            let line = self.window.rfind('\n').map_or(0, |at| at + 1);
            certain = certain.min(line);
        }
        self.release(certain, &hidden, redacted);
        let needed = self.look_behind_start(self.released, LOOK_BACK, &hidden);
        self.drop_released(0..needed, &hidden);
    }

    /// Returns the start of the last `bytes` bytes of redacted text before `end`.
    fn look_behind_start(&self, end: usize, bytes: usize, hidden: &[RedactedRange]) -> usize {
        let mut missing = bytes;
        let mut end = end;
        for one in hidden.iter().rev().map(Some).chain([None]) {
            let start = one.map_or(0, |one| one.range.end).min(end);
            let piece = NormalizedText::new(self.window.get(start..end).unwrap_or_default());
            let length = piece.text().len();
            if length >= missing {
                let boundary = piece.text().floor_char_boundary(length - missing);
                return start
                    + if boundary < length {
                        piece.original_range(&(boundary..boundary + 1)).start
                    } else {
                        end - start
                    };
            }
            missing -= length;
            let Some(one) = one else { break };
            end = one.range.start.min(end);
            if one.replacement.len() >= missing {
                return end;
            }
            missing -= one.replacement.len();
        }
        0
    }

    /// Releases the text before an offset, or before a redacted range that crosses it.
    fn release(&mut self, certain: usize, hidden: &[RedactedRange], redacted: &mut String) {
        let across = hidden.iter().find(|one| one.range.start < certain && certain < one.range.end);
        let mut certain = across.map_or(certain, |one| one.range.start);
        while !self.window.is_char_boundary(certain) {
            certain -= 1;
        }
        if certain <= self.released {
            return;
        }
        redacted.push_str(&RedactedRange::apply(hidden, &self.window, self.released..certain));
        self.released_total += (certain - self.released) as u64;
        self.released = certain;
    }

    /// Drops text that is not needed for look-behind any more: the window then starts within this range.
    fn drop_released(&mut self, range: Range<usize>, hidden: &[RedactedRange]) {
        // Do not do this for every word.
        if range.end < 2 * LOOK_BACK {
            return;
        }
        let whole =
            |offset: usize| !hidden.iter().any(|one| one.range.start < offset && offset < one.range.end);
        let usable = |offset: &&usize| **offset <= range.end && **offset >= range.start && whole(**offset);
        let cut = match self.cut_points.iter().rev().find(usable) {
            Some(cut) => *cut,
            None if range.end < MAX_LOOK_BACK => return,
            None => self.window.floor_char_boundary(range.end),
        };
        let lead =
            self.window.get(..cut).and_then(|before| before.chars().next_back()).map_or(0, char::len_utf8);
        let removed = cut - lead;
        self.window.drain(..removed);
        self.look_behind = lead;
        for offset in [&mut self.released, &mut self.searched, &mut self.candidates_end]
            .into_iter()
            .chain(&mut self.word_starts)
        {
            *offset = offset.saturating_sub(removed);
        }
        self.cut_points.retain_mut(|offset| {
            let is_after_cut = *offset > cut;
            *offset = offset.saturating_sub(removed);
            is_after_cut
        });
    }
}
