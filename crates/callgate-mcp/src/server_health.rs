//! Whether a server answered when a client last used it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a server counts as failing. A gateway whose servers all fail gets no calls from a load balancer, so nothing else would
/// show that they answer again.
const FAILURE_WINDOW: Duration = Duration::from_secs(30);

/// Whether a server answers. Each client may have a connection of its own; the last event of any of them counts. A server that was never
/// used counts as answering.
#[derive(Debug, Default)]
pub(super) struct ServerHealth {
    failure: Mutex<Option<Instant>>,
}

impl ServerHealth {
    /// Records that the server has answered.
    pub(super) fn record_success(&self) {
        self.set_failure(None);
    }

    /// Records that the server can't be reached, or does not answer.
    pub(super) fn record_failure(&self) {
        self.set_failure(Some(Instant::now()));
    }

    fn set_failure(&self, at: Option<Instant>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Whether the server answers.
    pub(super) fn is_up(&self) -> bool {
        let failure = *self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.is_none_or(|at| at.elapsed() >= FAILURE_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_until_an_answer_or_for_a_while() {
        let health = ServerHealth::default();
        assert!(health.is_up());
        health.record_failure();
        assert!(!health.is_up());
        health.record_success();
        assert!(health.is_up());
        health.record_failure();
        tokio::time::advance(FAILURE_WINDOW).await;
        assert!(health.is_up());
    }
}
