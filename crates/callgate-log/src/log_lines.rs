//! The lines that a log writes about itself.

use jiff::Timestamp;

use crate::event_line::start_line;

/// The event with which a process begins to write.
pub(crate) const OPENED: &str = "log_opened";
/// The event after a failure of the log.
pub(crate) const LOST: &str = "events_lost";

/// The first line of a process: it says whether the one before it has crashed.
pub(crate) fn opening_line(is_torn: bool) -> String {
    let mut line = start_line(OPENED, Timestamp::now());
    line.string("callgate", env!("CARGO_PKG_VERSION"));
    line.number("process", u64::from(std::process::id()));
    line.flag("incomplete_line_before", is_torn);
    line.finish()
}

/// The line that reports lost events.
pub(crate) fn lost_line(count: u64) -> String {
    let mut line = start_line(LOST, Timestamp::now());
    line.number("count", count);
    line.finish()
}
