//! The queue of messages to a client, with a policy for clients that read slowly.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::jsonrpc::JsonRpcMessage;

/// Capacity of the queue to a client. When it is full, the client's servers are blocked, too (backpressure).
pub(super) const QUEUE_CAPACITY: usize = 256;
/// How long a full queue may block servers that the client shares with others.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The sending side of a client's only stream, or of the stream that answers one of its requests.
#[derive(Clone, Debug)]
pub(super) struct ClientSender {
    queue: mpsc::Sender<JsonRpcMessage>,
    overflow: OverflowPolicy,
}

/// What to do with a message if the queue is full.
#[derive(Clone, Debug)]
enum OverflowPolicy {
    /// Wait.
    Block,
    /// Drop it: possibly nobody is reading.
    Drop,
    /// Wait for a limited time, then close the queue and set this flag.
    Close(Arc<watch::Sender<bool>>),
}

impl ClientSender {
    pub(super) fn new() -> (Self, mpsc::Receiver<JsonRpcMessage>) {
        let (queue, messages) = mpsc::channel(QUEUE_CAPACITY);
        (Self { queue, overflow: OverflowPolicy::Block }, messages)
    }

    /// A queue that possibly nobody reads. Servers never wait for it.
    pub(super) fn lossy() -> (Self, mpsc::Receiver<JsonRpcMessage>) {
        let (queue, messages) = mpsc::channel(QUEUE_CAPACITY);
        (Self { queue, overflow: OverflowPolicy::Drop }, messages)
    }

    /// One of several queues from the same servers: a client that does not read it blocks the others only for a limited time. The
    /// receiver becomes true when the queue is closed for that reason.
    pub(super) fn with_timeout() -> (Self, mpsc::Receiver<JsonRpcMessage>, watch::Receiver<bool>) {
        let (queue, messages) = mpsc::channel(QUEUE_CAPACITY);
        let (closed_sender, closed) = watch::channel(false);
        (Self { queue, overflow: OverflowPolicy::Close(Arc::new(closed_sender)) }, messages, closed)
    }

    /// Sends a message. Does nothing if the client is gone.
    pub(super) async fn send(&self, message: JsonRpcMessage) {
        match &self.overflow {
            OverflowPolicy::Block => drop(self.queue.send(message).await),
            OverflowPolicy::Drop => drop(self.queue.try_send(message)),
            OverflowPolicy::Close(is_abandoned) if *is_abandoned.borrow() => {}
            OverflowPolicy::Close(is_abandoned) => {
                if self.queue.send_timeout(message, SEND_TIMEOUT).await.is_err() {
                    is_abandoned.send_replace(true);
                }
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
            || matches!(&self.overflow, OverflowPolicy::Close(is_abandoned) if *is_abandoned.borrow())
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[tokio::test]
    async fn a_lossy_queue_drops_messages_when_full() {
        let (sender, mut messages) = ClientSender::lossy();
        for number in 0..QUEUE_CAPACITY + 2 {
            sender
                .send(JsonRpcMessage::notification("notifications/message", json!({ "data": number })))
                .await;
        }
        let mut received = Vec::new();
        while let Ok(message) = messages.try_recv() {
            received.push(message.param("data").and_then(callgate::json::Value::as_u64));
        }
        assert_eq!(
            (received.len(), received.first(), received.last()),
            (QUEUE_CAPACITY, Some(&Some(0)), Some(&Some(255)))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_shared_queue_is_closed_if_nobody_reads_it() {
        let (sender, mut messages, closed) = ClientSender::with_timeout();
        let begun = tokio::time::Instant::now();
        for number in 0..QUEUE_CAPACITY + 5 {
            sender
                .send(JsonRpcMessage::notification("notifications/message", json!({ "data": number })))
                .await;
        }
        assert_eq!(begun.elapsed().as_secs(), SEND_TIMEOUT.as_secs(), "servers wait once");
        assert!(sender.is_closed() && *closed.borrow());
        let mut received = 0;
        while messages.try_recv().is_ok() {
            received += 1;
        }
        assert_eq!(received, QUEUE_CAPACITY, "nothing is left out before the end");
    }
}
