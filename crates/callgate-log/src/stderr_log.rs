//! A log for people, on stderr: lines of text → the descriptor.

use std::collections::VecDeque;
use std::io;

use jiff::Timestamp;

use crate::decision_log::{DecisionLog, EventWriter};
use crate::line_sink::{LineSink, LogRow};
use crate::log_thread::{LogOptions, LogThread, OnFailure, OnFull, ThreadOptions};

impl DecisionLog {
    /// Opens a log for people on stderr: the outcomes of calls, approvals, refused limits, changes of rules and failures, each as a line
    /// of text. A terminal or program that does not read delays no call; what it misses is counted.
    ///
    /// # Errors
    /// The operating system starts no thread.
    pub fn open_stderr() -> io::Result<Self> {
        let options = LogOptions { on_full: OnFull::Drop, on_failure: OnFailure::Continue };
        let thread = LogThread::start(StderrSink::default(), None, ThreadOptions::queued(options))?;
        Ok(Self::new(EventWriter::Text, thread))
    }
}

/// Writes to the descriptor itself: the lock of `std::io::Stderr`, held while nobody reads, would stop everything that prints.
#[derive(Default)]
struct StderrSink {
    /// The number of bytes of the first line that are written.
    written: usize,
}

impl LineSink for StderrSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        while let Some(line) = lines.front() {
            let rest = line.text.as_bytes().get(self.written..).unwrap_or_default();
            match rest.is_empty() {
                true => {
                    lines.pop_front();
                    self.written = 0;
                }
                false => self.written += rustix::io::retry_on_intr(|| rustix::io::write(io::stderr(), rest))?,
            }
        }
        Ok(())
    }

    fn lost_report(&self, count: u64) -> String {
        format!("{:.3} {count} lines are missing here\n", Timestamp::now())
    }
}
