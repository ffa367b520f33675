//! The value of an expression, or why it has none.

use super::fuel::EvalError;
use crate::call::NodeRef;
use crate::json::Value;
use crate::time::TimeText;

/// An evaluation error of an expression; the condition that uses it is undecided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// The problem.
    pub message: String,
    /// Whether something that the expression reads is missing; otherwise it is undecided.
    pub is_absent: bool,
}

impl From<EvalError> for ExpressionError {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::Absent(message) => Self { message, is_absent: true },
            EvalError::Error(message) | EvalError::LimitExceeded(message) => {
                Self { message, is_absent: false }
            }
        }
    }
}

/// The value of an expression: borrowed from the call or the rules if it is a part of them.
#[derive(Clone, Debug)]
pub enum ExpressionValue<'a> {
    /// A part of the call or of the rules.
    Borrowed(NodeRef<'a>),
    /// A new value.
    Owned(Value),
    /// A timestamp or a duration.
    Time(TimeText),
}

impl ExpressionValue<'_> {
    /// The value.
    pub fn node(&self) -> NodeRef<'_> {
        match self {
            Self::Borrowed(node) => *node,
            Self::Owned(value) => NodeRef::Json(value),
            Self::Time(time) => NodeRef::Time(time),
        }
    }
}
