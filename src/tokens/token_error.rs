//! Why the tokens of a text are undecided.

use super::token_kind::TokenKind;
use crate::address::Undecided;
use crate::work_limit::WorkLimitError;

/// Reason why a value or a source is undecided, phrased to follow "the test is undecided: ". `it` is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The value has a control, bidirectional or invisible character.
    #[error("it has a control character or an invisible character")]
    HiddenCharacter,
    /// The value is not exactly one token.
    #[error("it is not exactly one {}", .0.noun())]
    NotOneToken(TokenKind),
    /// The value is one token that programs interpret differently.
    #[error(transparent)]
    Ambiguous(#[from] Undecided),
    /// The value is a number with two readings.
    #[error("it is a number with two readings: set `decimal` to `\".\"` or `\",\"`")]
    AmbiguousSubject,
    /// A number of a source equals the value in only one of its readings.
    #[error(
        "the source has a number with two readings, of which one is equal: set `decimal` to `\".\"` or `\",\"`"
    )]
    AmbiguousNumber,
    /// The value or the sources are too long.
    #[error("it or the source is longer than 1 MiB")]
    TooLong,
    /// The work units of the call are used up.
    #[error(transparent)]
    WorkLimit(#[from] WorkLimitError),
}
