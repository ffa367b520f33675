//! Reads the stream of a session, with the server's messages that belong to no request.

use std::time::Duration;

use super::SharedConnection;
use super::response_reader::{ResponseItem, ResponseReader, StreamCursor};
use crate::http_headers::EVENT_STREAM;
use crate::upstream_event::UpstreamEvent;

/// The maximum backoff between two attempts to open the stream.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

impl SharedConnection {
    /// Reads the stream until the connection is closed, or the server has no such stream. Returns at once if another task reads it.
    pub(super) async fn read_notifications(&self) {
        let Ok(_listening) = self.listening.try_lock() else { return };
        tokio::select! {
            () = self.read_notifications_with_retry() => {}
            () = self.closed() => {}
        }
    }

    async fn read_notifications_with_retry(&self) {
        let mut cursor = StreamCursor::default();
        let mut failures = 0;
        loop {
            match self.open_stream(&cursor).await {
                Ok(response) if response.is_success() && response.has_content_type(EVENT_STREAM) => {
                    failures =
                        if self.forward_notifications(response, &mut cursor).await { 0 } else { failures };
                }
                // It has no such stream, or has lost the session, which the next request detects. 429 (too many requests) is temporary.
                Ok(response) if response.status() < 500 && response.status() != 429 => return,
                _ => {}
            }
            failures = (failures + 1).min(16);
            let wait = cursor.retry.saturating_mul(1 << (failures - 1)).min(MAX_BACKOFF);
            tokio::time::sleep(wait).await;
        }
    }

    /// Forwards the messages of one response. Returns whether there were any.
    async fn forward_notifications(
        &self,
        response: super::http_client::HttpResponse,
        cursor: &mut StreamCursor,
    ) -> bool {
        let mut messages = ResponseReader::new(response, self.limit, cursor);
        let mut has_messages = false;
        loop {
            match messages.next().await {
                ResponseItem::Message(message) => self.emit(message, None).await,
                ResponseItem::Malformed(why) => {
                    drop(self.events.send(UpstreamEvent::Malformed { why, answers: Vec::new() }).await)
                }
                ResponseItem::End(_) => return has_messages,
            }
            has_messages = true;
        }
    }
}
