//! Where the lines of a log are written: [`LogRow`]s → a [`LineSink`], which belongs to the log's thread.

use std::collections::VecDeque;
use std::io;

use crate::event_name::EventSeverity;

/// A line of a log, without a line break.
#[derive(Debug)]
pub(crate) struct LogRow {
    pub(crate) text: String,
    #[cfg_attr(not(feature = "syslog"), expect(dead_code, reason = "only syslog has severities"))]
    pub(crate) severity: EventSeverity,
    /// The number of lost events that it reports. 0 for a line that is an event itself.
    pub(crate) lost: u64,
}

impl LogRow {
    /// The line of an event.
    pub(crate) fn event(text: String, severity: EventSeverity) -> Self {
        Self { text, severity, lost: 0 }
    }
}

/// Where the lines of a log are written.
pub(crate) trait LineSink: Send + 'static {
    /// What messages call it.
    const NAME: &'static str = "log";

    /// Writes lines in order, and removes from the front those that are written.
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()>;

    /// The line that reports lost events.
    fn lost_report(&self, count: u64) -> String;

    /// Ends the log, once every line is written.
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
