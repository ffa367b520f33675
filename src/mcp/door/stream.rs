//! An answer that is a stream of messages.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

use super::reply;
use crate::mcp::frame::Frame;
use crate::mcp::http_words::EVENT_STREAM;

/// A stream in which nothing is said shows so often that it is still there.
const ALIVE: Duration = Duration::from_secs(15);

/// Where the messages of a stream come from.
pub(super) trait Messages: Send + Unpin + 'static {
    /// The next message; nothing at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>>;
}

/// A stream of messages as the body of an answer.
struct Events<M> {
    messages: M,
    alive: Interval,
    /// When whoever listens may not listen any longer.
    until: Option<Pin<Box<Sleep>>>,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// An answer that goes on while there are messages. `lasts`: how long it may go on at most. `closing`: ends it when it says so.
pub(super) fn stream(
    messages: impl Messages,
    lasts: Option<Duration>,
    mut closing: watch::Receiver<bool>,
) -> Response {
    let mut alive = tokio::time::interval_at(Instant::now() + ALIVE, ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let closing = Box::pin(async move {
        let _ = closing.wait_for(|closing| *closing).await;
    });
    let until = lasts.map(|lasts| Box::pin(tokio::time::sleep(lasts)));
    let mut response = reply::empty(200);
    *response.body_mut() = Body::new(Events { messages, alive, until, closing });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

impl<M: Messages> HttpBody for Events<M> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let data = |text: String| Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from(text)))));
        let this = &mut *self;
        let is_over = this.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready());
        if is_over || this.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match this.messages.poll_next(context) {
            Poll::Ready(Some(frame)) => {
                this.alive.reset();
                return data(format!("event: message\ndata: {frame}\n\n"));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        match this.alive.poll_tick(context) {
            Poll::Ready(_) => data(":\n\n".to_owned()),
            Poll::Pending => Poll::Pending,
        }
    }
}
