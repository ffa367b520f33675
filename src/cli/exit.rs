//! How a command ends.

use std::io;
use std::process::ExitCode;

/// The exit status of a command that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Done,
    /// What was asked about fails: errors in rules, an outcome that must not be.
    Fails,
    /// A wrong argument, or something that can't be read or written.
    Trouble,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Fails => Self::from(1),
            Exit::Trouble => Self::from(2),
        }
    }
}

/// Why a command does not come to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Whoever read the results needs no more of them (`| head`).
    ReaderGone,
    /// With what to say about it.
    Trouble(String),
}

impl Stop {
    pub(super) fn trouble(message: impl Into<String>) -> Self {
        Self::Trouble(message.into())
    }
}

/// Of writing results. What is read has its own messages, which name the file.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Trouble(format!("the results can't be written: {error}")),
        }
    }
}
