//! Futures that panic, made to fail instead.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Awaits a future; a panic in it is an error.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    // A future that panicked is never polled again.
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// Awaits a future, no longer than until `deadline` ends. What is ready counts before the deadline does, and the deadline
/// is first looked at when the future has to be waited for.
pub(crate) async fn before<T, D: Future<Output = ()>>(
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
