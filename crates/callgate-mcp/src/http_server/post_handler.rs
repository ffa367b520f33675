//! Handles POST: one message in, and its response as JSON or as a stream of events.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::ServerState;
use super::client_sessions::ClientGuard;
use super::headers;
use super::notification_stream::{client_error_response, either};
use super::request_ids::RequestIds;
use super::responses::{http_status, message_response, rejection};
use super::sse_response::{MessageSource, stream_response};
use crate::client_sender::ClientSender;
use crate::http_headers::{self, HANDSHAKE_VERSIONS, SESSION};
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::method;
use crate::tool_list;
use callgate::call::Task;
use callgate::json::json;
use callgate_http::{Caller, empty, has_json_body, single_value};

/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// A request that takes longer is answered by a stream, which sends keep-alives.
const STREAM_DELAY: Duration = Duration::from_secs(10);
/// The same for `initialize`, whose response decides whether there is a session.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

impl ServerState {
    pub(super) async fn handle_post(self: Arc<Self>, request: Request<Body>, caller: Caller) -> Response {
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        if !has_json_body(&headers) {
            return rejection(415, "the content type must be `application/json`");
        }
        if !headers::accepts_both(&headers) {
            return rejection(406, "`Accept` must contain both `application/json` and `text/event-stream`");
        }
        let body = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, self.max_message_size)).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => {
                let longest = self.max_message_size;
                return rejection(413, &format!("the body is incomplete, or longer than {longest} bytes"));
            }
            Err(_) => return rejection(408, "the body took too long to arrive"),
        };
        let message = match http_headers::read_message(&body) {
            Ok(message) => message.with_caller(caller.token()),
            Err(why) => return message_response(400, &why.to_response()),
        };
        let in_header = match single_value(&headers, http_headers::VERSION) {
            Ok(in_header) => in_header,
            Err(error) => return error_response(&message, code::HEADER_MISMATCH, &error.to_string()),
        };
        let in_body = http_headers::protocol_version(&message);
        let is_modern = in_header.is_some_and(http_headers::is_stateless_version)
            || in_body.is_some_and(http_headers::is_stateless_version);
        if is_modern {
            return self.handle_stateless(message, &headers, &caller).await;
        }
        let unknown =
            [in_body, in_header].into_iter().flatten().find(|version| !HANDSHAKE_VERSIONS.contains(version));
        match unknown {
            Some(version) => {
                message_response(400, &http_headers::unsupported_version_error(&message, version))
            }
            None => self.handle_in_session(message, &headers, &caller).await,
        }
    }

    /// Handles a stateless message, without a session.
    async fn handle_stateless(
        &self,
        message: JsonRpcMessage,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Response {
        let id = match message.kind().clone() {
            MessageKind::Request(id) => id,
            // Clients cancel their requests by closing the streams. An id could belong to a request of another client.
            MessageKind::Notification if message.method() == method::CANCELLED => return empty(202),
            MessageKind::Notification => {
                return match self.stateless_client(&message, headers, caller) {
                    Ok(client) => {
                        client.connection.handle_client_message(message, &ClientSender::new().0).await;
                        empty(202)
                    }
                    Err(response) => *response,
                };
            }
            MessageKind::Response(_) | MessageKind::UnidentifiedError => {
                return rejection(400, "this protocol version does not allow responses by POST");
            }
        };
        if let Some((code, why)) = headers::find_mismatch(headers, &message) {
            return error_response(&message, code, &why);
        }
        let client = match self.stateless_client(&message, headers, caller) {
            Ok(client) => client,
            Err(response) => return *response,
        };
        if let Some(repeated) = tool_list::header_arguments(&client.connection, &message).await
            && let Some(why) = headers::find_argument_mismatch(headers, &message, &repeated)
        {
            return error_response(&message, code::HEADER_MISMATCH, &why);
        }
        let message = self.with_task(message, headers, &client).with_trace(headers::trace(headers));
        let (ids, message) = RequestIds::rewrite(message, &id, client.next_request_number());
        self.respond(message, ActiveRequest { client, ids, is_stateless: true, is_answered: false }, caller)
            .await
    }

    /// Adds what the user asked for, as the header of the host tells it. The header must be sealed for the session in which the call runs,
    /// not for one that the request names; otherwise the task is unknown.
    fn with_task(
        &self,
        message: JsonRpcMessage,
        headers: &HeaderMap,
        client: &ClientGuard,
    ) -> JsonRpcMessage {
        let sealed = match single_value(headers, http_headers::TASK) {
            Ok(None) => return message,
            Ok(Some(sealed)) => sealed,
            Err(_) => return message.with_task(Task::unknown("the header of the task is not one value")),
        };
        let keys = self.gateway.engine.keys();
        let task = match client.task_session() {
            Some(session) => Task::open_sealed(sealed, Some(session), Timestamp::now(), keys),
            None => Task::unknown("a request without a session has no task"),
        };
        message.with_task(task)
    }

    fn stateless_client(
        &self,
        message: &JsonRpcMessage,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Result<ClientGuard, Box<Response>> {
        let name = self.conversation_name(message, headers)?;
        self.clients.shared_client(caller, name).map_err(|why| Box::new(client_error_response(&why)))
    }

    /// The name of the caller's conversation, if the request has one.
    fn conversation_name(
        &self,
        message: &JsonRpcMessage,
        headers: &HeaderMap,
    ) -> Result<Option<String>, Box<Response>> {
        let name = self.session_from.as_ref().map(|from| from.read(headers, message)).transpose();
        Ok(name
            .map_err(|error| Box::new(error_response(message, code::INVALID_PARAMS, &error.to_string())))?
            .flatten())
    }

    /// Handles a message of a session, or the `initialize` that begins one.
    async fn handle_in_session(
        &self,
        message: JsonRpcMessage,
        headers: &HeaderMap,
        caller: &Caller,
    ) -> Response {
        if message.method() == method::INITIALIZE && !headers.contains_key(SESSION) {
            return self.begin_session(message, headers, caller).await;
        }
        let client = match self.session(headers, caller) {
            Ok(client) => client,
            Err(response) => return *response,
        };
        match message.kind().clone() {
            MessageKind::Request(id) => {
                let ids = RequestIds::unchanged(&id);
                let message =
                    self.with_task(message, headers, &client).with_trace(headers::trace_in_session(headers));
                self.respond(
                    message,
                    ActiveRequest { client, ids, is_stateless: false, is_answered: false },
                    caller,
                )
                .await
            }
            _ => {
                client.connection.handle_client_message(message, &ClientSender::new().0).await;
                empty(202)
            }
        }
    }

    async fn begin_session(&self, message: JsonRpcMessage, headers: &HeaderMap, caller: &Caller) -> Response {
        let MessageKind::Request(id) = message.kind().clone() else {
            return rejection(400, "`initialize` must be a request with an `id`");
        };
        let conversation = match self.conversation_name(&message, headers) {
            Ok(name) => name,
            Err(response) => return *response,
        };
        let (name, client) = match self.clients.begin_session(caller, conversation) {
            Ok(started) => started,
            Err(why) => return client_error_response(&why),
        };
        let ids = RequestIds::unchanged(&id);
        let request = ActiveRequest { client, ids, is_stateless: false, is_answered: false };
        let started = self.start_request(message, request, HANDSHAKE_TIMEOUT).await;
        if let Some(refusal) = started.response().filter(|answer| answer.error_value().is_some()).cloned() {
            // A failed handshake leaves no session.
            drop(started);
            self.clients.end_session(&name, caller).await;
            return message_response(200, &refusal);
        }
        let mut response = self.finish_response(started, caller);
        if let Ok(value) = HeaderValue::try_from(name) {
            response.headers_mut().insert(SESSION, value);
        }
        response
    }

    /// Answers a request: by one message if nothing but the response arrives, else by a stream.
    async fn respond(&self, message: JsonRpcMessage, request: ActiveRequest, caller: &Caller) -> Response {
        let started = self.start_request(message, request, STREAM_DELAY).await;
        self.finish_response(started, caller)
    }

    /// Sends a request to the servers, and waits for the first message that belongs to it.
    async fn start_request(
        &self,
        message: JsonRpcMessage,
        request: ActiveRequest,
        patience: Duration,
    ) -> StartedRequest {
        let (sender, mut messages, given_up) = ClientSender::with_timeout();
        // A subscription is answered when it ends, if ever.
        let is_subscription = message.method() == method::LISTEN;
        let connection = Arc::clone(&request.client.connection);
        // In a task of its own, so that a client that disconnects can't interrupt it halfway.
        tokio::spawn(async move { connection.handle_client_message(message, &sender).await });
        let mut closed = request.client.closed();
        let first = tokio::select! {
            first = tokio::time::timeout(patience, messages.recv()) => first.ok().flatten(),
            _ = closed.wait_for(|closed| *closed) => None,
        };
        StartedRequest {
            answer: ResponseMessages { request, first, messages },
            is_subscription,
            closed,
            given_up,
        }
    }

    /// Responds by one message if the first message is the response and its server did not stream it, else by a stream.
    fn finish_response(&self, started: StartedRequest, caller: &Caller) -> Response {
        if let Some(answer) = started.response().filter(|answer| !answer.is_stream_event()).cloned() {
            let mut request = started.answer.request;
            request.is_answered = true;
            let answer = request.ids.restore(answer);
            return message_response(if request.is_stateless { http_status(&answer) } else { 200 }, &answer);
        }
        let StartedRequest { answer, is_subscription, closed, given_up } = started;
        // The stream ends when the client's session is closed.
        let ends = if is_subscription { either(closed, self.closing.clone()) } else { closed };
        let ends = either(either(ends, given_up), self.watch_revocation(caller));
        let lasts = is_subscription.then(|| caller.remaining_validity()).flatten();
        stream_response(answer, lasts, ends)
    }
}

/// A request sent to the servers, with its first message.
struct StartedRequest {
    answer: ResponseMessages,
    /// A subscription: answered when it ends, if ever.
    is_subscription: bool,
    closed: watch::Receiver<bool>,
    given_up: watch::Receiver<bool>,
}

impl StartedRequest {
    /// The response, if it is the first message.
    fn response(&self) -> Option<&JsonRpcMessage> {
        self.answer.first.as_ref().filter(|message| self.answer.request.ids.is_response(message))
    }
}

/// A request in progress. Dropping it unanswered cancels it if it is stateless.
struct ActiveRequest {
    client: ClientGuard,
    ids: RequestIds,
    /// It is stateless, so closing its stream cancels it.
    is_stateless: bool,
    is_answered: bool,
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if !self.is_stateless || self.is_answered {
            return;
        }
        let (connection, id) = (Arc::clone(&self.client.connection), self.ids.upstream_id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let cancelled = json!({ "requestId": id.to_json(), "reason": "the client disconnected" });
                let message = JsonRpcMessage::notification(method::CANCELLED, cancelled);
                connection.handle_client_message(message, &ClientSender::new().0).await;
            });
        }
    }
}

/// The messages that belong to a request, up to its response.
struct ResponseMessages {
    request: ActiveRequest,
    first: Option<JsonRpcMessage>,
    messages: mpsc::Receiver<JsonRpcMessage>,
}

impl MessageSource for ResponseMessages {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<JsonRpcMessage>> {
        if self.request.is_answered {
            return Poll::Ready(None);
        }
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => ready!(self.messages.poll_recv(context)),
        };
        let Some(message) = next else { return Poll::Ready(None) };
        self.request.is_answered = self.request.ids.is_response(&message);
        Poll::Ready(Some(self.request.ids.restore(message)))
    }
}

/// The error response to an invalid message.
fn error_response(message: &JsonRpcMessage, code: i64, why: &str) -> Response {
    let id = match message.kind() {
        MessageKind::Request(id) => Some(id),
        _ => None::<&RequestId>,
    };
    message_response(400, &JsonRpcMessage::error_response(id, code, why, None))
}
