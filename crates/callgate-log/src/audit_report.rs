//! What a verification of an audit log found.

use callgate::seal::PublicKey;
use jiff::Timestamp;

use crate::audit_chain::ChainHead;
use crate::event_line::FORMAT_VERSION;

/// The number of problems, and of notes, that a report lists. Further ones are counted.
const LISTED: usize = 100;

/// A line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPosition {
    /// The name of the file.
    pub file: String,
    /// The line, from 1; 0 if it concerns the log as a whole.
    pub line: u64,
}

/// Evidence that an audit log was altered. The numbers are those of lines in the chain (`seq`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditProblem {
    /// There is not a single line.
    #[error("the log has no lines: they were removed, or it is another file")]
    Empty,
    /// A line that nothing declares as incomplete is not a line of a chain.
    #[error("the line was changed, inserted or damaged: it is not a line of an audit log")]
    Damaged,
    /// An incomplete line, which a later line declares, is not there.
    #[error("the incomplete line before it, which it declares, is missing")]
    IncompleteMissing,
    /// A line is longer than any that a log has.
    #[error("the line is too long to be of an audit log")]
    TooLong,
    /// The digest that the next line records is another one.
    #[error("line {seq} before it was changed, or is of another log: the digests differ")]
    Changed {
        /// The line that was changed.
        seq: u64,
    },
    /// Lines are missing before a line.
    #[error("lines {first} to {last} before it are missing")]
    Missing {
        /// The first one.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// A line is copied, moved, or inserted.
    #[error("line {seq} is repeated or out of order")]
    OutOfOrder {
        /// Its number.
        seq: u64,
    },
    /// A checkpoint's signature does not verify.
    #[error("the signature of the checkpoint is invalid")]
    InvalidSignature,
    /// A checkpoint is signed by someone else.
    #[error("the checkpoint is signed with another key: `{0}`")]
    UnknownKey(PublicKey),
    /// More lines follow each other without a checkpoint than a log has.
    #[error("no checkpoint proves the lines from {first} on: whoever wrote them had no key")]
    Unsigned {
        /// The first one.
        first: u64,
    },
    /// A line is not the expected one.
    #[error("line {seq} is not the expected one: its digest differs")]
    Unexpected {
        /// Its number.
        seq: u64,
    },
    /// The log ends before a line that is known to have existed, or begins after it.
    #[error("the expected line {seq} is missing: lines were removed")]
    ExpectedMissing {
        /// Its number.
        seq: u64,
    },
}

/// What a reader of an intact log should know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditNote {
    /// A process continues the log of one that did not close it.
    #[error(
        "the process before it did not close the log: it was killed or crashed, or lines were removed. Whoever could write the file then could replace what follows the checkpoint of line {checkpoint}"
    )]
    Unclosed {
        /// The last checkpoint before it.
        checkpoint: u64,
    },
    /// An incomplete line of a process that was killed or crashed.
    #[error("the line is incomplete: a process was killed or crashed while it wrote")]
    Incomplete,
    /// A line of a later version, of which only the chain is verified.
    #[error(
        "the line has version {version}, and this Callgate knows versions up to {FORMAT_VERSION}: verify the log with a newer one, too"
    )]
    LaterVersion {
        /// Its version.
        version: u64,
    },
    /// The time of a line is earlier than that of the one before it.
    #[error("the clock was set back by {seconds} s")]
    ClockSetBack {
        /// By how much.
        seconds: u64,
    },
    /// The log could not be written for some time.
    #[error("{count} events before it are lost, because the log could not be written")]
    Lost {
        /// Their number.
        count: u64,
    },
}

/// Something found at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// Where.
    pub at: AuditPosition,
    /// What.
    pub what: T,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AuditReport {
    /// The number of files.
    pub files: u64,
    /// The number of lines of the chain.
    pub lines: u64,
    /// The number of the first line.
    pub first: Option<u64>,
    /// The last line: write it down elsewhere, and a later verification that expects it proves that nothing was cut.
    pub last: Option<ChainHead>,
    /// The times of the first and the last line.
    pub times: Option<(Timestamp, Timestamp)>,
    /// The last line that checkpoints prove. Lines after it can be exchanged or cut by whoever can write the file.
    pub proven: Option<u64>,
    /// Whether the log ends as a process closes it.
    pub is_closed: bool,
    /// The keys that signed.
    pub keys: Vec<PublicKey>,
    /// The first problems.
    pub problems: Vec<Located<AuditProblem>>,
    /// The number of all problems.
    pub problem_count: u64,
    /// The first notes.
    pub notes: Vec<Located<AuditNote>>,
    /// The number of all notes.
    pub note_count: u64,
}

impl AuditReport {
    /// Whether there is no evidence that the log was altered.
    pub fn is_intact(&self) -> bool {
        self.problem_count == 0
    }

    pub(crate) fn add_problem(&mut self, at: AuditPosition, what: AuditProblem) {
        self.problem_count += 1;
        if self.problems.len() < LISTED {
            self.problems.push(Located { at, what });
        }
    }

    pub(crate) fn add_note(&mut self, at: AuditPosition, what: AuditNote) {
        self.note_count += 1;
        if self.notes.len() < LISTED {
            self.notes.push(Located { at, what });
        }
    }
}
