//! An audit log: a decision log whose lines form a chain with signed checkpoints. Calls wait until their lines are written, in groups.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use callgate::json::Digest;
use callgate::seal::SigningKey;
use jiff::Timestamp;

use crate::audit_chain::{CHECKPOINT_LINES, CLOSED, ChainHead};
use crate::chain_end::ChainEnd;
use crate::decision_log::{DecisionLog, EventWriter};
use crate::event_line::{EventFormat, start_line};
use crate::line_appender::LineAppender;
use crate::line_reader::MAX_LINE_BYTES;
use crate::line_sink::{LineSink, LogRow};
use crate::log_file::{LogFile, LogFileError, Rotation, rotated_path};
use crate::log_lines::{OPENED, lost_line};
use crate::log_thread::{LogThread, OnFailure, ThreadOptions};

/// After how long a checkpoint is due, with the next event.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);
/// The room that `seq` and `prev` need in a line.
const LINK_BYTES: usize = 256;

/// Options of an audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditLogOptions {
    /// What happens to calls while the file can't be written, or a write has taken five seconds.
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

impl DecisionLog {
    /// Opens an audit log, and continues its chain, or begins one. The key signs its checkpoints. An event of a call is written before the
    /// call goes on: before its tool runs, and before its outcome is returned.
    ///
    /// # Errors
    /// [`AuditLogError`] if the file can't be written, another process writes it, or it is not an audit log.
    pub fn open_audit_file(
        path: &Path,
        format: EventFormat,
        key: SigningKey,
        options: AuditLogOptions,
    ) -> Result<Self, AuditLogError> {
        let rotation = Rotation { max_bytes: options.max_bytes, keep: None };
        let sink = AuditSink::open(LogFile::open(path, rotation)?, path, key)?;
        let thread = LogThread::start(sink, None, ThreadOptions::awaited(options.on_failure))
            .map_err(|error| LogFileError::Open { path: path.to_owned(), error })?;
        Ok(Self::new(EventWriter::BoundedJson(format, MAX_LINE_BYTES - LINK_BYTES), thread))
    }
}

/// Writes the chain.
#[derive(Debug)]
struct AuditSink {
    file: LineAppender,
    key: SigningKey,
    head: ChainHead,
    /// The number of lines since the last checkpoint, and when that was.
    lines: u64,
    checkpoint: Instant,
}

impl AuditSink {
    fn open(file: LogFile, path: &Path, key: SigningKey) -> Result<Self, AuditLogError> {
        let failed = |error| LogFileError::Open { path: path.to_owned(), error };
        let end = find_end(&file, path).map_err(failed)?;
        let end = end.ok_or_else(|| AuditLogError::NotAnAuditLog(path.to_owned()))?;
        let file = LineAppender::new(file);
        let mut sink = Self { file, key, head: end.head, lines: 0, checkpoint: Instant::now() };
        sink.report_opening(end.incomplete.as_deref()).map_err(failed)?;
        Ok(sink)
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
        self.append(&[self.head.link(&line.finish())]).1?;
        self.write_checkpoint()
    }

    /// Writes the first lines, up to the next checkpoint.
    fn write_group(&mut self, rows: &mut VecDeque<LogRow>) -> io::Result<()> {
        // A checkpoint that could not be written is due already.
        let max_lines = usize::try_from(CHECKPOINT_LINES.saturating_sub(self.lines)).unwrap_or(usize::MAX);
        let mut head = self.head;
        let mut linked = Vec::with_capacity(rows.len().min(max_lines.max(1)));
        for row in rows.iter().take(max_lines.max(1)) {
            let (line, next) = head.link(&row.text);
            linked.push((line, next));
            head = next;
        }
        let (written, result) = self.append(&linked);
        rows.drain(..written);
        result
    }

    /// Appends lines of the chain, which continues from the last one that is written. Returns how many are, and why the next one is not.
    fn append(&mut self, lines: &[(String, ChainHead)]) -> (usize, io::Result<()>) {
        let (written, result) = self.file.append(lines.iter().map(|(line, _)| line.as_str()));
        if let Some((_, head)) = written.checked_sub(1).and_then(|last| lines.get(last)) {
            self.head = *head;
        }
        self.lines += written as u64;
        (written, result)
    }

    /// Signs the chain. What is signed is on the disk, also after a power failure.
    fn write_checkpoint(&mut self) -> io::Result<()> {
        self.append(&[self.head.link_checkpoint(Timestamp::now(), &self.key)]).1?;
        self.lines = 0;
        self.checkpoint = Instant::now();
        self.file.file().sync()
    }
}

impl LineSink for AuditSink {
    const NAME: &'static str = "audit log";

    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        while !lines.is_empty() {
            self.write_group(lines)?;
            if self.lines >= CHECKPOINT_LINES || self.checkpoint.elapsed() >= CHECKPOINT_INTERVAL {
                self.write_checkpoint()?;
            }
        }
        Ok(())
    }

    fn lost_report(&self, count: u64) -> String {
        lost_line(count)
    }

    /// Ends the log with a checkpoint.
    fn close(&mut self) -> io::Result<()> {
        let line = start_line(CLOSED, Timestamp::now()).finish();
        self.append(&[self.head.link(&line)]).1?;
        self.write_checkpoint()
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
