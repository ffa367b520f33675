//! Redaction of a text that comes in pieces: what is passed on is what redaction of the whole would have left, however the
//! text was cut.
//!
//! All decisions are made at places that the text itself has, never at those where it happened to be cut, so the cuts can't
//! matter. At the end of each word what is held is looked at together with some of what was passed on before, and all passes
//! that can't become part of a find any more:
//!
//! - Words of letters alone are held until two more words have followed ([`plain`](super::plain)).
//! - After any other word so much more must have come that nothing in it can belong to a find, or be what a find is known by.
//! - The author's patterns hold back as much as their longest match can be, the word, or the line ([`Reach`]).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use regex::Regex;

use super::fold::Folded;
use super::hidden::Hidden;
use super::redactor::{Redactor, Scope};
use super::replacement::Replacement;
use super::subject::Keys;
use super::{Reach, plain};

/// The most bytes of a text that are held back.
pub const MAX_HELD: usize = 16 << 10;

/// What must have followed before it is certain that no detector finds anything in a text: the longest find with white space in
/// it (a card number, 75 bytes) and the farthest word that says what a number is (20 bytes after it, 31 long), with room for
/// finds among these that become shorter when they are hidden.
const DETECTORS_LOOK_AHEAD: usize = 192;

/// What is kept of what was passed on, to be looked back at: detectors look back 40 bytes.
const LOOK_BACK: usize = 256;

/// Where nothing better is found, this much is kept at most.
const MOST_LOOK_BACK: usize = 4 << 10;

/// So much must have come before the same text is looked at again.
const STEP: usize = 64;

/// The end of a text can be the beginning of an escape that is so long.
const LONGEST_ESCAPE: usize = 36;

/// White space that ends a word. Other ASCII white space is a control character, which detectors see through.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// More of a text than can be held back might be part of one find: nothing of it can be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_HELD} bytes might be one secret")]
pub struct Overlong;

/// What a sieve takes out of a text.
pub(super) trait Hiding: std::fmt::Debug + Send + Sync {
    /// What of a text is hidden, in order, and what stands there instead.
    fn hidden(&self, text: &str, scope: &Scope) -> Vec<Hidden>;
    /// The patterns that it looks for.
    fn patterns(&self) -> &[Regex];
    /// Whether it looks for what detectors find.
    fn detects(&self) -> bool;
}

impl Hiding for Redactor {
    fn hidden(&self, text: &str, scope: &Scope) -> Vec<Hidden> {
        self.hidden(text, Keys::default(), scope)
    }

    fn patterns(&self) -> &[Regex] {
        self.patterns()
    }

    fn detects(&self) -> bool {
        self.detects()
    }
}

/// One text on its way through a redactor, or a replacement.
#[derive(Debug)]
pub struct Sieve {
    hiding: Arc<dyn Hiding>,
    /// The text from a little before what is held.
    window: String,
    /// How much of the window stands there only to be looked back at by one character.
    lead: usize,
    /// How much of the window was passed on.
    passed: usize,
    /// How much of the window was there when it was looked at last.
    looked: usize,
    /// Where the last words begin, the last one last.
    words: [usize; 3],
    /// How many letters the last plain word had.
    letters: Option<usize>,
    /// Where the last word that is not plain ends.
    telling: usize,
    /// Where no candidate of a detector goes on: places after which the window can begin.
    breaks: VecDeque<usize>,
    reaches: Reaches,
    decided: u64,
}

/// How far the author's patterns can go.
#[derive(Clone, Copy, Debug, Default)]
struct Reaches {
    bytes: Option<usize>,
    word: bool,
    line: bool,
}

impl Sieve {
    /// What the redactor finds is hidden.
    pub fn redacting(redactor: Arc<Redactor>) -> Self {
        Self::new(redactor)
    }

    /// What the pattern finds is replaced.
    pub fn replacing(replacement: Arc<Replacement>) -> Self {
        Self::new(replacement)
    }

    fn new(hiding: Arc<dyn Hiding>) -> Self {
        let mut reaches = Reaches::default();
        for pattern in hiding.patterns() {
            match Reach::of(pattern) {
                Some(Reach::Bytes(bytes)) => reaches.bytes = reaches.bytes.max(Some(bytes)),
                Some(Reach::Word) => reaches.word = true,
                // Where a pattern goes on over lines, it is looked for in each line.
                Some(Reach::Line) | None => reaches.line = true,
            }
        }
        Self {
            hiding,
            window: String::new(),
            lead: 0,
            passed: 0,
            looked: 0,
            words: [0; 3],
            letters: None,
            telling: 0,
            breaks: VecDeque::new(),
            reaches,
            decided: 0,
        }
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.window.len() - self.passed
    }

    /// How many bytes of the text have been decided upon.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Takes more of the text, and adds to `shown` what can be passed on.
    ///
    /// # Errors
    /// More than [`MAX_HELD`] bytes would have to be held back. What was added to `shown` can be passed on all the same; of the
    /// rest nothing can.
    pub fn push(&mut self, more: &str, shown: &mut String) -> Result<(), Overlong> {
        // Without detectors, and with patterns that can't go far, white space means nothing.
        let anywhere = !self.hiding.detects() && !self.reaches.word && !self.reaches.line;
        for c in more.chars() {
            self.window.push(c);
            if is_space(c) {
                self.end_word(c);
                if !self.reaches.line || c == '\n' {
                    self.advance(shown);
                }
            } else if anywhere && self.is_due() {
                self.look(shown);
            }
            if self.held() > MAX_HELD {
                return Err(Overlong);
            }
        }
        Ok(())
    }

    /// The text has ended: what is left of it.
    pub fn finish(&mut self) -> String {
        self.end_word(' ');
        let mut shown = String::new();
        let hidden = self.hidden();
        self.pass(self.window.len(), &hidden, &mut shown);
        shown
    }

    /// White space has come, or the end: what stands before it is a whole word.
    fn end_word(&mut self, space: char) {
        let [.., start] = self.words;
        let word = self.window.get(start..).unwrap_or_default();
        let trimmed = word.trim_end_matches(is_space);
        if !trimmed.is_empty() {
            let letters = plain::letters(trimmed);
            let code = match (self.letters, letters) {
                (Some(before), Some(letters)) => plain::may_be_code(before, trimmed, letters),
                _ => false,
            };
            if letters.is_none() || code {
                self.telling = self.window.len();
            }
            self.letters = letters;
            let [_, second, third] = self.words;
            self.words = [second, third, self.window.len()];
        } else {
            let [.., last] = &mut self.words;
            *last = self.window.len();
        }
        // Numbers go on over blanks, but not over a word, a line, or such a sign. The sign must be one that can be seen: `&shy;` is none.
        let ends = |word: &str| {
            word.ends_with(|c: char| c.is_alphabetic() || matches!(c, ',' | ';' | ':' | '!' | '?' | '"'))
        };
        let plain = self.letters.is_some();
        if space != ' ' || ends(trimmed) && (plain || ends(Folded::new(trimmed).text())) {
            self.breaks.push_back(self.window.len());
        }
    }

    fn advance(&mut self, shown: &mut String) {
        let patterned = !self.hiding.patterns().is_empty();
        if !patterned && !self.is_telling() {
            let [before_last, ..] = self.words;
            self.pass(before_last, &[], shown);
            // All that is looked back at must be plain: what was hidden before is not known any more.
            if self.telling + LOOK_BACK < self.passed {
                self.forget(self.telling..self.passed - LOOK_BACK, &[]);
            }
        } else if self.is_due() {
            self.look(shown);
        }
    }

    /// Whether so much has come that it is worth a look: the more is held, the more.
    fn is_due(&self) -> bool {
        self.reaches.line || self.window.len() >= self.looked + STEP.max(self.held() / 8)
    }

    /// Whether what is held has words in which a detector can find something.
    fn is_telling(&self) -> bool {
        self.telling > self.passed
    }

    fn hidden(&self) -> Vec<Hidden> {
        let scope = Scope { from: self.lead, plain: !self.is_telling() };
        self.hiding.hidden(&self.window, &scope)
    }

    /// Looks at what is held, and passes on what is certain.
    fn look(&mut self, shown: &mut String) {
        self.looked = self.window.len();
        let hidden = self.hidden();
        let end = self.window.len();
        let [before_last, ..] = self.words;
        let mut certain = end;
        let telling = self.is_telling();
        if self.hiding.detects() {
            let limit = if telling { self.back(end, DETECTORS_LOOK_AHEAD, &hidden) } else { before_last };
            certain = certain.min(limit);
        }
        if let Some(bytes) = self.reaches.bytes {
            // A match at the end may be hidden yet, and be shorter then.
            certain = certain.min(self.back(end, 2 * bytes + LONGEST_ESCAPE, &hidden));
        }
        if self.reaches.line {
            let line = self.window.rfind('\n').map_or(0, |at| at + 1);
            certain = certain.min(line);
        }
        self.pass(certain, &hidden, shown);
        let needed = self.back(self.passed, LOOK_BACK, &hidden);
        self.forget(0..needed, &hidden);
    }

    /// The place from which on, up to `end`, so many bytes would be shown.
    fn back(&self, end: usize, bytes: usize, hidden: &[Hidden]) -> usize {
        let mut missing = bytes;
        let mut end = end;
        for one in hidden.iter().rev().map(Some).chain([None]) {
            let start = one.map_or(0, |one| one.place.end).min(end);
            let piece = Folded::new(self.window.get(start..end).unwrap_or_default());
            let length = piece.text().len();
            if length >= missing {
                let place = piece.text().floor_char_boundary(length - missing);
                return start
                    + if place < length { piece.original(&(place..place + 1)).start } else { end - start };
            }
            missing -= length;
            let Some(one) = one else { break };
            end = one.place.start.min(end);
            if one.text.len() >= missing {
                return end;
            }
            missing -= one.text.len();
        }
        0
    }

    /// Passes on what stands before a place, or before what is hidden across it.
    fn pass(&mut self, certain: usize, hidden: &[Hidden], shown: &mut String) {
        let across = hidden.iter().find(|one| one.place.start < certain && certain < one.place.end);
        let mut certain = across.map_or(certain, |one| one.place.start);
        while !self.window.is_char_boundary(certain) {
            certain -= 1;
        }
        if certain <= self.passed {
            return;
        }
        shown.push_str(&Hidden::splice(hidden, &self.window, self.passed..certain));
        self.decided += (certain - self.passed) as u64;
        self.passed = certain;
    }

    /// Drops what nobody will look back at any more: the window then begins within these places.
    fn forget(&mut self, places: Range<usize>, hidden: &[Hidden]) {
        // Not for every word.
        if places.end < 2 * LOOK_BACK {
            return;
        }
        let whole = |place: usize| !hidden.iter().any(|one| one.place.start < place && place < one.place.end);
        let usable = |place: &&usize| **place <= places.end && **place >= places.start && whole(**place);
        let cut = match self.breaks.iter().rev().find(usable) {
            Some(cut) => *cut,
            None if places.end < MOST_LOOK_BACK => return,
            None => self.window.floor_char_boundary(places.end),
        };
        let lead =
            self.window.get(..cut).and_then(|before| before.chars().next_back()).map_or(0, char::len_utf8);
        let gone = cut - lead;
        self.window.drain(..gone);
        self.lead = lead;
        for place in
            [&mut self.passed, &mut self.looked, &mut self.telling].into_iter().chain(&mut self.words)
        {
            *place = place.saturating_sub(gone);
        }
        self.breaks.retain_mut(|place| {
            let kept = *place > cut;
            *place = place.saturating_sub(gone);
            kept
        });
    }
}
