//! A response as a stream of server-sent events (SSE).

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

use crate::http_headers::EVENT_STREAM;
use crate::jsonrpc::JsonRpcMessage;

/// The interval of keep-alive comments in an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A source of messages for a stream.
pub(super) trait MessageSource: Send + Unpin + 'static {
    /// Polls the next message; `None` at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<JsonRpcMessage>>;
}

/// The body of a streamed response.
struct SseBody<M> {
    messages: M,
    keep_alive: Interval,
    /// When the caller's credential expires.
    expiry: Option<Pin<Box<Sleep>>>,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Creates a streamed response. `lasts`: its maximum duration. `closing`: ends it when it becomes true.
pub(super) fn stream_response(
    messages: impl MessageSource,
    lasts: Option<Duration>,
    mut closing: watch::Receiver<bool>,
) -> Response {
    let mut keep_alive = tokio::time::interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL);
    keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let closing = Box::pin(async move {
        let _ = closing.wait_for(|closing| *closing).await;
    });
    let expiry = lasts.map(|lasts| Box::pin(tokio::time::sleep(lasts)));
    let mut response = callgate_http::empty(200);
    *response.body_mut() = Body::new(SseBody { messages, keep_alive, expiry, closing });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

impl<M: MessageSource> HttpBody for SseBody<M> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let data = |text: String| Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from(text)))));
        let this = &mut *self;
        let is_over = this.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(context).is_ready());
        if is_over || this.closing.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        match this.messages.poll_next(context) {
            Poll::Ready(Some(message)) => {
                this.keep_alive.reset();
                return data(format!("event: message\ndata: {message}\n\n"));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => {}
        }
        match this.keep_alive.poll_tick(context) {
            Poll::Ready(_) => data(":\n\n".to_owned()),
            Poll::Pending => Poll::Pending,
        }
    }
}
