//! Wrappers for the host's futures: panics become errors, and deadlines apply.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The error of a future that panicked.
#[derive(Debug)]
pub struct PanicError;

/// Awaits a future. Returns an error if it panics.
pub async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, PanicError> {
    let mut future = pin!(future);
    // A future that panicked is never polled again.
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Err(PanicError)),
    })
    .await
}

/// Awaits a future until `deadline` completes; returns `None` if the deadline completes first. A ready future wins over the
/// deadline, and the deadline is created only when the future is pending.
pub async fn with_deadline<T, D: Future<Output = ()>>(
    future: impl Future<Output = T>,
    deadline: impl FnOnce() -> D,
) -> Option<T> {
    let mut future = pin!(future);
    let mut first = None;
    poll_fn(|context| {
        first = match future.as_mut().poll(context) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        };
        Poll::Ready(())
    })
    .await;
    if first.is_some() {
        return first;
    }
    let mut deadline = pin!(deadline());
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        deadline.as_mut().poll(context).map(|()| None)
    })
    .await
}
