//! Why an operation of the ledger failed.

use super::bound_request::BoundRequestError;
use super::ledger_entry::AnswerRecordError;
use crate::call::reason_code;
use crate::host::StoreError;

/// Why a ledger operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store failed.
    #[error("{}", of_store(.0))]
    Store(#[from] StoreError),
    /// The record has an unknown format.
    #[error("the stored record `{0}` can't be read")]
    Corrupt(String),
    /// The record's approval request is not sealed with one of the keys.
    #[error("the stored record `{0}` was changed: {1}")]
    Altered(String, BoundRequestError),
    /// There is no such call or grant.
    #[error("the store has no record `{0}`")]
    NotFound(String),
    /// The answer was rejected.
    #[error("{0}")]
    AnswerRejected(#[from] AnswerRecordError),
    /// Callgate itself failed.
    #[error("Callgate failed while it accessed the store")]
    Internal,
    /// There were too many concurrent changes.
    #[error("`{0}` was changed by others too many times; try again")]
    Contended(String),
}

impl LedgerError {
    /// The reason code of a call that is not run because of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Corrupt(_) | Self::Altered(..) => reason_code::STATE_ALTERED,
            Self::Internal => reason_code::INTERNAL_ERROR,
            _ => reason_code::STORE_UNAVAILABLE,
        }
    }
}

fn of_store(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(why) => format!("the store is unavailable: {why}"),
        StoreError::QuotaExceeded(why) => format!("the store rejected the write: {why}"),
        StoreError::Altered(why) => format!("the store was altered: {why}"),
    }
}
