//! Progress counter on stderr for long runs.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use super::output::group_digits;

/// The interval between updates, and the delay before the line first appears.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// A counter line on stderr, if that is a terminal.
pub(super) struct Progress {
    watched: bool,
    /// The noun for the things counted, in the plural.
    word: &'static str,
    count: usize,
    next: Instant,
    shown: bool,
}

impl Progress {
    /// Creates a counter. `wanted` is false if the line would mix with the results.
    pub(super) fn new(word: &'static str, wanted: bool) -> Self {
        let watched = wanted && stderr().is_terminal();
        Self { watched, word, count: 0, next: Instant::now() + UPDATE_INTERVAL, shown: false }
    }

    /// Counts one.
    pub(super) fn increment(&mut self) {
        self.count += 1;
        // The clock is not read every time.
        if self.watched && self.count.is_multiple_of(64) && Instant::now() >= self.next {
            self.next = Instant::now() + UPDATE_INTERVAL;
            self.shown = true;
            let _ = write!(stderr(), "\r{} {}", group_digits(self.count), self.word);
        }
    }

    /// Sets the count out of a total, for slow steps.
    pub(super) fn set(&mut self, count: usize, of: usize) {
        self.count = count;
        if self.watched && Instant::now() >= self.next {
            self.next = Instant::now() + UPDATE_INTERVAL;
            self.shown = true;
            let _ = write!(stderr(), "\r{} of {} {}", group_digits(count), group_digits(of), self.word);
        }
    }

    /// Clears the line.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
