//! Where messages for a client go.

use tokio::sync::mpsc;

use super::frame::Frame;

/// Messages that wait for a client that reads slowly. Beyond it, its servers wait, too.
pub(super) const QUEUE: usize = 256;

/// A way to a client: its one stream, or the stream that answers one of its requests.
#[derive(Clone, Debug)]
pub(super) struct Outlet(mpsc::Sender<Frame>);

impl Outlet {
    pub(super) fn new() -> (Self, mpsc::Receiver<Frame>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self(to), from)
    }

    /// A client that is gone is told nothing.
    pub(super) async fn send(&self, frame: Frame) {
        let _ = self.0.send(frame).await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
