//! What the thread of a log does: messages from its queue → lines, in groups, → a [`LineSink`].

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::event_name::EventSeverity;
use crate::flush_waiter::FlushTicket;
use crate::line_sink::{LineSink, LogRow};
use crate::thread_status::ThreadStatus;

/// The number of bytes that are written at once, and that are kept while writes fail.
const BATCH_BYTES: usize = 256 << 10;
/// After how long a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How long lines are collected before they are written, unless a call waits for them: waking the thread costs a call more than
/// writing its line.
const COLLECT: Duration = Duration::from_millis(2);

/// What calls send to the thread.
#[derive(Debug)]
pub(crate) enum Message {
    Line {
        row: LogRow,
        /// The number of events that were lost before it.
        lost_before: u64,
    },
    /// A call waits until everything before this is written.
    Flush(FlushTicket),
    Close,
}

/// Writes the lines of a log.
pub(crate) struct LogWriter<S> {
    sink: S,
    status: Arc<ThreadStatus>,
    /// Lines that are not written yet.
    lines: VecDeque<LogRow>,
    /// Their length.
    bytes: usize,
    /// The calls that wait for them.
    flushes: Vec<FlushTicket>,
    /// The number of lost events that the log reports, also in lines that are not written yet.
    reported: u64,
    /// The number of those that were lost here, because writes failed for too long, and that no line reports.
    discarded: u64,
}

impl<S: LineSink> LogWriter<S> {
    pub(crate) fn new(sink: S, opening: Option<LogRow>, status: Arc<ThreadStatus>) -> Self {
        let lines = opening.into_iter().inspect(|_| status.count_sent()).collect();
        Self { sink, status, lines, bytes: 0, flushes: Vec::new(), reported: 0, discarded: 0 }
    }

    /// Writes until the log is closed, and then ends it.
    pub(crate) fn run(mut self, messages: &Receiver<Message>) {
        self.write();
        let mut is_open = true;
        while is_open {
            // While the log can't be written, the lines are tried again now and then, also without new events.
            let next = match self.lines.is_empty() {
                true => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => messages.recv_timeout(RETRY),
            };
            is_open = match next {
                Ok(message) => self.receive(message),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => false,
            };
            if is_open && self.flushes.is_empty() {
                // A call that begins to wait ends this.
                std::thread::park_timeout(COLLECT);
            }
            while is_open && self.bytes < BATCH_BYTES {
                let Ok(message) = messages.try_recv() else { break };
                is_open = self.receive(message);
            }
            self.write();
            let failure = self.status.failure();
            self.flushes.drain(..).for_each(|flush| flush.0.complete(failure.clone()));
        }
        self.close();
    }

    /// Returns `false` if the log is to be closed.
    fn receive(&mut self, message: Message) -> bool {
        match message {
            Message::Line { row, lost_before } => {
                // One report for each write says enough.
                let lost = lost_before.max(self.reported + self.discarded);
                if lost > self.reported && self.lines.iter().all(|line| line.lost == 0) {
                    self.report_lost(lost);
                }
                self.bytes += row.text.len();
                self.lines.push_back(row);
            }
            Message::Flush(ticket) => self.flushes.push(ticket),
            Message::Close => return false,
        }
        true
    }

    /// Adds a line that reports the losses so far.
    fn report_lost(&mut self, lost: u64) {
        let count = lost.saturating_sub(self.reported);
        if count > 0 {
            let text = self.sink.lost_report(count);
            self.lines.push_back(LogRow { text, severity: EventSeverity::Warning, lost: count });
            self.reported = lost;
            self.discarded = 0;
        }
    }

    fn write(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let before = self.events();
        self.status.begin_write();
        let written = self.sink.write(&mut self.lines);
        self.status.end_write();
        self.status.count_written(before - self.events());
        self.set_failure(written);
        self.bytes = self.lines.iter().map(|line| line.text.len()).sum();
        // What waits must not grow without end.
        if self.bytes >= BATCH_BYTES {
            let reports: u64 = self.lines.iter().map(|line| line.lost).sum();
            self.status.count_lost(self.events());
            self.reported -= reports;
            self.discarded += self.events() + reports;
            self.lines.clear();
            self.bytes = 0;
        }
    }

    /// The number of events that are not written yet.
    fn events(&self) -> u64 {
        self.lines.iter().filter(|line| line.lost == 0).count() as u64
    }

    fn set_failure(&self, written: io::Result<()>) {
        let failure = written.err().map(|error| format!("the {} can't be written: {error}", S::NAME));
        self.status.set_failure(failure);
    }

    /// Ends the log. One from which lines are missing without a report is not closed in order.
    fn close(&mut self) {
        self.report_lost(self.status.lost());
        self.write();
        if self.lines.is_empty() {
            self.status.begin_write();
            let closed = self.sink.close();
            self.status.end_write();
            if closed.is_err() {
                self.set_failure(closed);
            }
        }
    }
}
