//! Shutdown signals (SIGINT, SIGTERM) for graceful shutdown of servers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Returns when the process receives an interrupt or termination signal.
pub(super) async fn wait_for_shutdown() {
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
pub(super) struct ReadUntilShutdown<R> {
    reader: R,
    shutdown: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_ended: bool,
    end_sender: Option<oneshot::Sender<()>>,
}

impl<R> ReadUntilShutdown<R> {
    pub(super) fn new(from: R) -> (Self, oneshot::Receiver<()>) {
        let (end_sender, over) = oneshot::channel();
        let shutdown = Box::pin(wait_for_shutdown());
        (Self { reader: from, shutdown, is_ended: false, end_sender: Some(end_sender) }, over)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadUntilShutdown<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let is_shutting_down = self.is_ended || self.shutdown.as_mut().poll(context).is_ready();
        let read = if is_shutting_down {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut self.reader).poll_read(context, buffer)
        };
        if read.is_ready() && buffer.filled().len() == before {
            self.is_ended = true;
            self.end_sender.take().map(|sender| sender.send(()));
        }
        read
    }
}
