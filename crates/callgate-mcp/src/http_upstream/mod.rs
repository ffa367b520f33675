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
use crate::http_headers::{EVENT_STREAM, JSON};
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::method;
use crate::upstream_auth::Authorizer;
use crate::upstream_event::{UpstreamError, UpstreamEvent, UpstreamEventSender};
use callgate::json::json;

pub use http_client::HttpSpec;

/// Timeout for the notification that completes the handshake, before the next request is sent, and for the end of the session.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to an HTTP server.
pub(super) struct HttpUpstream {
    shared: Arc<SharedConnection>,
    /// Becomes true at close; ends all tasks of the connection.
    closing: watch::Sender<bool>,
}

/// The shared state of a connection's tasks.
struct SharedConnection {
    http: HttpClient,
    authorizer: Authorizer,
    session: ServerSession,
    events: UpstreamEventSender,
    /// The maximum size of a message, in bytes.
    limit: usize,
    closing: watch::Receiver<bool>,
    /// Pending requests.
    pending_requests: Mutex<HashMap<RequestId, UpstreamRequest>>,
    /// Held for writing while the notification that completes the handshake is sent: requests wait for it.
    handshake_order: Arc<RwLock<()>>,
    renewing: tokio::sync::Mutex<()>,
    /// Held by the task that reads the session's stream.
    listening: tokio::sync::Mutex<()>,
}

struct UpstreamRequest {
    /// It is stateless: closing its stream cancels it.
    is_stateless: bool,
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
        let shared = SharedConnection {
            http: HttpClient::new(spec)?,
            authorizer: Authorizer::new(spec.auth.as_ref())?,
            session: ServerSession::default(),
            events,
            limit,
            closing: closed,
            pending_requests: Mutex::default(),
            handshake_order: Arc::default(),
            renewing: tokio::sync::Mutex::default(),
            listening: tokio::sync::Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared), closing })
    }

    /// Sends a message. The failure of a request is reported as its response; it does not end the connection.
    pub(super) async fn send(&self, message: JsonRpcMessage) -> Result<(), UpstreamError> {
        let shared = &self.shared;
        match message.kind().clone() {
            MessageKind::Request(id) => shared.send_request(message, id),
            MessageKind::Notification
                if message.method() == method::CANCELLED && shared.cancel_request(&message) => {}
            MessageKind::Notification if message.method() == method::INITIALIZED => {
                let shared = Arc::clone(shared);
                let guard = Arc::clone(&shared.handshake_order).write_owned().await;
                tokio::spawn(async move {
                    let is_accepted =
                        tokio::time::timeout(NOTIFICATION_TIMEOUT, shared.post_notification(&message)).await;
                    drop(guard);
                    if is_accepted == Ok(true) {
                        shared.read_notifications().await;
                    }
                });
            }
            _ => {
                let shared = Arc::clone(shared);
                tokio::spawn(async move { shared.post_notification(&message).await });
            }
        }
        Ok(())
    }

    /// Ends pending requests and the session; the receiver becomes true when that is done.
    pub(super) fn close(self) -> watch::Receiver<bool> {
        let (ended_sender, ended) = watch::channel(false);
        tokio::spawn(async move {
            let _ = self.closing.send(true);
            let shared = self.shared;
            if shared.session.session().is_some() {
                let headers = shared.session.session_headers();
                let end = shared.send_in_session(HttpMethod::Delete, &headers);
                let _ = tokio::time::timeout(NOTIFICATION_TIMEOUT, end).await;
            }
            let _ = ended_sender.send(true);
        });
        ended
    }
}

impl SharedConnection {
    fn pending_requests(&self) -> MutexGuard<'_, HashMap<RequestId, UpstreamRequest>> {
        self.pending_requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the connection is closed.
    async fn closed(&self) {
        let mut closing = self.closing.clone();
        let _ = closing.wait_for(|closing| *closing).await;
    }

    async fn emit(&self, message: JsonRpcMessage, about: Option<&RequestId>) {
        let _ = self.events.send(UpstreamEvent::Message { message, about: about.cloned() }).await;
    }

    async fn emit_problem(&self, why: String) {
        let _ = self.events.send(UpstreamEvent::Problem(why)).await;
    }

    /// Answers a request with an error on behalf of the server.
    async fn emit_error(&self, id: &RequestId, why: &str, status: Option<u16>) {
        let data = status.map(|status| json!({ "httpStatus": status }));
        let response = JsonRpcMessage::error_response(Some(id), code::INTERNAL_ERROR, why, data);
        match status {
            // It answers, if only by refusing.
            Some(..500) => self.emit(response, Some(id)).await,
            Some(500..) | None => {
                let _ = self.events.send(UpstreamEvent::Failed { response, about: id.clone() }).await;
            }
        }
    }

    /// Sends a message that needs no response. Returns whether the server accepted it.
    async fn post_notification(&self, message: &JsonRpcMessage) -> bool {
        match self.post(message).await {
            Ok(response) if response.is_success() => true,
            Ok(response) => {
                let subject = if message.method().is_empty() { "a response" } else { message.method() };
                self.emit_problem(format!("it rejects {subject}: {}", response.status_text())).await;
                false
            }
            Err(UpstreamError(why)) => {
                self.emit_problem(why).await;
                false
            }
        }
    }

    async fn post(&self, message: &JsonRpcMessage) -> Result<http_client::HttpResponse, UpstreamError> {
        let own = self.session.headers(message);
        let repeated = self.session.argument_headers(message);
        let mut headers =
            vec![("content-type", JSON.to_owned()), ("accept", format!("{JSON}, {EVENT_STREAM}"))];
        headers.extend(own);
        headers.extend(repeated.iter().map(|(name, value)| (name.as_str(), value.clone())));
        // A cancellation by the gateway has no caller of its own: it is sent for the one that began the session.
        let initialize = self.session.initialize();
        let caller = message.caller().or_else(|| initialize.as_ref()?.caller());
        let token = self.authorizer.token(caller).await?;
        let body = Some(message.to_string());
        let response = self.http.send(HttpMethod::Post, &headers, (token.clone(), body)).await?;
        if let (401, Some(rejected)) = (response.status(), token) {
            self.authorizer.forget(&rejected).await;
        }
        Ok(response)
    }

    /// Sends a request without a message, for the caller that began the session.
    async fn send_in_session(
        &self,
        verb: HttpMethod,
        headers: &[(&str, String)],
    ) -> Result<http_client::HttpResponse, UpstreamError> {
        let initialize = self.session.initialize();
        let token = self.authorizer.token(initialize.as_ref().and_then(JsonRpcMessage::caller)).await?;
        self.http.send(verb, headers, (token, None)).await
    }

    /// Cancels the request that a notification names by closing its stream. Returns `false` if the notification must be sent instead.
    fn cancel_request(&self, cancellation: &JsonRpcMessage) -> bool {
        let Some(id) = cancellation.param("requestId").and_then(RequestId::from_value) else { return false };
        let mut pending_requests = self.pending_requests();
        if pending_requests.get(&id).is_none_or(|request| !request.is_stateless) {
            return false;
        }
        if let Some(request) = pending_requests.remove(&id) {
            let _ = request.stop.send(());
        }
        true
    }
}
