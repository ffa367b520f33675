//! Exit statuses and errors of commands.

use std::io;
use std::process::ExitCode;

/// The exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExitStatus {
    /// Status 0.
    Success,
    /// Status 1, a negative result: errors in rules, or an outcome of `--fail-on`.
    Failure,
    /// Status 2: a usage or I/O error.
    Error,
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        match exit {
            ExitStatus::Success => Self::SUCCESS,
            ExitStatus::Failure => Self::from(1),
            ExitStatus::Error => Self::from(2),
        }
    }
}

/// Why a command stops early.
#[derive(Debug)]
pub(super) enum CommandError {
    /// The reader of stdout closed it (`| head`).
    OutputClosed,
    /// An error, with its message.
    Message(String),
}

impl CommandError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<callgate_state::StateError> for CommandError {
    fn from(error: callgate_state::StateError) -> Self {
        Self::Message(error.to_string())
    }
}

/// Errors of writing results. Errors of reading files have their own messages, which name the file.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Message(format!("can't write to stdout: {error}")),
        }
    }
}
