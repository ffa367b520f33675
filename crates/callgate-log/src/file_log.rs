//! A log in a file, as JSON Lines, written by a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use callgate::{BoxFuture, EngineEvent, Observer, ObserverError};
use jiff::Timestamp;

use crate::event_line::{EventFormat, EventSeverity, event_severity, start_line};
use crate::log_file::{LogFile, LogFileError, Rotation};
use crate::log_thread::{LineSink, LogRow, LogThread, OnFailure, OnFull, ThreadOptions};

/// Options of a log in a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLogOptions {
    /// What happens while the queue is full.
    pub on_full: OnFull,
    /// What happens while the file can't be written.
    pub on_failure: OnFailure,
    /// When the file is rotated.
    pub rotation: Rotation,
}

/// A log in a file, as JSON Lines. Clones write the same file.
#[derive(Clone, Debug)]
pub struct FileLog {
    format: EventFormat,
    thread: Arc<LogThread>,
}

impl FileLog {
    /// Opens a log, and starts its thread.
    ///
    /// # Errors
    /// [`LogFileError`] if the file can't be written, or another process writes it.
    pub fn open(path: &Path, format: EventFormat, options: FileLogOptions) -> Result<Self, LogFileError> {
        let file = LogFile::open(path, options.rotation)?;
        let opening = opening_line(file.is_torn());
        let sink = FileSink { file, buffer: Vec::new() };
        let thread =
            LogThread::start(sink, Some(opening), ThreadOptions::new(options.on_full, options.on_failure))
                .map_err(|error| LogFileError::Open { path: path.to_owned(), error })?;
        Ok(Self { format, thread: Arc::new(thread) })
    }

    /// Writes every event so far, and ends the thread. Events that can't be written within five seconds, and later ones, are lost.
    pub fn close(&self) {
        self.thread.close();
    }

    /// The number of events that are lost, because the queue was full or the file could not be written.
    pub fn lost(&self) -> u64 {
        self.thread.lost()
    }

    /// Why the file can't be written at present.
    pub fn failure(&self) -> Option<String> {
        self.thread.failure()
    }
}

impl Observer for FileLog {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if self.format.records(event) {
            self.thread.send(LogRow { text: self.format.line(event), severity: event_severity(&event.kind) });
        }
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        self.thread.flush()
    }
}

/// The first line of a process: it says whether the one before it has crashed.
pub(crate) fn opening_line(is_torn: bool) -> LogRow {
    let mut line = start_line("log_opened", Timestamp::now());
    line.string("callgate", env!("CARGO_PKG_VERSION"));
    line.number("process", u64::from(std::process::id()));
    line.flag("incomplete_line_before", is_torn);
    LogRow { text: line.finish(), severity: EventSeverity::Info }
}

/// The line that reports lost events.
pub(crate) fn lost_line(count: u64) -> LogRow {
    let mut line = start_line("events_lost", Timestamp::now());
    line.number("count", count);
    LogRow { text: line.finish(), severity: EventSeverity::Warning }
}

/// Appends lines to a file: many at once or, when the disk is nearly full, those that fit.
struct FileSink {
    file: LogFile,
    buffer: Vec<u8>,
}

impl LineSink for FileSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        let mut max_lines = usize::MAX;
        while !lines.is_empty() {
            let count = self.fill_buffer(lines, max_lines);
            match self.file.append(&self.buffer) {
                Ok(()) => drop(lines.drain(..count)),
                Err(_) if count > 1 => max_lines = 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn lost_report(&self, count: u64) -> LogRow {
        lost_line(count)
    }
}

impl FileSink {
    /// Fills the buffer with the first lines, as many as one file holds. Returns their number.
    fn fill_buffer(&mut self, lines: &VecDeque<LogRow>, max_lines: usize) -> usize {
        self.buffer.clear();
        let first = lines.front().map_or(0, |line| line.text.len() + 1);
        let max_bytes = self.file.room_for(first);
        let mut count = 0;
        for line in lines.iter().take(max_lines) {
            if count > 0 && self.buffer.len() + line.text.len() + 1 > max_bytes {
                break;
            }
            self.buffer.extend_from_slice(line.text.as_bytes());
            self.buffer.push(b'\n');
            count += 1;
        }
        count
    }
}
