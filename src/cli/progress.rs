//! How far a long run is, for the person who waits for it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use super::output::grouped;

/// So often the line is renewed, and so long it does not appear at all.
const PACE: Duration = Duration::from_millis(500);

/// A line on stderr that counts, where that is a terminal.
pub(super) struct Progress {
    watched: bool,
    /// What is counted.
    word: &'static str,
    count: usize,
    next: Instant,
    shown: bool,
}

impl Progress {
    /// `wanted`: whether the line would not stand among the results.
    pub(super) fn new(word: &'static str, wanted: bool) -> Self {
        let watched = wanted && stderr().is_terminal();
        Self { watched, word, count: 0, next: Instant::now() + PACE, shown: false }
    }

    /// One more.
    pub(super) fn step(&mut self) {
        self.count += 1;
        // The clock is not read every time.
        if self.watched && self.count.is_multiple_of(64) && Instant::now() >= self.next {
            self.next = Instant::now() + PACE;
            self.shown = true;
            let _ = write!(stderr(), "\r{} {}", grouped(self.count), self.word);
        }
    }

    /// So many of so many, where each takes its time.
    pub(super) fn step_of(&mut self, count: usize, of: usize) {
        self.count = count;
        if self.watched && Instant::now() >= self.next {
            self.next = Instant::now() + PACE;
            self.shown = true;
            let _ = write!(stderr(), "\r{} of {} {}", grouped(count), grouped(of), self.word);
        }
    }

    /// Takes the line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
