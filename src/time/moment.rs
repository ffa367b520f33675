//! The time of a decision: read once, so that all policies see the same time, and only if one of them reads it.

use std::sync::OnceLock;

use jiff::Timestamp;

/// Where the time is read from.
pub trait TimeSource: Send + Sync {
    /// The time now. Returns `None` if it is unknown.
    fn read(&self) -> Option<Timestamp>;
}

/// The time of a decision or of a call's end. It is unknown if the clock failed.
#[derive(Default)]
pub struct Moment<'c> {
    source: Option<&'c dyn TimeSource>,
    at: OnceLock<Option<Timestamp>>,
    text: OnceLock<String>,
}

impl<'c> Moment<'c> {
    /// This time, or an unknown one.
    pub fn new(at: Option<Timestamp>) -> Self {
        Self { source: None, at: OnceLock::from(at), text: OnceLock::new() }
    }

    /// The time when it is first read.
    pub fn when_read(source: &'c dyn TimeSource) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// The time. Returns `None` if the clock failed.
    pub fn timestamp(&self) -> Option<Timestamp> {
        *self.at.get_or_init(|| self.source?.read())
    }

    /// The time as RFC 3339 in UTC. Returns `None` if the clock failed.
    pub fn text(&self) -> Option<&str> {
        let at = self.timestamp()?;
        Some(self.text.get_or_init(|| at.to_string()))
    }
}

impl std::fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moment").field("at", &self.at).finish_non_exhaustive()
    }
}
