//! Events as server-sent events (SSE): what happens in the tenant of the caller, from now on.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use callgate_http::{Caller, with_body};
use http_body::Frame;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};

use crate::activity::Activity;
use crate::api::sees_tenant;

/// The interval of comments that keep a connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that wait for a slow client.
const MAX_PENDING: usize = 16;

/// The body of a stream.
struct EventBody(mpsc::Receiver<Bytes>);

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The stream of a caller's events, until `ended` becomes true: the caller's credential is revoked, or the server shuts down.
pub(crate) fn event_stream(
    activity: &Arc<Activity>,
    caller: Caller,
    mut revoked: watch::Receiver<bool>,
    mut closing: watch::Receiver<bool>,
) -> Response {
    let (sender, receiver) = mpsc::channel(MAX_PENDING);
    let mut events = activity.subscribe();
    let expiry = caller.remaining_validity();
    tokio::spawn(async move {
        let expired = async {
            match expiry {
                Some(validity) => tokio::time::sleep(validity).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(expired);
        let mut pending: VecDeque<String> = VecDeque::from([": connected\n\n".to_owned()]);
        loop {
            while let Some(text) = pending.pop_front() {
                if sender.send(Bytes::from(text)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                event = events.recv() => match event {
                    Ok(entry) if sees_tenant(&caller, entry.tenant.as_ref()) => {
                        pending.push_back(format!("id: {}\nevent: {}\ndata: {}\n\n", entry.number, entry.event, entry.document));
                    }
                    Ok(_) => {}
                    // The client reads its lists again.
                    Err(RecvError::Lagged(count)) => {
                        pending.push_back(format!("event: lagged\ndata: {{\"missed\":{count}}}\n\n"));
                    }
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep(KEEP_ALIVE) => pending.push_back(": keep-alive\n\n".to_owned()),
                () = wait_until_true(&mut revoked) => return,
                () = wait_until_true(&mut closing) => return,
                () = sender.closed() => return,
                () = &mut expired => return,
            }
        }
    });
    with_body(200, "text/event-stream", Body::new(EventBody(receiver)))
}

/// Resolves when the value becomes true; never if it can't any more.
async fn wait_until_true(value: &mut watch::Receiver<bool>) {
    if value.wait_for(|value| *value).await.is_err() {
        std::future::pending::<()>().await;
    }
}
