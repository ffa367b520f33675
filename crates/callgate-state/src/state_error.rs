//! Why a state store can't be opened.

/// Why a state store can't be opened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Keys are missing.
    #[error("{0}")]
    MissingKeys(String),
    /// Anything else.
    #[error("{0}")]
    Unusable(String),
}

impl StateError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Unusable(message.into())
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> StateError {
    StateError::new(error.to_string())
}
