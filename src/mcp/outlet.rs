//! Where messages for a client go.

use tokio::sync::mpsc;

use super::frame::Frame;

/// Messages that wait for a client that reads slowly. Beyond it, its servers wait, too.
pub(super) const QUEUE: usize = 256;

/// A way to a client: its one stream, or the stream that answers one of its requests.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    to: mpsc::Sender<Frame>,
    /// Nobody need be reading: what there is no room for is lost.
    is_lossy: bool,
}

impl Outlet {
    pub(super) fn new() -> (Self, mpsc::Receiver<Frame>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self { to, is_lossy: false }, from)
    }

    /// A way on which nobody need be listening. Servers do not wait for whoever never comes.
    pub(super) fn lossy() -> (Self, mpsc::Receiver<Frame>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self { to, is_lossy: true }, from)
    }

    /// A client that is gone is told nothing.
    pub(super) async fn send(&self, frame: Frame) {
        if self.is_lossy {
            let _ = self.to.try_send(frame);
        } else {
            let _ = self.to.send(frame).await;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }
}
