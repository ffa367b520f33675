//! Store operations: their futures, their errors and their timeout.

use std::time::Duration;

use super::panic_guard::{catch_panic, with_deadline};
use super::{BoxFuture, Clock};
use crate::call::reason_code;

/// The future of a store operation.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store operation failed. The policy decides the effect: limits fail closed, caches are bypassed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store does not respond, or is full.
    #[error("{0}")]
    Unavailable(String),
    /// The account has used its share of the store; other accounts are not affected. Calls that are allowed when a store is
    /// unavailable are refused here: a caller must not lift a limit by using up its share.
    #[error("{0}")]
    QuotaExceeded(String),
    /// The store does not hold what a holder of the server's keys wrote last: a record was changed, removed, or replaced by
    /// an older version.
    #[error("{0}")]
    Altered(String),
}

impl StoreError {
    /// The reason code of a call that is refused because of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => reason_code::STORE_UNAVAILABLE,
            Self::QuotaExceeded(_) => reason_code::QUOTA_EXCEEDED,
            Self::Altered(_) => reason_code::STATE_ALTERED,
        }
    }
}

/// The timeout of a store operation.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Awaits a store operation with a timeout. A panic is returned as an error, too.
pub async fn with_store_timeout<'q, T: 'q>(
    clock: &dyn Clock,
    question: impl FnOnce() -> StoreFuture<'q, T>,
) -> Result<T, StoreError> {
    let answer = with_deadline(async { question().await }, || clock.sleep(STORE_TIMEOUT));
    match catch_panic(answer).await {
        Ok(Some(answer)) => answer,
        Err(_) => Err(StoreError::Unavailable("the store panicked".to_owned())),
        Ok(None) => Err(StoreError::Unavailable(format!("no response within {}s", STORE_TIMEOUT.as_secs()))),
    }
}
