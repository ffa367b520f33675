//! An audit log: a decision log whose lines form a chain with signed checkpoints, written before the call goes on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io};

use callgate::json::Digest;
use callgate::seal::SigningKey;
use callgate::{BoxFuture, EngineEvent, Observer, ObserverError};
use jiff::Timestamp;

use crate::audit_chain::{CHECKPOINT_LINES, CLOSED, ChainHead, LOST, OPENED};
use crate::chain_end::ChainEnd;
use crate::event_line::{EventFormat, start_line};
use crate::line_reader::MAX_LINE_BYTES;
use crate::log_file::{LogFile, LogFileError, Rotation, rotated_path};
use crate::log_thread::OnFailure;

/// After how long a checkpoint is due, with the next event.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
/// The room that `seq` and `prev` need in a line.
const LINK_BYTES: usize = 256;

/// Options of an audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditLogOptions {
    /// What happens to calls while the file can't be written.
    pub on_failure: OnFailure,
    /// The size in bytes at which a file is rotated. Rotated files are kept.
    pub max_bytes: u64,
}

impl Default for AuditLogOptions {
    /// Calls are denied; 100 MiB.
    fn default() -> Self {
        Self { on_failure: OnFailure::Deny, max_bytes: Rotation::default().max_bytes }
    }
}

/// Why an audit log can't be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditLogError {
    /// The file can't be used.
    #[error(transparent)]
    File(#[from] LogFileError),
    /// The file ends with something else.
    #[error(
        "`{}` does not end with a line of an audit log; examine it with `callgate audit verify`, and name a new file",
        .0.display()
    )]
    NotAnAuditLog(PathBuf),
}

/// An audit log. Each event is written by the thread on which it happens, before the call goes on. Clones write the same file.
#[derive(Clone, Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    format: EventFormat,
    on_failure: OnFailure,
    writer: Mutex<AuditWriter>,
}

impl AuditLog {
    /// Opens an audit log, and continues its chain, or begins one. The key signs its checkpoints.
    ///
    /// # Errors
    /// [`AuditLogError`] if the file can't be written, another process writes it, or it is not an audit log.
    pub fn open(
        path: &Path,
        format: EventFormat,
        key: SigningKey,
        options: AuditLogOptions,
    ) -> Result<Self, AuditLogError> {
        let rotation = Rotation { max_bytes: options.max_bytes, keep: None };
        let writer = Mutex::new(AuditWriter::open(LogFile::open(path, rotation)?, path, key)?);
        Ok(Self { shared: Arc::new(Shared { format, on_failure: options.on_failure, writer }) })
    }

    /// Ends the log with a checkpoint. Later events are lost.
    pub fn close(&self) {
        self.writer().close();
    }

    /// The number of events that are lost, because the file could not be written.
    pub fn lost(&self) -> u64 {
        self.writer().lost
    }

    /// Why the file can't be written at present.
    pub fn failure(&self) -> Option<String> {
        self.writer().failure.clone()
    }

    fn writer(&self) -> MutexGuard<'_, AuditWriter> {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for AuditLog {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if !self.shared.format.records(event) {
            return;
        }
        let line = self.shared.format.bounded_line(event, MAX_LINE_BYTES - LINK_BYTES);
        self.writer().record(&line);
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        if self.shared.on_failure == OnFailure::Continue {
            return None;
        }
        let failure = self.failure()?;
        Some(Box::pin(async { Err(ObserverError(failure)) }))
    }
}

/// What writes the chain.
#[derive(Debug)]
struct AuditWriter {
    file: LogFile,
    key: SigningKey,
    head: ChainHead,
    /// The number of lines since the last checkpoint, and when that was.
    lines: u64,
    checkpoint: Instant,
    /// The number of events that are lost.
    lost: u64,
    /// Those of them that the log does not report yet.
    unreported: u64,
    failure: Option<String>,
    is_closed: bool,
}

impl AuditWriter {
    fn open(file: LogFile, path: &Path, key: SigningKey) -> Result<Self, AuditLogError> {
        let failed = |error| LogFileError::Open { path: path.to_owned(), error };
        let end = find_end(&file, path).map_err(failed)?;
        let end = end.ok_or_else(|| AuditLogError::NotAnAuditLog(path.to_owned()))?;
        let mut writer = Self {
            file,
            key,
            head: end.head,
            lines: 0,
            checkpoint: Instant::now(),
            lost: 0,
            unreported: 0,
            failure: None,
            is_closed: false,
        };
        writer.report_opening(end.incomplete.as_deref()).map_err(failed)?;
        Ok(writer)
    }

    /// The first lines of a process. An incomplete line before them is bound to the chain, so that it cannot be changed later.
    fn report_opening(&mut self, incomplete: Option<&[u8]>) -> io::Result<()> {
        let mut line = start_line(OPENED, Timestamp::now());
        line.string("callgate", env!("CARGO_PKG_VERSION"));
        line.number("process", u64::from(std::process::id()));
        line.string("key", &self.key.public_key().to_string());
        if let Some(incomplete) = incomplete {
            line.boolean("incomplete_line_before", true);
            line.string("incomplete_line_digest", &Digest::compute(incomplete).to_string());
        }
        self.write(&line.finish())?;
        self.write_checkpoint()
    }

    /// Writes an event, or counts it as lost.
    fn record(&mut self, event: &str) {
        if self.is_closed {
            self.lost += 1;
            self.failure = Some("the audit log is closed".to_owned());
            return;
        }
        let written = self.report_lost().and_then(|()| self.write(event));
        if written.is_err() {
            self.lost += 1;
            self.unreported += 1;
        }
        let is_due = self.lines >= CHECKPOINT_LINES || self.checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        let written = match is_due {
            true => written.and_then(|()| self.write_checkpoint()),
            false => written,
        };
        self.set_failure(written);
    }

    fn report_lost(&mut self) -> io::Result<()> {
        if self.unreported == 0 {
            return Ok(());
        }
        let mut line = start_line(LOST, Timestamp::now());
        line.number("count", self.unreported);
        self.write(&line.finish())?;
        self.unreported = 0;
        Ok(())
    }

    fn close(&mut self) {
        if self.is_closed {
            return;
        }
        let line = start_line(CLOSED, Timestamp::now()).finish();
        let written =
            self.report_lost().and_then(|()| self.write(&line)).and_then(|()| self.write_checkpoint());
        self.set_failure(written);
        self.is_closed = true;
    }

    fn set_failure(&mut self, written: io::Result<()>) {
        self.failure = written.err().map(|error| format!("the audit log can't be written: {error}"));
    }

    fn write(&mut self, event: &str) -> io::Result<()> {
        self.append(self.head.link(event))
    }

    /// Signs the chain. What is signed is on the disk, also after a power failure.
    fn write_checkpoint(&mut self) -> io::Result<()> {
        self.append(self.head.link_checkpoint(Timestamp::now(), &self.key))?;
        self.lines = 0;
        self.checkpoint = Instant::now();
        self.file.sync()
    }

    /// Appends a line. The chain continues from it only if it was written.
    fn append(&mut self, (mut line, head): (String, ChainHead)) -> io::Result<()> {
        line.push('\n');
        self.file.append(line.as_bytes())?;
        self.head = head;
        self.lines += 1;
        Ok(())
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.close();
    }
}

/// The end of the chain: in the file, or in the newest rotated one if a process crashed before it began a new file.
fn find_end(file: &LogFile, path: &Path) -> io::Result<Option<ChainEnd>> {
    if file.file().metadata()?.len() == 0 {
        match fs::File::open(rotated_path(path, 1)) {
            Ok(rotated) => return ChainEnd::read(&rotated),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    ChainEnd::read(file.file())
}

#[cfg(test)]
mod tests;
