//! A log in a file, as JSON Lines, rotated by size.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use crate::decision_log::{DecisionLog, EventWriter};
use crate::event_line::EventFormat;
use crate::event_name::EventSeverity;
use crate::line_appender::LineAppender;
use crate::line_sink::{LineSink, LogRow};
use crate::log_file::{LogFile, LogFileError, Rotation};
use crate::log_lines::{lost_line, opening_line};
use crate::log_thread::{LogOptions, LogThread, ThreadOptions};

impl DecisionLog {
    /// Opens a log in a file, as JSON Lines. Events are written within milliseconds.
    ///
    /// # Errors
    /// [`LogFileError`] if the file can't be written, or another process writes it.
    pub fn open_file(
        path: &Path,
        format: EventFormat,
        rotation: Rotation,
        options: LogOptions,
    ) -> Result<Self, LogFileError> {
        let file = LogFile::open(path, rotation)?;
        let opening = LogRow::event(opening_line(file.is_torn()), EventSeverity::Info);
        let sink = FileSink(LineAppender::new(file));
        let thread = LogThread::start(sink, Some(opening), ThreadOptions::queued(options))
            .map_err(|error| LogFileError::Open { path: path.to_owned(), error })?;
        Ok(Self::new(EventWriter::Json(format), thread))
    }
}

struct FileSink(LineAppender);

impl LineSink for FileSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        let (written, result) = self.0.append(lines.iter().map(|line| line.text.as_str()));
        lines.drain(..written);
        result
    }

    fn lost_report(&self, count: u64) -> String {
        lost_line(count)
    }
}
