//! How far a long run is, for the person who waits for it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::cli::output::{Output, grouped};

/// So often the line is renewed, and so long it does not appear at all.
const PACE: Duration = Duration::from_millis(500);

/// A line on stderr, where that is a terminal and the results go elsewhere.
pub(super) struct Progress {
    watched: bool,
    calls: usize,
    next: Instant,
    shown: bool,
}

impl Progress {
    pub(super) fn new(output: &Output) -> Self {
        let watched = output.width.is_none() && stderr().is_terminal();
        Self { watched, calls: 0, next: Instant::now() + PACE, shown: false }
    }

    /// One more call.
    pub(super) fn step(&mut self) {
        self.calls += 1;
        // The clock is not read for every call.
        if self.watched && self.calls.is_multiple_of(64) && Instant::now() >= self.next {
            self.next = Instant::now() + PACE;
            self.shown = true;
            let _ = write!(stderr(), "\r{} calls", grouped(self.calls));
        }
    }

    /// Takes the line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
