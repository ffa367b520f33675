//! The clock of engines in Python: timers belong to the operation that waits for them, so they need neither a thread nor a runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use callgate::{BoxFuture, Clock};
use jiff::Timestamp;

use crate::operation::{OperationContext, TimerId};

/// The system clock, or one that stands still.
pub(crate) struct OperationClock {
    fixed: Option<Timestamp>,
}

impl OperationClock {
    /// `fixed`: the time at which the clock stands still, for tests. Timers run on all the same.
    pub(crate) fn new(fixed: Option<Timestamp>) -> Self {
        Self { fixed }
    }
}

impl Clock for OperationClock {
    fn now(&self) -> Timestamp {
        self.fixed.unwrap_or_else(Timestamp::now)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        // Nothing waits for longer than a century.
        let duration = duration.min(Duration::from_secs(100 * 366 * 86_400));
        Box::pin(Sleep { until: Instant::now() + duration, timer: None })
    }
}

/// A timer of the operation that polls it first.
struct Sleep {
    until: Instant,
    timer: Option<(Arc<OperationContext>, TimerId)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        if self.timer.is_none() {
            let Some(operation) = OperationContext::current() else {
                // Whoever polls this outside of an operation could not be woken: the time is up.
                return Poll::Ready(());
            };
            let timer = operation.timers().start(self.until);
            self.timer = Some((operation, timer));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((operation, timer)) = self.timer.take() {
            operation.timers().stop(timer);
        }
    }
}
