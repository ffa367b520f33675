//! Where messages for a client go.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::frame::Frame;

/// Messages that wait for a client that reads slowly. Beyond it, its servers wait, too.
pub(super) const QUEUE: usize = 256;
/// How long servers wait for a client that others share them with.
const PATIENCE: Duration = Duration::from_secs(30);

/// A way to a client: its one stream, or the stream that answers one of its requests.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    to: mpsc::Sender<Frame>,
    when_full: WhenFull,
}

/// What becomes of a message for which there is no room.
#[derive(Clone, Debug)]
enum WhenFull {
    /// It waits.
    Wait,
    /// It is lost: nobody need be reading.
    Lose,
    /// It waits for a while. Then all of the way is given up, and this is told.
    GiveUp(Arc<watch::Sender<bool>>),
}

impl Outlet {
    pub(super) fn new() -> (Self, mpsc::Receiver<Frame>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self { to, when_full: WhenFull::Wait }, from)
    }

    /// A way on which nobody need be listening. Servers do not wait for whoever never comes.
    pub(super) fn lossy() -> (Self, mpsc::Receiver<Frame>) {
        let (to, from) = mpsc::channel(QUEUE);
        (Self { to, when_full: WhenFull::Lose }, from)
    }

    /// One of several ways from the same servers: who does not read on one of them holds up the others only for a while. Tells, by
    /// what is given last, when it is given up.
    pub(super) fn of_several() -> (Self, mpsc::Receiver<Frame>, watch::Receiver<bool>) {
        let (to, from) = mpsc::channel(QUEUE);
        let (give_up, given_up) = watch::channel(false);
        (Self { to, when_full: WhenFull::GiveUp(Arc::new(give_up)) }, from, given_up)
    }

    /// A client that is gone is told nothing.
    pub(super) async fn send(&self, frame: Frame) {
        match &self.when_full {
            WhenFull::Wait => drop(self.to.send(frame).await),
            WhenFull::Lose => drop(self.to.try_send(frame)),
            WhenFull::GiveUp(given_up) if *given_up.borrow() => {}
            WhenFull::GiveUp(given_up) => {
                if self.to.send_timeout(frame, PATIENCE).await.is_err() {
                    given_up.send_replace(true);
                }
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed() || matches!(&self.when_full, WhenFull::GiveUp(given_up) if *given_up.borrow())
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    #[tokio::test]
    async fn servers_do_not_wait_for_messages_that_nobody_reads() {
        let (outlet, mut messages) = Outlet::lossy();
        for number in 0..QUEUE + 2 {
            outlet.send(Frame::notification("notifications/message", json!({ "data": number }))).await;
        }
        let mut kept = Vec::new();
        while let Ok(frame) = messages.try_recv() {
            kept.push(frame.param("data").and_then(crate::json::Value::as_u64));
        }
        assert_eq!((kept.len(), kept.first(), kept.last()), (QUEUE, Some(&Some(0)), Some(&Some(255))));
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_several_that_does_not_read_is_given_up() {
        let (outlet, mut messages, given_up) = Outlet::of_several();
        let begun = tokio::time::Instant::now();
        for number in 0..QUEUE + 5 {
            outlet.send(Frame::notification("notifications/message", json!({ "data": number }))).await;
        }
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs(), "servers wait once");
        assert!(outlet.is_closed() && *given_up.borrow());
        let mut kept = 0;
        while messages.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, QUEUE, "nothing is left out before the end");
    }
}
