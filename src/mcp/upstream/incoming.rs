//! The messages of one HTTP answer, whether it is one message or a stream of them.

use std::time::Duration;

use super::sse::{Event, Parser};
use super::wire::Reply;
use crate::mcp::frame::Frame;
use crate::mcp::http_words::{self, EVENT_STREAM};

/// How long is waited before a broken stream is opened again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The longest such wait that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// Where a stream stands, for opening it again.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The last event that has a name.
    pub(super) last: Option<String>,
    pub(super) retry: Duration,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { last: None, retry: RETRY }
    }
}

/// What comes next.
pub(super) enum Next {
    Frame(Frame),
    /// Something that is no message, and why.
    Garbage(String),
    /// Nothing more: the answer is over, or it broke off, and why.
    End(Option<String>),
}

/// Reads the messages of an answer.
pub(super) struct Incoming<'c> {
    reply: Reply,
    /// Of a stream.
    parser: Option<Parser>,
    waiting: std::collections::VecDeque<Event>,
    cursor: &'c mut Cursor,
    limit: usize,
    is_over: bool,
}

impl<'c> Incoming<'c> {
    /// `limit`: the longest message, in bytes.
    pub(super) fn of(reply: Reply, limit: usize, cursor: &'c mut Cursor) -> Self {
        let parser = reply.is(EVENT_STREAM).then(|| Parser::new(limit));
        Self { reply, parser, waiting: std::collections::VecDeque::new(), cursor, limit, is_over: false }
    }

    pub(super) async fn next(&mut self) -> Next {
        if self.is_over {
            return Next::End(None);
        }
        if self.parser.is_none() {
            self.is_over = true;
            return self.whole().await;
        }
        loop {
            while let Some(event) = self.waiting.pop_front() {
                if let Some(next) = self.take(event) {
                    return next;
                }
            }
            let bytes = match self.reply.bytes().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return self.end(None),
                Err(why) => return self.end(Some(why)),
            };
            let Some(parser) = &mut self.parser else { return self.end(None) };
            match parser.feed(&bytes) {
                Ok(events) => self.waiting.extend(events),
                Err(_) => {
                    let why = format!("a message is longer than {} bytes", self.limit);
                    return self.end(Some(why));
                }
            }
        }
    }

    fn end(&mut self, why: Option<String>) -> Next {
        self.is_over = true;
        Next::End(why)
    }

    fn take(&mut self, event: Event) -> Option<Next> {
        if let Some(milliseconds) = event.retry {
            self.cursor.retry = Duration::from_millis(milliseconds).min(LONGEST_RETRY);
        }
        if event.id.is_some() {
            // An empty name takes the one before it away.
            self.cursor.last = event.id.filter(|id| !id.is_empty());
        }
        let is_message = event.kind.is_none_or(|kind| kind == "message" || kind.is_empty());
        if !is_message || event.data.is_empty() {
            return None;
        }
        Some(match http_words::read_message(&event.data) {
            Ok(frame) => Next::Frame(frame.into_event()),
            Err(why) => Next::Garbage(why.message),
        })
    }

    /// A body that is one message.
    async fn whole(&mut self) -> Next {
        match body(&mut self.reply, self.limit).await {
            Err(why) => Next::End(Some(why)),
            Ok(body) if body.iter().all(u8::is_ascii_whitespace) => Next::End(None),
            Ok(body) => match http_words::read_message(&body) {
                Ok(frame) => Next::Frame(frame),
                Err(why) => Next::Garbage(why.message),
            },
        }
    }
}

/// The whole body of an answer.
pub(super) async fn body(reply: &mut Reply, limit: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(bytes) = reply.bytes().await? {
        if body.len() + bytes.len() > limit {
            return Err(format!("its answer is longer than {limit} bytes"));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
