//! Progress counter on stderr for long runs.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use super::output::group_digits;

/// The interval between updates, and the delay before the line first appears.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// A counter line on stderr, if that is a terminal.
pub(super) struct Progress {
    is_enabled: bool,
    /// The noun for the things counted, in the plural.
    noun: &'static str,
    count: usize,
    next_update: Instant,
    is_visible: bool,
}

impl Progress {
    /// Creates a counter. `wanted` is false if the line would mix with the results.
    pub(super) fn new(noun: &'static str, wanted: bool) -> Self {
        let is_enabled = wanted && stderr().is_terminal();
        Self { is_enabled, noun, count: 0, next_update: Instant::now() + UPDATE_INTERVAL, is_visible: false }
    }

    /// Counts one.
    pub(super) fn increment(&mut self) {
        self.count += 1;
        // The clock is not read every time.
        if self.is_enabled && self.count.is_multiple_of(64) && Instant::now() >= self.next_update {
            self.next_update = Instant::now() + UPDATE_INTERVAL;
            self.is_visible = true;
            let _ = write!(stderr(), "\r{} {}", group_digits(self.count), self.noun);
        }
    }

    /// Sets the count out of a total, for slow steps.
    pub(super) fn set(&mut self, count: usize, of: usize) {
        self.count = count;
        if self.is_enabled && Instant::now() >= self.next_update {
            self.next_update = Instant::now() + UPDATE_INTERVAL;
            self.is_visible = true;
            let _ = write!(stderr(), "\r{} of {} {}", group_digits(count), group_digits(of), self.noun);
        }
    }

    /// Clears the line.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_visible) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
