//! `--now`: the time at which the calls of a file begin, in place of the system clock.

use std::time::Instant;

use callgate::Clock;
use callgate::time::parse_timestamp;
use jiff::{SignedDuration, Timestamp};

/// A clock that showed a given time when it was created, and advances by whole seconds.
pub(super) struct StartedClock {
    start: Timestamp,
    created: Instant,
}

impl StartedClock {
    pub(super) fn new(start: Timestamp) -> Self {
        Self { start, created: Instant::now() }
    }
}

impl Clock for StartedClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.created.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.start.saturating_add(SignedDuration::from_secs(elapsed)).unwrap_or(Timestamp::MAX)
    }
}

/// Parses the value of `--now`.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    parse_timestamp(text)
        .ok_or_else(|| "write a time with an offset, such as 2026-03-01T12:00:00Z".to_owned())
}
