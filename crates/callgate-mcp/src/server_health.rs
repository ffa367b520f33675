//! Whether each server answered when a client last used it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a server counts as failing. A gateway whose servers all fail gets no calls from a load balancer, so nothing else would
/// show that they answer again.
const FAILURE_WINDOW: Duration = Duration::from_secs(30);

/// The servers of a gateway by their position. Each client has its own connections; the last event of any of them counts.
#[derive(Debug)]
pub(super) struct ServerHealth {
    failures: Vec<Mutex<Option<Instant>>>,
}

impl ServerHealth {
    /// Servers that were never used count as answering.
    pub(super) fn new(servers: usize) -> Self {
        Self { failures: (0..servers).map(|_| Mutex::default()).collect() }
    }

    /// Records that a server has answered.
    pub(super) fn record_success(&self, server: usize) {
        self.set_failure(server, None);
    }

    /// Records that a server can't be reached, or does not answer.
    pub(super) fn record_failure(&self, server: usize) {
        self.set_failure(server, Some(Instant::now()));
    }

    fn set_failure(&self, server: usize, at: Option<Instant>) {
        if let Some(failure) = self.failures.get(server) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = at;
        }
    }

    /// Whether each server answers, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = bool> {
        self.failures.iter().map(|failure| {
            let failure = *failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.is_none_or(|at| at.elapsed() >= FAILURE_WINDOW)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_until_an_answer_or_for_a_while() {
        let health = ServerHealth::new(2);
        let up = || health.iter().collect::<Vec<_>>();
        assert_eq!(up(), [true, true]);
        health.record_failure(0);
        health.record_failure(1);
        assert_eq!(up(), [false, false]);
        health.record_success(1);
        assert_eq!(up(), [false, true]);
        tokio::time::advance(FAILURE_WINDOW).await;
        assert_eq!(up(), [true, true]);
    }
}
