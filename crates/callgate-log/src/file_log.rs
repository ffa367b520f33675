//! A log in a file, written by a thread of its own: calls wait for it only if the queue is full, and only if they are to.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use callgate::{BoxFuture, EngineEvent, Observer, ObserverError};
use jiff::Timestamp;

use crate::event_line::{EventFormat, start_line};
use crate::log_file::{LogFile, LogFileError, Rotation};

/// The number of events that wait for the thread.
const QUEUE_LENGTH: usize = 8_192;
/// The number of bytes that are written at once.
const BATCH_BYTES: usize = 256 << 10;
/// After how long a failed write is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What happens to an event while the queue is full, because the disk is slower than the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFull {
    /// The call waits.
    #[default]
    Block,
    /// The event is dropped; the log says how many were.
    Drop,
}

/// What happens to calls while a log can't be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// They run, and their events are lost; the log says how many were.
    #[default]
    Continue,
    /// They are denied, with the code `log_unavailable`.
    Deny,
}

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
#[derive(Clone)]
pub struct FileLog {
    shared: Arc<Shared>,
}

struct Shared {
    format: EventFormat,
    options: FileLogOptions,
    queue: SyncSender<Message>,
    status: Arc<WriterStatus>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Line(String),
    Close,
}

/// What the thread reports of itself.
#[derive(Debug, Default)]
struct WriterStatus {
    /// The number of events that are lost.
    lost: AtomicU64,
    /// Why the file can't be written at present.
    failure: Mutex<Option<String>>,
}

impl WriterStatus {
    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }
}

impl std::fmt::Debug for FileLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileLog").field("status", &self.shared.status).finish_non_exhaustive()
    }
}

impl FileLog {
    /// Opens a log, and starts its thread.
    ///
    /// # Errors
    /// [`LogFileError`] if the file can't be written, or another process writes it.
    pub fn open(path: &Path, format: EventFormat, options: FileLogOptions) -> Result<Self, LogFileError> {
        let file = LogFile::open(path, options.rotation)?;
        let (queue, messages) = sync_channel(QUEUE_LENGTH);
        let status = Arc::new(WriterStatus::default());
        let writer =
            LogWriter { file, status: Arc::clone(&status), batch: Vec::new(), batched: 0, reported: 0 };
        let thread = Builder::new()
            .name("callgate-log".to_owned())
            .spawn(move || writer.run(&messages))
            .map_err(|error| LogFileError::Open { path: path.to_owned(), error })?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { shared: Arc::new(Shared { format, options, queue, status, thread }) })
    }

    /// Writes every event so far, and ends the thread. Later events are lost.
    pub fn close(&self) {
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Fails only if the thread has ended.
            let _ = self.shared.queue.send(Message::Close);
            let _ = thread.join();
        }
    }

    /// The number of events that are lost, because the queue was full or the file could not be written.
    pub fn lost(&self) -> u64 {
        self.shared.status.lost.load(Ordering::Relaxed)
    }

    /// Why the file can't be written at present.
    pub fn failure(&self) -> Option<String> {
        self.shared.status.failure()
    }
}

impl Observer for FileLog {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let Shared { format, options, queue, status, .. } = &*self.shared;
        if !format.records(event) {
            return;
        }
        let message = Message::Line(format.line(event));
        let is_lost = match options.on_full {
            OnFull::Block => queue.send(message).is_err(),
            OnFull::Drop => !matches!(queue.try_send(message), Ok(())),
        };
        if is_lost {
            status.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        if self.shared.options.on_failure == OnFailure::Continue {
            return None;
        }
        let failure = self.failure()?;
        Some(Box::pin(async { Err(ObserverError(failure)) }))
    }
}

/// The thread that writes a file.
struct LogWriter {
    file: LogFile,
    status: Arc<WriterStatus>,
    /// Lines that are not written yet.
    batch: Vec<u8>,
    /// Their number.
    batched: u64,
    /// The number of lost events that the log reports.
    reported: u64,
}

impl LogWriter {
    fn run(mut self, messages: &Receiver<Message>) {
        self.report_opening();
        loop {
            // While the file can't be written, the batch is tried again now and then, also without new events.
            let next = match self.batch.is_empty() {
                true => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => messages.recv_timeout(RETRY),
            };
            let mut is_closing = false;
            match next {
                Ok(Message::Line(line)) => self.add(&line),
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => is_closing = true,
                Err(RecvTimeoutError::Timeout) => {}
            }
            while !is_closing && self.batch.len() < BATCH_BYTES {
                match messages.try_recv() {
                    Ok(Message::Line(line)) => self.add(&line),
                    Ok(Message::Close) => is_closing = true,
                    Err(_) => break,
                }
            }
            self.write();
            if is_closing {
                return;
            }
        }
    }

    fn add(&mut self, line: &str) {
        self.batch.extend_from_slice(line.as_bytes());
        self.batch.push(b'\n');
        self.batched += 1;
    }

    /// The first line of a process: it says whether the one before it has crashed.
    fn report_opening(&mut self) {
        let mut line = start_line("log_opened", Timestamp::now());
        line.string("callgate", env!("CARGO_PKG_VERSION"));
        line.number("process", u64::from(std::process::id()));
        line.flag("incomplete_line_before", self.file.is_torn());
        self.add(&line.finish());
        self.write();
    }

    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let lost = self.status.lost.load(Ordering::Relaxed);
        let report = (lost > self.reported).then(|| {
            let mut line = start_line("events_lost", Timestamp::now());
            line.number("count", lost - self.reported);
            line.finish() + "\n"
        });
        let lines = [report.unwrap_or_default().as_bytes(), &self.batch].concat();
        match self.file.append(&lines) {
            Ok(()) => {
                self.batch.clear();
                self.batched = 0;
                self.reported = lost;
                self.status.set_failure(None);
            }
            Err(error) => {
                self.status.set_failure(Some(format!("the log can't be written: {error}")));
                // What waits must not grow without end.
                if self.batch.len() >= BATCH_BYTES {
                    self.status.lost.fetch_add(self.batched, Ordering::Relaxed);
                    self.batch.clear();
                    self.batched = 0;
                }
            }
        }
    }
}
