//! The time of a decision: read once, so that all policies see the same time.

use std::sync::OnceLock;

use jiff::Timestamp;

/// The time of a decision or of a call's end. It is unknown if the clock failed.
#[derive(Debug, Default)]
pub struct Moment {
    at: Option<Timestamp>,
    text: OnceLock<String>,
}

impl Moment {
    /// This time, or an unknown one.
    pub fn new(at: Option<Timestamp>) -> Self {
        Self { at, text: OnceLock::new() }
    }

    /// The time. Returns `None` if the clock failed.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.at
    }

    /// The time as RFC 3339 in UTC. Returns `None` if the clock failed.
    pub fn text(&self) -> Option<&str> {
        let at = self.at?;
        Some(self.text.get_or_init(|| at.to_string()))
    }
}
