//! Time in rules: timestamps of texts, durations, the time of a decision, and times of day in a zone.
//!
//! Zones are those of the IANA database that is compiled in, so that rules mean the same on every machine. Nothing is guessed: a text
//! without an offset is not a timestamp.

mod daily_window;
mod moment;
mod time_value;
mod timestamp_text;
mod zone;

pub use daily_window::{DailyWindow, TimeOfDay, WEEKDAYS, Weekdays};
pub use moment::{Moment, TimeSource};
pub use time_value::{TimeText, TimeValue};
pub use timestamp_text::{parse_local, parse_timestamp};
pub use zone::Zone;
