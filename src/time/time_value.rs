//! Timestamps and durations as values of expressions, with their arithmetic.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

/// A timestamp or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeValue {
    /// A point in time.
    Timestamp(Timestamp),
    /// The difference of two timestamps.
    Duration(SignedDuration),
}

/// A value with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeText {
    /// The value.
    pub value: TimeValue,
    /// How it is written as JSON.
    pub text: String,
}

impl TimeValue {
    /// The name of its type.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Timestamp(_) => "time",
            Self::Duration(_) => "duration",
        }
    }

    /// time + duration. Returns `None` for other types, and beyond the year 9999.
    pub fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Timestamp(at), Self::Duration(by)) | (Self::Duration(by), Self::Timestamp(at)) => {
                at.checked_add(by).ok().map(Self::Timestamp)
            }
            _ => None,
        }
    }

    /// time − time, or time − duration. Returns `None` for other types, and out of range.
    pub fn minus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Timestamp(later), Self::Timestamp(earlier)) => {
                Some(Self::Duration(later.duration_since(earlier)))
            }
            (Self::Timestamp(at), Self::Duration(by)) => at.checked_sub(by).ok().map(Self::Timestamp),
            _ => None,
        }
    }

    /// The order of two values of one type.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(&b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(&b)),
            _ => None,
        }
    }

    /// The value with its text.
    pub fn with_text(self) -> TimeText {
        TimeText { value: self, text: self.to_string() }
    }
}

impl std::fmt::Display for TimeValue {
    /// RFC 3339 in UTC, or a duration such as `1h 30m`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Timestamp(at) => write!(f, "{at}"),
            Self::Duration(duration) => write!(f, "{duration:#}"),
        }
    }
}
