//! Reads recordings on a thread of its own: files → batches of calls.

use std::hash::Hasher;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::super::exit::CommandError;
use super::super::run::JsonLinesReader;
use callgate_analysis::backtest::{RecordedCall, RecordedLine, RecordingError, RecordingReader};

/// The most calls of a batch.
const BATCH_CALLS: usize = 256;
/// The most bytes of lines of a batch, beyond its last line.
const BATCH_BYTES: usize = 4 << 20;

/// What a batch contains.
pub(super) enum SourceItem {
    /// A call.
    Call(Box<RecordedCall>),
    /// The log has lost events.
    EventsLost(u64),
    /// A line that can't be read, with the problem.
    Unreadable(String),
    /// The end of a log that is being written.
    IncompleteEnd(String),
}

/// The files of a backtest.
pub(super) struct CallSource {
    files: Vec<PathBuf>,
    /// The part of the sessions that are read.
    sample: f64,
}

/// A batch that is being filled.
struct Batch<'s> {
    sender: &'s SyncSender<Vec<SourceItem>>,
    items: Vec<SourceItem>,
    bytes: usize,
    /// Whether nobody receives batches any more.
    is_closed: bool,
}

impl CallSource {
    pub(super) fn new(files: Vec<PathBuf>, sample: f64) -> Self {
        Self { files, sample }
    }

    /// Sends the calls of all files, in order. Stops if the receiver is gone.
    ///
    /// # Errors
    /// If a file can't be read.
    pub(super) fn send_all(&self, sender: &SyncSender<Vec<SourceItem>>) -> Result<(), String> {
        let mut reader = RecordingReader::default();
        let mut batch = Batch { sender, items: Vec::new(), bytes: 0, is_closed: false };
        for path in &self.files {
            let mut lines = JsonLinesReader::open(path).map_err(message)?;
            let file: Arc<str> = path.display().to_string().into();
            let mut incomplete: Option<String> = None;
            while let Some(line) = lines.next_line(|| Ok(())).map_err(message)? {
                let (number, bytes) = (line.number, line.bytes);
                let read = match line.text {
                    Ok(text) => reader.read(text, &file, number),
                    Err(problem) => Err(RecordingError::Content(problem)),
                };
                // A line that a crash cut short is announced by the next one, and no error.
                let is_announced = matches!(read, Ok(RecordedLine::IncompleteLineBefore));
                if let Some(problem) = incomplete.take().filter(|_| !is_announced) {
                    batch.add(SourceItem::Unreadable(problem), 0);
                }
                match read {
                    Ok(RecordedLine::Call(call)) if self.is_sampled(&call) => {
                        batch.add(SourceItem::Call(call), bytes)
                    }
                    Ok(RecordedLine::EventsLost(count)) => batch.add(SourceItem::EventsLost(count), 0),
                    Ok(_) => {}
                    Err(problem) => {
                        let text = format!("{file}:{number}: {problem}");
                        match problem {
                            RecordingError::Json(_) => incomplete = Some(text),
                            RecordingError::Content(_) => batch.add(SourceItem::Unreadable(text), 0),
                        }
                    }
                }
                if batch.is_closed {
                    return Ok(());
                }
            }
            if let Some(problem) = incomplete {
                // The end of a log that is being written, or of a file of calls, which is not.
                let item = match reader.has_read_events() {
                    true => SourceItem::IncompleteEnd(problem),
                    false => SourceItem::Unreadable(problem),
                };
                batch.add(item, 0);
            }
        }
        batch.send();
        Ok(())
    }

    /// Whether the session of a call is in the sample: the same one in each run.
    fn is_sampled(&self, call: &RecordedCall) -> bool {
        if self.sample >= 1.0 {
            return true;
        }
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(call.record.session.as_deref().unwrap_or_default().as_bytes());
        (hasher.finish() as f64) < self.sample * u64::MAX as f64
    }
}

impl Batch<'_> {
    /// Adds an item, and sends the batch if it is full.
    fn add(&mut self, item: SourceItem, bytes: usize) {
        self.items.push(item);
        self.bytes += bytes;
        if self.items.len() >= BATCH_CALLS || self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        self.bytes = 0;
        self.is_closed |= self.sender.send(std::mem::take(&mut self.items)).is_err();
    }
}

fn message(error: CommandError) -> String {
    match error {
        CommandError::Message(message) => message,
        CommandError::OutputClosed => String::new(),
    }
}
