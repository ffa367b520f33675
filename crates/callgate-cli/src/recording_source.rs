//! Reads recordings on a thread of its own: files → batches of calls, for `callgate backtest` and `callgate suggest`.

use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use super::exit::CommandError;
use super::run::JsonLinesReader;
use callgate_analysis::recording::{RecordedCall, RecordedLine, RecordingError, RecordingReader};

/// The most calls of a batch.
const BATCH_CALLS: usize = 256;
/// The most bytes of lines of a batch, beyond its last line.
const BATCH_BYTES: usize = 4 << 20;
/// The number of batches that are read ahead.
const BATCHES_AHEAD: usize = 4;

/// The most bytes of a document on several lines.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;

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

/// The files of a recording, the oldest first.
pub(super) struct RecordingSource {
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

impl RecordingSource {
    pub(super) fn new(files: Vec<PathBuf>, sample: f64) -> Self {
        Self { files, sample }
    }

    /// Calls `handle` with the calls of all files, in order, while a thread reads and parses the next ones.
    ///
    /// # Errors
    /// If a file can't be read, or the error of `handle`.
    pub(super) fn for_each_batch(
        &self,
        mut handle: impl FnMut(Vec<SourceItem>) -> Result<(), String>,
    ) -> Result<(), CommandError> {
        let (sender, receiver) = mpsc::sync_channel(BATCHES_AHEAD);
        thread::scope(|scope| {
            let reader = scope.spawn(move || self.send_all(&sender));
            for batch in receiver {
                // The reader stops when it can't send any more.
                handle(batch)?;
            }
            reader.join().unwrap_or_else(|_| Err("the recording could not be read".to_owned()))
        })
        .map_err(CommandError::new)
    }

    /// Sends the calls of all files, in order. Stops if the receiver is gone.
    fn send_all(&self, sender: &SyncSender<Vec<SourceItem>>) -> Result<(), String> {
        let mut reader = RecordingReader::default();
        let mut batch = Batch { sender, items: Vec::new(), bytes: 0, is_closed: false };
        for path in &self.files {
            let lines = JsonLinesReader::open(path).map_err(message)?;
            let mut file = RecordingFile::new(path, lines, self.sample);
            file.send(&mut reader, &mut batch)?;
            if batch.is_closed {
                return Ok(());
            }
        }
        batch.send();
        Ok(())
    }
}

/// A file that is being read.
struct RecordingFile {
    name: Arc<str>,
    lines: JsonLinesReader,
    sample: f64,
    /// A line of invalid JSON: announced by the next one if a crash cut it short.
    incomplete: Option<String>,
}

impl RecordingFile {
    fn new(path: &Path, lines: JsonLinesReader, sample: f64) -> Self {
        Self { name: path.display().to_string().into(), lines, sample, incomplete: None }
    }

    /// Sends the calls of the file.
    fn send(&mut self, reader: &mut RecordingReader, batch: &mut Batch<'_>) -> Result<(), String> {
        let mut is_first = true;
        while let Some(line) = self.lines.next_line(|| Ok(())).map_err(message)? {
            let (number, bytes) = (line.number, line.bytes);
            let document = match &line.text {
                Ok(text) if std::mem::take(&mut is_first) && begins_document(text) => {
                    Some((*text).to_owned())
                }
                _ => None,
            };
            if let Some(first) = document {
                return self.send_document(first, number, reader, batch);
            }
            let read = match line.text {
                Ok(text) => reader.read(text, &self.name, number),
                Err(problem) => Err(RecordingError::Content(problem)),
            };
            self.add(read, number, bytes, batch);
            if batch.is_closed {
                return Ok(());
            }
        }
        if let Some(problem) = self.incomplete.take() {
            // The end of a log that is being written, or of a file of calls, which is not.
            let item = match reader.has_read_events() {
                true => SourceItem::IncompleteEnd(problem),
                false => SourceItem::Unreadable(problem),
            };
            batch.add(item, 0);
        }
        Ok(())
    }

    /// Sends the calls of a file that is one JSON document on several lines: a history.
    fn send_document(
        &mut self,
        mut document: String,
        first: u64,
        reader: &mut RecordingReader,
        batch: &mut Batch<'_>,
    ) -> Result<(), String> {
        while let Some(line) = self.lines.next_line(|| Ok(())).map_err(message)? {
            match line.text {
                Ok(text) if document.len() + text.len() <= MAX_DOCUMENT_BYTES => {
                    document.push('\n');
                    document.push_str(text);
                }
                Ok(_) => {
                    let limit = MAX_DOCUMENT_BYTES >> 20;
                    let problem = format!("{}: the document is larger than {limit} MiB", self.name);
                    batch.add(SourceItem::Unreadable(problem), 0);
                    return Ok(());
                }
                Err(problem) => {
                    batch.add(SourceItem::Unreadable(format!("{}:{}: {problem}", self.name, line.number)), 0);
                    return Ok(());
                }
            }
        }
        let read = reader.read(&document, &self.name, first);
        self.add(read, first, document.len(), batch);
        if let Some(problem) = self.incomplete.take() {
            batch.add(SourceItem::Unreadable(problem), 0);
        }
        Ok(())
    }

    fn add(
        &mut self,
        read: Result<RecordedLine, RecordingError>,
        number: u64,
        bytes: usize,
        batch: &mut Batch<'_>,
    ) {
        // A line that a crash cut short is announced by the next one, and no error.
        let is_announced = matches!(read, Ok(RecordedLine::IncompleteLineBefore));
        if let Some(problem) = self.incomplete.take().filter(|_| !is_announced) {
            batch.add(SourceItem::Unreadable(problem), 0);
        }
        match read {
            Ok(RecordedLine::Call(call)) if self.is_sampled(&call) => {
                batch.add(SourceItem::Call(call), bytes);
            }
            Ok(RecordedLine::History(calls)) => {
                let bytes = bytes / calls.len().max(1);
                for call in calls.into_iter().filter(|call| self.is_sampled(call)) {
                    batch.add(SourceItem::Call(Box::new(call)), bytes);
                }
            }
            Ok(RecordedLine::EventsLost(count)) => batch.add(SourceItem::EventsLost(count), 0),
            Ok(_) => {}
            Err(problem) => {
                let text = format!("{}:{number}: {problem}", self.name);
                match problem {
                    RecordingError::Json(_) => self.incomplete = Some(text),
                    RecordingError::Content(_) => batch.add(SourceItem::Unreadable(text), 0),
                }
            }
        }
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

/// Whether the first line of a file is the beginning of a document on several lines. A line that a crash cut short has more on it.
fn begins_document(line: &str) -> bool {
    ["[", "{", "[{"].contains(&line.trim())
}

fn message(error: CommandError) -> String {
    match error {
        CommandError::Message(message) => message,
        CommandError::OutputClosed => String::new(),
    }
}
