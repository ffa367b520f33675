//! The result of one replay of a script: an effect to perform, the output, or an error.

use super::effect::ScriptEffect;
use super::exported_value::ExportedValue;
use super::program::SourcePosition;

/// The result of one replay.
#[derive(Clone, Debug)]
pub enum ReplayResult<'c> {
    /// The script stopped at an effect that has no result in the journal: perform it, record the result, replay.
    Effect(ScriptEffect<'c>),
    /// The script completed.
    Completed {
        /// The value of the last statement, or the returned value.
        output: ExportedValue<'c>,
        /// The journal entry (from 0) whose result this is, unchanged.
        from: Option<usize>,
    },
    /// The script threw an error, or did not catch one.
    Exception(ScriptException),
    /// The script failed.
    Failed(ScriptRunError),
}

/// The error that ended a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptException {
    /// The message.
    pub message: String,
    /// An identifier that policies can match.
    pub kind: Option<String>,
    /// The journal entry (from 0) whose result this error is; `None` for an error of the script itself.
    pub journal_entry: Option<usize>,
}

/// A failure of a script: an uncaught runtime error, an exceeded limit, or a journal that does not match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptRunError {
    /// The problem.
    pub message: String,
    /// Line and column in the script, both from 1, in characters.
    pub position: Option<(usize, usize)>,
    /// Whether the script requested other effects than the journal holds.
    pub is_mismatch: bool,
    /// Whether the script exceeded a limit.
    pub is_limit: bool,
}

impl ScriptRunError {
    pub(super) fn new(message: impl Into<String>, spot: Option<SourcePosition>) -> Self {
        let position = spot.map(|spot| (spot.line, spot.column));
        Self { message: message.into(), position, is_mismatch: false, is_limit: false }
    }

    pub(super) fn mismatch(message: impl Into<String>, spot: Option<SourcePosition>) -> Self {
        Self { is_mismatch: true, ..Self::new(message, spot) }
    }
}
