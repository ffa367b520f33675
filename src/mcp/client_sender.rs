//! The queue of messages to a client, with a policy for clients that read slowly.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::jsonrpc::JsonRpcMessage;

/// Capacity of the queue to a client. When it is full, the client's servers are blocked, too (backpressure).
pub(super) const QUEUE_CAPACITY: usize = 256;
/// How long a full queue may block servers that the client shares with others.
const PATIENCE: Duration = Duration::from_secs(30);

/// The sending side of a client's only stream, or of the stream that answers one of its requests.
#[derive(Clone, Debug)]
pub(super) struct ClientSender {
    to: mpsc::Sender<JsonRpcMessage>,
    when_full: OverflowPolicy,
}

/// What to do with a message if the queue is full.
#[derive(Clone, Debug)]
enum OverflowPolicy {
    /// Wait.
    Wait,
    /// Drop it: possibly nobody is reading.
    Lose,
    /// Wait for a limited time, then close the queue and set this flag.
    Close(Arc<watch::Sender<bool>>),
}

impl ClientSender {
    pub(super) fn new() -> (Self, mpsc::Receiver<JsonRpcMessage>) {
        let (to, from) = mpsc::channel(QUEUE_CAPACITY);
        (Self { to, when_full: OverflowPolicy::Wait }, from)
    }

    /// A queue that possibly nobody reads. Servers never wait for it.
    pub(super) fn lossy() -> (Self, mpsc::Receiver<JsonRpcMessage>) {
        let (to, from) = mpsc::channel(QUEUE_CAPACITY);
        (Self { to, when_full: OverflowPolicy::Lose }, from)
    }

    /// One of several queues from the same servers: a client that does not read it blocks the others only for a limited time. The
    /// receiver becomes true when the queue is closed for that reason.
    pub(super) fn with_timeout() -> (Self, mpsc::Receiver<JsonRpcMessage>, watch::Receiver<bool>) {
        let (to, from) = mpsc::channel(QUEUE_CAPACITY);
        let (cancel_pending, given_up) = watch::channel(false);
        (Self { to, when_full: OverflowPolicy::Close(Arc::new(cancel_pending)) }, from, given_up)
    }

    /// Sends a message. Does nothing if the client is gone.
    pub(super) async fn send(&self, frame: JsonRpcMessage) {
        match &self.when_full {
            OverflowPolicy::Wait => drop(self.to.send(frame).await),
            OverflowPolicy::Lose => drop(self.to.try_send(frame)),
            OverflowPolicy::Close(given_up) if *given_up.borrow() => {}
            OverflowPolicy::Close(given_up) => {
                if self.to.send_timeout(frame, PATIENCE).await.is_err() {
                    given_up.send_replace(true);
                }
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
            || matches!(&self.when_full, OverflowPolicy::Close(given_up) if *given_up.borrow())
    }
}

#[cfg(test)]
mod tests {
    use crate::json::json;

    use super::*;

    #[tokio::test]
    async fn a_lossy_queue_drops_messages_when_full() {
        let (outlet, mut messages) = ClientSender::lossy();
        for number in 0..QUEUE_CAPACITY + 2 {
            outlet
                .send(JsonRpcMessage::notification("notifications/message", json!({ "data": number })))
                .await;
        }
        let mut kept = Vec::new();
        while let Ok(frame) = messages.try_recv() {
            kept.push(frame.param("data").and_then(crate::json::Value::as_u64));
        }
        assert_eq!(
            (kept.len(), kept.first(), kept.last()),
            (QUEUE_CAPACITY, Some(&Some(0)), Some(&Some(255)))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_shared_queue_is_closed_if_nobody_reads_it() {
        let (outlet, mut messages, given_up) = ClientSender::with_timeout();
        let begun = tokio::time::Instant::now();
        for number in 0..QUEUE_CAPACITY + 5 {
            outlet
                .send(JsonRpcMessage::notification("notifications/message", json!({ "data": number })))
                .await;
        }
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs(), "servers wait once");
        assert!(outlet.is_closed() && *given_up.borrow());
        let mut kept = 0;
        while messages.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, QUEUE_CAPACITY, "nothing is left out before the end");
    }
}
