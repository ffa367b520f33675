//! How a process that serves is told to end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the process is interrupted or told to end.
pub(super) async fn told_to_end() {
    let interrupted = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => drop(interrupted.await),
    }
}

/// What is read until the process is told to end: whoever reads it ends as if nothing more came.
pub(super) struct UntilTold<R> {
    from: R,
    told: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl<R> UntilTold<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, told: Box::pin(told_to_end()), is_over: false }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilTold<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over || self.told.as_mut().poll(context).is_ready() {
            self.is_over = true;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.from).poll_read(context, buffer)
    }
}
