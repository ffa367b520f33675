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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn servers_do_not_wait_for_messages_that_nobody_reads() {
        let (outlet, mut messages) = Outlet::lossy();
        for number in 0..QUEUE + 2 {
            outlet.send(Frame::notification("notifications/message", json!({ "data": number }))).await;
        }
        let mut kept = Vec::new();
        while let Ok(frame) = messages.try_recv() {
            kept.push(frame.param("data").and_then(serde_json::Value::as_u64));
        }
        assert_eq!((kept.len(), kept.first(), kept.last()), (QUEUE, Some(&Some(0)), Some(&Some(255))));
    }
}
