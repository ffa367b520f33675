//! What `print` and `debug` write in one run of a script.

use std::sync::{Mutex, PoisonError};

/// The maximum number of lines of one run; later ones are dropped.
pub const MAX_PRINTED_LINES: usize = 64;

/// The maximum length of a line, in bytes.
const MAX_LINE: usize = 4 << 10;

/// The lines of one run, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct PrintedLines(Vec<String>);

impl PrintedLines {
    /// Adds a line, unless there are too many. A long one is left out as a whole: a part of what is redacted in it would not be recognised.
    pub(super) fn push(&mut self, line: &str) {
        if self.0.len() < MAX_PRINTED_LINES {
            self.0.push(match line.len() {
                0..=MAX_LINE => line.to_owned(),
                length => format!("(a line of {length} bytes)"),
            });
        }
    }

    pub(super) fn into_vec(self) -> Vec<String> {
        self.0
    }
}

/// The lines of the latest replay, which borrows its journal only for reading.
#[derive(Debug, Default)]
pub(super) struct LatestLines(Mutex<Vec<String>>);

impl LatestLines {
    pub(super) fn set(&self, lines: PrintedLines) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines.into_vec();
    }

    pub(super) fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clone for LatestLines {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.get()))
    }
}
