//! Reads the messages of one HTTP response, a single message or a stream.

use std::time::Duration;

use super::http_client::HttpResponse;
use super::sse::{SseEvent, SseParser};
use crate::http_headers::{self, EVENT_STREAM};
use crate::jsonrpc::JsonRpcMessage;
use crate::upstream_event::UpstreamError;

/// The default delay before reconnecting to a broken stream.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The maximum delay that a server may request.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The position in a stream, to resume it.
#[derive(Clone, Debug)]
pub(super) struct StreamCursor {
    /// The id of the last event that has one.
    pub(super) last: Option<String>,
    pub(super) retry: Duration,
}

impl Default for StreamCursor {
    fn default() -> Self {
        Self { last: None, retry: DEFAULT_RETRY_DELAY }
    }
}

/// The next item of a response.
pub(super) enum ResponseItem {
    Message(JsonRpcMessage),
    /// A malformed message: the problem.
    Malformed(String),
    /// The end of the response; with the reason if it broke off.
    End(Option<UpstreamError>),
}

/// Reads the messages of a response.
pub(super) struct ResponseReader<'c> {
    response: HttpResponse,
    /// The parser, if the response is a stream.
    parser: Option<SseParser>,
    queued_events: std::collections::VecDeque<SseEvent>,
    cursor: &'c mut StreamCursor,
    limit: usize,
    is_over: bool,
}

impl<'c> ResponseReader<'c> {
    /// Creates a reader. `limit`: the maximum size of a message, in bytes.
    pub(super) fn new(response: HttpResponse, limit: usize, cursor: &'c mut StreamCursor) -> Self {
        let parser = response.has_content_type(EVENT_STREAM).then(|| SseParser::new(limit));
        Self {
            response,
            parser,
            queued_events: std::collections::VecDeque::new(),
            cursor,
            limit,
            is_over: false,
        }
    }

    pub(super) async fn next(&mut self) -> ResponseItem {
        if self.is_over {
            return ResponseItem::End(None);
        }
        if self.parser.is_none() {
            self.is_over = true;
            return self.read_single().await;
        }
        loop {
            while let Some(event) = self.queued_events.pop_front() {
                if let Some(next) = self.handle_event(event) {
                    return next;
                }
            }
            let bytes = match self.response.next_chunk().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return self.finish(None),
                Err(why) => return self.finish(Some(why)),
            };
            let Some(parser) = &mut self.parser else { return self.finish(None) };
            match parser.feed(&bytes) {
                Ok(events) => self.queued_events.extend(events),
                Err(_) => {
                    let why = format!("a message is longer than {} bytes", self.limit);
                    return self.finish(Some(UpstreamError(why)));
                }
            }
        }
    }

    fn finish(&mut self, why: Option<UpstreamError>) -> ResponseItem {
        self.is_over = true;
        ResponseItem::End(why)
    }

    fn handle_event(&mut self, event: SseEvent) -> Option<ResponseItem> {
        if let Some(milliseconds) = event.retry {
            self.cursor.retry = Duration::from_millis(milliseconds).min(MAX_RETRY_DELAY);
        }
        if event.id.is_some() {
            // An empty id resets the last one.
            self.cursor.last = event.id.filter(|id| !id.is_empty());
        }
        let is_message = event.kind.is_none_or(|kind| kind == "message" || kind.is_empty());
        if !is_message || event.data.is_empty() {
            return None;
        }
        Some(match http_headers::read_message(&event.data) {
            Ok(message) => ResponseItem::Message(message.into_stream_event()),
            Err(why) => ResponseItem::Malformed(why.message),
        })
    }

    /// Reads a body that is one message.
    async fn read_single(&mut self) -> ResponseItem {
        match read_body(&mut self.response, self.limit).await {
            Err(why) => ResponseItem::End(Some(why)),
            Ok(body) if body.iter().all(u8::is_ascii_whitespace) => ResponseItem::End(None),
            Ok(body) => match http_headers::read_message(&body) {
                Ok(message) => ResponseItem::Message(message),
                Err(why) => ResponseItem::Malformed(why.message),
            },
        }
    }
}

/// Reads the whole body of a response.
pub(super) async fn read_body(response: &mut HttpResponse, limit: usize) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.next_chunk().await? {
        if body.len() + bytes.len() > limit {
            return Err(UpstreamError(format!("its response is longer than {limit} bytes")));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
