//! A decision log: events of an engine → lines, written by a thread of its own.

use std::sync::Arc;

use callgate::{BoxFuture, EngineEvent, Observer, ObserverError};

use crate::event_line::EventFormat;
use crate::event_name::event_severity;
use crate::event_text::text_line;
use crate::line_sink::LogRow;
use crate::log_thread::LogThread;

/// A log of the events of engines. Clones write the same log; the last one closes it.
///
/// | constructor | where events are written | calls wait |
/// | --- | --- | --- |
/// | [`open_file`](Self::open_file) | a file, as JSON Lines | by [`OnFull`](crate::OnFull) |
/// | [`open_audit_file`](Self::open_audit_file) | a file, as a tamper-evident chain | until their events are written |
/// | `open_syslog`, with the feature `syslog` | syslog or journald | by [`OnFull`](crate::OnFull) |
/// | [`open_stderr`](Self::open_stderr) | stderr, for people | never |
///
/// No call waits longer than five seconds for a write: one that takes longer counts as a failure of the log, of which
/// [`OnFailure`](crate::OnFailure) says what it means for calls.
#[derive(Clone, Debug)]
pub struct DecisionLog {
    writer: EventWriter,
    thread: Arc<LogThread>,
}

/// How an event becomes a line.
#[derive(Clone, Debug)]
pub(crate) enum EventWriter {
    /// JSON.
    Json(EventFormat),
    /// JSON of so many bytes at most.
    BoundedJson(EventFormat, usize),
    /// Text for people.
    Text,
}

impl DecisionLog {
    pub(crate) fn new(writer: EventWriter, thread: LogThread) -> Self {
        Self { writer, thread: Arc::new(thread) }
    }

    /// Writes every event so far, and ends the log. Events that can't be written within five seconds, and later ones, are lost.
    pub fn close(&self) {
        self.thread.close();
    }

    /// The number of events that are lost, because the queue was full or they could not be written.
    pub fn lost(&self) -> u64 {
        self.thread.lost()
    }

    /// Why the log can't be written at present.
    pub fn failure(&self) -> Option<String> {
        self.thread.failure()
    }

    /// Writes a line as that of an event.
    #[cfg(test)]
    pub(crate) fn write_line(&self, text: &str) {
        self.thread.send(LogRow::event(text.to_owned(), crate::event_name::EventSeverity::Info));
    }
}

impl Observer for DecisionLog {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let Some(text) = self.writer.line(event) {
            self.thread.send(LogRow::event(text, event_severity(&event.kind)));
        }
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        self.thread.flush()
    }
}

impl EventWriter {
    /// The line of an event. Returns `None` for events that are not recorded.
    fn line(&self, event: &EngineEvent<'_>) -> Option<String> {
        match self {
            Self::Json(format) => format.records(event).then(|| format.line(event)),
            Self::BoundedJson(format, max_bytes) => {
                format.records(event).then(|| format.bounded_line(event, *max_bytes))
            }
            Self::Text => text_line(event),
        }
    }
}
