//! Shutdown signals (SIGINT, SIGTERM) for graceful shutdown of servers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Returns when the process receives an interrupt or termination signal.
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

/// A reader that reports end of input once the process receives a shutdown signal, and notifies a receiver at the end of input.
pub(super) struct UntilTold<R> {
    from: R,
    told: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
    tell_over: Option<oneshot::Sender<()>>,
}

impl<R> UntilTold<R> {
    pub(super) fn new(from: R) -> (Self, oneshot::Receiver<()>) {
        let (tell_over, over) = oneshot::channel();
        let told = Box::pin(told_to_end());
        (Self { from, told, is_over: false, tell_over: Some(tell_over) }, over)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilTold<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let is_told = self.is_over || self.told.as_mut().poll(context).is_ready();
        let read =
            if is_told { Poll::Ready(Ok(())) } else { Pin::new(&mut self.from).poll_read(context, buffer) };
        if read.is_ready() && buffer.filled().len() == before {
            self.is_over = true;
            self.tell_over.take().map(|tell| tell.send(()));
        }
        read
    }
}
