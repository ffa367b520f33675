//! Lines of a log, read back: text → [`LogEntry`].

use callgate::call::RoundPosition;
use callgate::json::{self, Map, Value};
use jiff::Timestamp;

use crate::event_line::FORMAT_VERSION;

/// One event of a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LogEntry {
    /// The name of the event, such as `call_completed`.
    pub event: String,
    /// When it happened.
    pub time: Timestamp,
    /// All members of the line.
    pub members: Map,
}

/// Why a line is not an event that this version can read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogEntryError {
    /// Not JSON: the line is incomplete, or damaged.
    #[error("not a complete line of JSON: {0}")]
    Json(#[from] json::ParseError),
    /// JSON of another kind.
    #[error("not an event of a Callgate log: `{0}` is missing or has the wrong type")]
    Member(&'static str),
    /// Written by a later version.
    #[error(
        "the event has version {0}, and this Callgate reads versions up to {FORMAT_VERSION}; use a newer Callgate"
    )]
    Version(String),
}

impl LogEntry {
    /// Reads one line.
    ///
    /// # Errors
    /// [`LogEntryError`] if the line is incomplete, is no event, or was written by a later version.
    pub fn parse(line: &str) -> Result<Self, LogEntryError> {
        Self::from_json(json::parse(line)?)
    }

    /// Reads an event from a line that is parsed already.
    ///
    /// # Errors
    /// As [`LogEntry::parse`].
    #[doc(hidden)]
    pub fn from_json(line: Value) -> Result<Self, LogEntryError> {
        let Value::Object(members) = line else { return Err(LogEntryError::Member("event")) };
        let version = members.get("version").ok_or(LogEntryError::Member("version"))?;
        if version.as_u64().is_none_or(|version| version > FORMAT_VERSION) {
            return Err(LogEntryError::Version(version.to_string()));
        }
        let text =
            |name: &'static str| members.get(name).and_then(Value::as_str).ok_or(LogEntryError::Member(name));
        let event = text("event")?.to_owned();
        let time = text("time")?.parse().map_err(|_| LogEntryError::Member("time"))?;
        Ok(Self { event, time, members })
    }

    /// A member that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    /// The place of the call in its round, if it was evaluated with others.
    pub fn round_position(&self) -> Option<RoundPosition> {
        let position = self.members.get("round_position")?;
        let number = |name: &str| usize::try_from(position.get(name)?.as_u64()?).ok();
        let (size, index) = (number("size")?, number("index")?);
        (index < size).then_some(RoundPosition { size, index })
    }

    /// The code, the policy and the message of the reason.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.members.get("reason").and_then(|reason| reason.get(name)).and_then(Value::as_str)
    }
}
