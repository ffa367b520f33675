//! Verifies an audit log: lines in order → [`AuditReport`]. Memory does not grow with the log.

use std::io::{self, Read};
use std::time::Duration;

use callgate::json::Digest;
use callgate::seal::PublicKey;
use jiff::Timestamp;

use crate::audit_chain::{CHECKPOINT, CHECKPOINT_LINES, CLOSED, ChainHead, ChainedLine};
use crate::audit_report::{AuditNote, AuditPosition, AuditProblem, AuditReport};
use crate::event_line::FORMAT_VERSION;
use crate::line_reader::{LineReader, LogLine, MAX_LINE_BYTES};
use crate::log_lines::{LOST, OPENED};

/// More lines than this without a checkpoint are not of a process that has the key. One that fails to write checkpoints is given some.
const UNSIGNED_LINES: u64 = 2 * CHECKPOINT_LINES;
/// Threads write in a slightly other order than that of their times.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);
/// What an incomplete part may have: the beginnings of several lines, if a process crashed while it continued after a crash.
const LONGEST_INCOMPLETE: usize = 3 * MAX_LINE_BYTES;

/// Verifies an audit log, file by file, from the oldest to the newest.
#[derive(Debug)]
pub struct AuditVerifier {
    /// The keys that may sign. Without any, the first one that signs.
    keys: Vec<PublicKey>,
    expected: Vec<ChainHead>,
    head: Option<ChainHead>,
    /// The lines since the last checkpoint.
    unsigned: u64,
    last_time: Option<Timestamp>,
    /// The latest version of lines so far.
    version: u64,
    /// Whether the last line is the last event of a process.
    is_closing: bool,
    /// The line that is read.
    at: AuditPosition,
    incomplete: Option<IncompletePart>,
    report: AuditReport,
}

/// Lines that are not of the chain. They are allowed only before a line that declares them.
#[derive(Debug)]
struct IncompletePart {
    at: AuditPosition,
    bytes: Vec<u8>,
    ends_with_line_break: bool,
    is_too_long: bool,
}

impl AuditVerifier {
    /// A verifier that accepts the signatures of these keys; without any, those of the key that signs first, which proves no more than
    /// that one key signed everything. `expected` are lines of the log that were noted elsewhere.
    pub fn new(keys: Vec<PublicKey>, expected: Vec<ChainHead>) -> Self {
        Self {
            keys,
            expected,
            head: None,
            unsigned: 0,
            last_time: None,
            version: FORMAT_VERSION,
            is_closing: false,
            at: AuditPosition::default(),
            incomplete: None,
            report: AuditReport::default(),
        }
    }

    /// Reads a file. `on_line` is called for each line.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn read(&mut self, name: &str, input: impl Read, mut on_line: impl FnMut()) -> io::Result<()> {
        self.report.files += 1;
        self.at.file = name.to_owned();
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            on_line();
            self.at.line = line.number;
            let read = if line.is_terminated { ChainedLine::parse(line.bytes) } else { None };
            match read {
                Some(read) => self.add_line(&read),
                None => self.add_incomplete(line),
            }
        }
        Ok(())
    }

    /// The result, after the last file.
    pub fn finish(mut self) -> AuditReport {
        let is_begun = self.incomplete.is_some();
        if let Some(part) = self.incomplete.take() {
            match part.ends_with_line_break || part.is_too_long {
                true => self.report.add_problem(part.at.clone(), part.problem()),
                false => self.report.add_note(part.at, AuditNote::Incomplete),
            }
        }
        self.at = AuditPosition::default();
        if self.head.is_none() && !is_begun {
            self.add_problem(AuditProblem::Empty);
        }
        // A process that is killed at once has written its first line only.
        if self.report.keys.is_empty() && self.report.lines > 1 {
            let first = self.report.first.unwrap_or(1);
            self.add_problem(AuditProblem::Unsigned { first });
        }
        for expected in std::mem::take(&mut self.expected) {
            self.add_problem(AuditProblem::ExpectedMissing { seq: expected.seq });
        }
        self.report.last = self.head;
        self.report.is_closed = self.report.is_closed && !is_begun;
        self.report
    }

    fn add_line(&mut self, line: &ChainedLine<'_>) {
        self.end_incomplete(line);
        let is_next = self.link(line);
        self.expect(line.head());
        self.report.lines += 1;
        self.unsigned += 1;
        let was_closed = std::mem::take(&mut self.report.is_closed);
        match line.event {
            CHECKPOINT => self.add_checkpoint(line),
            OPENED if self.report.lines > 1 && !was_closed => {
                // The line itself is counted already.
                let checkpoint = line.seq.saturating_sub(self.unsigned);
                self.add_note(AuditNote::Unclosed { checkpoint });
            }
            LOST => {
                let count = line.number("count").unwrap_or_default();
                self.add_note(AuditNote::Lost { count });
            }
            _ => {}
        }
        self.is_closing = line.event == CLOSED;
        if line.version > self.version {
            self.version = line.version;
            self.add_note(AuditNote::LaterVersion { version: line.version });
        }
        if self.unsigned == UNSIGNED_LINES {
            self.add_problem(AuditProblem::Unsigned { first: line.seq.saturating_sub(UNSIGNED_LINES - 1) });
        }
        if let Some(time) = line.time() {
            self.add_time(time);
        }
        if is_next {
            self.head = Some(line.head());
        }
    }

    /// Compares a line with the one before it. Returns whether the chain continues from it.
    fn link(&mut self, line: &ChainedLine<'_>) -> bool {
        let Some(head) = self.head else {
            self.begin(line);
            return true;
        };
        let next = head.seq.saturating_add(1);
        let problem = match line.seq {
            seq if seq < next => Some(AuditProblem::OutOfOrder { seq }),
            seq if seq > next => Some(AuditProblem::Missing { first: next, last: seq - 1 }),
            _ if line.prev != head.digest => Some(AuditProblem::Changed { seq: head.seq }),
            _ => None,
        };
        problem.into_iter().for_each(|problem| self.add_problem(problem));
        line.seq >= next
    }

    /// The first line: that of a new chain, or the one after a line that is expected.
    fn begin(&mut self, line: &ChainedLine<'_>) {
        self.report.first = Some(line.seq);
        let before = ChainHead { seq: line.seq.saturating_sub(1), digest: line.prev };
        if before == ChainHead::start() {
            return;
        }
        match self.expected.iter().any(|expected| expected.seq == before.seq) {
            true => self.expect(before),
            false if before.seq == 0 => self.add_problem(AuditProblem::Damaged),
            false => self.add_problem(AuditProblem::Missing { first: 1, last: before.seq }),
        }
    }

    fn expect(&mut self, head: ChainHead) {
        let differs = |expected: &ChainHead| expected.seq == head.seq && expected.digest != head.digest;
        if self.expected.iter().any(differs) {
            self.add_problem(AuditProblem::Unexpected { seq: head.seq });
        }
        self.expected.retain(|expected| expected.seq != head.seq);
    }

    fn add_checkpoint(&mut self, line: &ChainedLine<'_>) {
        let Some(key) = line.key().filter(|key| line.is_signed_by(key)) else {
            return self.add_problem(AuditProblem::InvalidSignature);
        };
        if self.keys.is_empty() {
            self.keys.push(key.clone());
        }
        if !self.keys.contains(&key) {
            return self.add_problem(AuditProblem::UnknownKey(key));
        }
        if !self.report.keys.contains(&key) {
            self.report.keys.push(key);
        }
        self.unsigned = 0;
        self.report.is_closed = self.is_closing;
        if self.report.is_intact() {
            self.report.proven = Some(line.seq);
        }
    }

    fn add_time(&mut self, time: Timestamp) {
        let last = self.last_time.replace(time).unwrap_or(time);
        let back = Duration::try_from(last.duration_since(time)).unwrap_or_default();
        if back > CLOCK_TOLERANCE {
            self.add_note(AuditNote::ClockSetBack { seconds: back.as_secs() });
        }
        let (first, _) = self.report.times.unwrap_or((time, time));
        self.report.times = Some((first, time));
    }

    fn add_incomplete(&mut self, line: LogLine<'_>) {
        let begin = || IncompletePart {
            at: self.at.clone(),
            bytes: Vec::new(),
            ends_with_line_break: false,
            is_too_long: false,
        };
        self.incomplete.get_or_insert_with(begin).add(line);
    }

    /// Compares what precedes a line, and is not of the chain, with what the line declares.
    fn end_incomplete(&mut self, line: &ChainedLine<'_>) {
        let declared = line.text("incomplete_line_digest").filter(|_| line.event == OPENED);
        match (self.incomplete.take(), declared) {
            (None, None) => {}
            (None, Some(_)) => self.add_problem(AuditProblem::IncompleteMissing),
            (Some(part), declared) => match declared.is_some_and(|declared| part.is_declared(declared)) {
                true => self.report.add_note(part.at, AuditNote::Incomplete),
                false => self.report.add_problem(part.at.clone(), part.problem()),
            },
        }
    }

    fn add_problem(&mut self, problem: AuditProblem) {
        self.report.add_problem(self.at.clone(), problem);
    }

    fn add_note(&mut self, note: AuditNote) {
        self.report.add_note(self.at.clone(), note);
    }
}

impl IncompletePart {
    fn add(&mut self, line: LogLine<'_>) {
        if !self.bytes.is_empty() || self.ends_with_line_break {
            self.bytes.push(b'\n');
        }
        let room = LONGEST_INCOMPLETE.saturating_sub(self.bytes.len());
        self.bytes.extend(line.bytes.iter().take(room));
        self.is_too_long |= line.is_too_long || line.bytes.len() > room;
        self.ends_with_line_break = line.is_terminated;
    }

    fn is_declared(&self, digest: &str) -> bool {
        !self.is_too_long && Digest::compute(&self.bytes).to_string() == digest
    }

    fn problem(&self) -> AuditProblem {
        if self.is_too_long { AuditProblem::TooLong } else { AuditProblem::Damaged }
    }
}
