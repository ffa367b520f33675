//! The client side of streamable HTTP: each message to the server is a POST, messages that belong to a request arrive in its response,
//! and all others, after a handshake, in a stream of their own.

mod request;
mod response_reader;
mod notification_stream;
mod server_session;
mod sse;
mod http_client;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{RwLock, oneshot, watch};

use self::http_client::{HttpClient, HttpMethod};
use self::server_session::ServerSession;
use crate::json::json;
use crate::mcp::http_headers::{EVENT_STREAM, JSON};
use crate::mcp::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::mcp::method;
use crate::mcp::upstream_server::{UpstreamError, UpstreamEvent, UpstreamEventSender};

pub use http_client::HttpSpec;

/// Timeout for the notification that completes the handshake, before the next request is sent, and for the end of the session.
const GRACE: Duration = Duration::from_secs(5);

/// A connection to an HTTP server.
pub(super) struct HttpUpstream {
    talk: Arc<SharedConnection>,
    /// Becomes true at close; ends all tasks of the connection.
    closing: watch::Sender<bool>,
}

/// The shared state of a connection's tasks.
struct SharedConnection {
    wire: HttpClient,
    peer: ServerSession,
    events: UpstreamEventSender,
    /// The maximum size of a message, in bytes.
    limit: usize,
    closing: watch::Receiver<bool>,
    /// Pending requests.
    under_way: Mutex<HashMap<RequestId, UpstreamRequest>>,
    /// Held for writing while the notification that completes the handshake is sent: requests wait for it.
    order: Arc<RwLock<()>>,
    renewing: tokio::sync::Mutex<()>,
    /// Held by the task that reads the session's stream.
    listening: tokio::sync::Mutex<()>,
}

struct UpstreamRequest {
    /// It is stateless: closing its stream cancels it.
    is_modern: bool,
    stop: oneshot::Sender<()>,
}

impl HttpUpstream {
    /// Prepares the connection; nothing is sent before the client's first message.
    pub(super) fn open(
        spec: &HttpSpec,
        events: UpstreamEventSender,
        limit: usize,
    ) -> Result<Self, UpstreamError> {
        let (closing, closed) = watch::channel(false);
        let talk = SharedConnection {
            wire: HttpClient::new(spec)?,
            peer: ServerSession::default(),
            events,
            limit,
            closing: closed,
            under_way: Mutex::default(),
            order: Arc::default(),
            renewing: tokio::sync::Mutex::default(),
            listening: tokio::sync::Mutex::default(),
        };
        Ok(Self { talk: Arc::new(talk), closing })
    }

    /// Sends a message. The failure of a request is reported as its response; it does not end the connection.
    pub(super) async fn send(&self, frame: JsonRpcMessage) -> Result<(), UpstreamError> {
        let talk = &self.talk;
        match frame.kind().clone() {
            MessageKind::Request(id) => talk.send_request(frame, id),
            MessageKind::Notification if frame.method() == method::CANCELLED && talk.stop(&frame) => {}
            MessageKind::Notification if frame.method() == method::INITIALIZED => {
                let talk = Arc::clone(talk);
                let first = Arc::clone(&talk.order).write_owned().await;
                tokio::spawn(async move {
                    let told = tokio::time::timeout(GRACE, talk.tell(&frame)).await;
                    drop(first);
                    if told == Ok(true) {
                        talk.read_notifications().await;
                    }
                });
            }
            _ => {
                let talk = Arc::clone(talk);
                tokio::spawn(async move { talk.tell(&frame).await });
            }
        }
        Ok(())
    }

    /// Ends pending requests and the session; the receiver becomes true when that is done.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        let (tell_ended, ended) = watch::channel(false);
        tokio::spawn(async move {
            let _ = self.closing.send(true);
            let talk = self.talk;
            if talk.peer.session().is_some() {
                let headers = talk.peer.session_headers();
                let _ = tokio::time::timeout(GRACE, talk.wire.send(HttpMethod::Delete, &headers, None)).await;
            }
            let _ = tell_ended.send(true);
        });
        ended
    }
}

impl SharedConnection {
    fn under_way(&self) -> MutexGuard<'_, HashMap<RequestId, UpstreamRequest>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the connection is closed.
    async fn closed(&self) {
        let mut closing = self.closing.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    async fn say(&self, frame: JsonRpcMessage, about: Option<&RequestId>) {
        let _ = self.events.send(UpstreamEvent::Message { message: frame, about: about.cloned() }).await;
    }

    async fn trouble(&self, why: String) {
        let _ = self.events.send(UpstreamEvent::Problem(why)).await;
    }

    /// Answers a request with an error on behalf of the server.
    async fn fail(&self, id: &RequestId, why: &str, status: Option<u16>) {
        let data = status.map(|status| json!({ "httpStatus": status }));
        self.say(JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, why, data), Some(id)).await;
    }

    /// Sends a message that needs no response. Returns whether the server accepted it.
    async fn tell(&self, frame: &JsonRpcMessage) -> bool {
        match self.post(frame).await {
            Ok(reply) if reply.is_success() => true,
            Ok(reply) => {
                let what = if frame.method().is_empty() { "a response" } else { frame.method() };
                self.trouble(format!("it rejects {what}: {}", reply.status_text())).await;
                false
            }
            Err(UpstreamError(why)) => {
                self.trouble(why).await;
                false
            }
        }
    }

    async fn post(&self, frame: &JsonRpcMessage) -> Result<http_client::HttpResponse, UpstreamError> {
        let own = self.peer.headers(frame);
        let repeated = self.peer.argument_headers(frame);
        let mut headers =
            vec![("content-type", JSON.to_owned()), ("accept", format!("{JSON}, {EVENT_STREAM}"))];
        headers.extend(own);
        headers.extend(repeated.iter().map(|(name, value)| (name.as_str(), value.clone())));
        self.wire.send(HttpMethod::Post, &headers, Some(frame.to_string())).await
    }

    /// Cancels the request that a notification names by closing its stream. Returns `false` if the notification must be sent instead.
    fn stop(&self, cancellation: &JsonRpcMessage) -> bool {
        let Some(id) = cancellation.param("requestId").and_then(RequestId::from_value) else { return false };
        let mut under_way = self.under_way();
        if under_way.get(&id).is_none_or(|request| !request.is_modern) {
            return false;
        }
        if let Some(request) = under_way.remove(&id) {
            let _ = request.stop.send(());
        }
        true
    }
}
