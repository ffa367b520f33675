//! One request to an HTTP server, from its POST to its response, including resumption of streams and renewal of sessions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::http_client::{HttpMethod, HttpResponse};
use super::response_reader::{self, ResponseItem, ResponseReader, StreamCursor};
use super::server_session;
use super::{SharedConnection, UpstreamRequest};
use crate::http_headers::{EVENT_STREAM, LAST_EVENT, read_message};
use crate::jsonrpc::{JsonRpcMessage, MessageKind, RequestId, code};
use crate::method;
use crate::upstream_event::{UpstreamError, UpstreamEvent};
use callgate::json::{Value, json};

/// The maximum number of reconnections to a broken stream without new events.
const MAX_RESUMPTIONS: u32 = 5;
/// How long to wait for the end of a stream after the response, so that its connection can be reused.
const STREAM_END_TIMEOUT: Duration = Duration::from_millis(500);

impl SharedConnection {
    /// Sends a request; its response and messages go to the events.
    pub(super) fn send_request(self: &Arc<Self>, message: JsonRpcMessage, id: RequestId) {
        let (stop, stopped) = oneshot::channel();
        let is_stateless = server_session::is_stateless(&message);
        self.pending_requests().insert(id.clone(), UpstreamRequest { is_stateless, stop });
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            // Waits for the notification that completes the handshake.
            drop(shared.handshake_order.read().await);
            tokio::select! {
                () = shared.exchange(&message, &id) => {}
                // Dropping the stream closes it.
                Ok(()) = stopped => {}
                () = shared.closed() => {}
            }
            shared.pending_requests().remove(&id);
        });
    }

    async fn exchange(self: &Arc<Self>, message: &JsonRpcMessage, id: &RequestId) {
        let response = match self.post_with_renewal(message).await {
            Ok(response) => response,
            Err(UpstreamError(why)) => return self.emit_error(id, &why, None).await,
        };
        self.session.store_session(message, &response);
        if !response.is_success() {
            return self.handle_http_error(message, id, response).await;
        }
        let mut cursor = StreamCursor::default();
        if let Some(why) = self.read_response(message, id, response, &mut cursor).await {
            self.emit_error(id, &why, None).await;
        }
    }

    /// Sends a request; if the server has lost the session, sends it again in a new one.
    async fn post_with_renewal(
        self: &Arc<Self>,
        message: &JsonRpcMessage,
    ) -> Result<HttpResponse, UpstreamError> {
        let session = self.session.session();
        let response = self.post(message).await?;
        match session {
            Some(session)
                if response.status() == 404
                    && message.method() != method::INITIALIZE
                    && !server_session::is_stateless(message) =>
            {
                self.renew_session(&session).await?;
                self.post(message).await
            }
            _ => Ok(response),
        }
    }

    /// Handles an HTTP error: forwards its body if that is a JSON-RPC error, else creates one.
    async fn handle_http_error(&self, request: &JsonRpcMessage, id: &RequestId, mut response: HttpResponse) {
        let (status, text) = (response.status(), response.status_text());
        let body = response_reader::read_body(&mut response, self.limit).await.unwrap_or_default();
        let answer = read_message(&body).ok();
        match answer.as_ref().and_then(JsonRpcMessage::error_value) {
            Some(error) if is_header_mismatch(error) && request.method() == method::TOOLS_CALL => {
                self.retry_with_headers(request, id, error).await;
            }
            Some(error) => self.emit(JsonRpcMessage::error_response_from(id, error.clone()), Some(id)).await,
            None => {
                let mut why = format!("it responds with {text}");
                if let (300..=399, Some(location)) = (status, response.header("location")) {
                    why = format!(
                        "{why}: a redirect to `{location}`, which is not followed; configure that URL instead"
                    );
                }
                self.emit_error(id, &why, Some(status)).await;
            }
        }
    }

    /// Lists the tools and repeats a call once: the set of arguments that the tool requires in headers may have changed.
    async fn retry_with_headers(&self, request: &JsonRpcMessage, id: &RequestId, error: &Value) {
        let list = JsonRpcMessage::request(
            id,
            method::TOOLS_LIST,
            json!({ "_meta": request.param("_meta").cloned().unwrap_or_default() }),
        )
        .with_caller(request.caller());
        let mut cursor = StreamCursor::default();
        if let Ok(response) = self.post(&list).await {
            let mut messages = ResponseReader::new(response, self.limit, &mut cursor);
            while let ResponseItem::Message(message) = messages.next().await {
                self.session.store_result(&list, &message);
            }
        }
        match self.post(request).await {
            Ok(response) if response.is_success() => {
                if let Some(why) =
                    self.read_response(request, id, response, &mut StreamCursor::default()).await
                {
                    self.emit_error(id, &why, None).await;
                }
            }
            _ => self.emit(JsonRpcMessage::error_response_from(id, error.clone()), Some(id)).await,
        }
    }

    /// Forwards the response to a request and the messages that belong to it. Returns the reason if there was no response.
    async fn read_response(
        &self,
        request: &JsonRpcMessage,
        id: &RequestId,
        response: HttpResponse,
        cursor: &mut StreamCursor,
    ) -> Option<String> {
        let mut response = response;
        let mut failures = 0;
        loop {
            let before = cursor.last.clone();
            let why = match self.forward_messages(request, id, response, cursor).await {
                Ok(()) => return None,
                Err(UpstreamError(why)) => why,
            };
            if server_session::is_stateless(request) || cursor.last.is_none() {
                return Some(why);
            }
            failures = if cursor.last == before { failures + 1 } else { 0 };
            response = loop {
                if failures >= MAX_RESUMPTIONS {
                    return Some(why);
                }
                tokio::time::sleep(cursor.retry).await;
                match self.open_stream(cursor).await {
                    Ok(response) if response.is_success() && response.has_content_type(EVENT_STREAM) => {
                        break response;
                    }
                    Ok(response) if response.status() < 500 => return Some(why),
                    _ => failures += 1,
                }
            };
        }
    }

    /// Forwards the messages of one HTTP response.
    ///
    /// # Errors
    /// It ended without the response to the request.
    async fn forward_messages(
        &self,
        request: &JsonRpcMessage,
        id: &RequestId,
        response: HttpResponse,
        cursor: &mut StreamCursor,
    ) -> Result<(), UpstreamError> {
        let is_stream = response.has_content_type(EVENT_STREAM);
        let mut messages = ResponseReader::new(response, self.limit, cursor);
        loop {
            match messages.next().await {
                ResponseItem::Message(message) if *message.kind() == MessageKind::Response(id.clone()) => {
                    self.session.store_result(request, &message);
                    self.emit(message, Some(id)).await;
                    let tail = async { while !matches!(messages.next().await, ResponseItem::End(_)) {} };
                    let _ = tokio::time::timeout(STREAM_END_TIMEOUT, tail).await;
                    return Ok(());
                }
                ResponseItem::Message(message) if is_stream => self.emit(message, Some(id)).await,
                ResponseItem::Message(message) => {
                    let error = message.error_value().cloned();
                    let Some(error) = error else {
                        return Err(UpstreamError("it responds to another request".to_owned()));
                    };
                    self.emit(JsonRpcMessage::error_response_from(id, error), Some(id)).await;
                    return Ok(());
                }
                ResponseItem::Malformed(why) if is_stream => {
                    let _ = self.events.send(UpstreamEvent::Malformed { why, answers: Vec::new() }).await;
                }
                ResponseItem::Malformed(why) => {
                    return Err(UpstreamError(format!("its response is malformed: {why}")));
                }
                ResponseItem::End(Some(why)) => return Err(why),
                ResponseItem::End(None) => {
                    let why = "its HTTP response ended without a response to the request";
                    return Err(UpstreamError(why.to_owned()));
                }
            }
        }
    }

    /// Opens the stream of a session, or resumes it at the cursor.
    pub(super) async fn open_stream(&self, cursor: &StreamCursor) -> Result<HttpResponse, UpstreamError> {
        let mut headers = vec![("accept", EVENT_STREAM.to_owned())];
        headers.extend(self.session.session_headers());
        headers.extend(cursor.last.iter().map(|last| (LAST_EVENT, last.clone())));
        self.send_in_session(HttpMethod::Get, &headers).await
    }

    /// Repeats the client's handshake after the server has lost the session `old`.
    async fn renew_session(self: &Arc<Self>, old: &str) -> Result<(), UpstreamError> {
        let _renewing = self.renewing.lock().await;
        if self.session.session().is_some_and(|session| session != old) {
            return Ok(());
        }
        let lost = || UpstreamError("it has lost the session".to_owned());
        let initialize = self.session.initialize().ok_or_else(lost)?;
        self.session.forget_session();
        let response = self.post(&initialize).await?;
        if !response.is_success() {
            let status = response.status_text();
            return Err(UpstreamError(format!("{}, and responds with {status} to a new handshake", lost())));
        }
        self.session.store_session(&initialize, &response);
        let mut cursor = StreamCursor::default();
        let mut messages = ResponseReader::new(response, self.limit, &mut cursor);
        loop {
            match messages.next().await {
                ResponseItem::Message(message) if message.result_value().is_some() => {
                    self.session.store_result(&initialize, &message);
                    break;
                }
                ResponseItem::Message(message) if message.error_value().is_some() => return Err(lost()),
                ResponseItem::End(_) => return Err(lost()),
                _ => {}
            }
        }
        drop(messages);
        let initialized = JsonRpcMessage::notification(method::INITIALIZED, json!({}));
        if self.post_notification(&initialized.with_caller(initialize.caller())).await {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.read_notifications().await });
        }
        self.emit_problem("it had lost the session; a new one was started".to_owned()).await;
        // A restarted server may have other tools.
        self.emit(JsonRpcMessage::notification(method::TOOLS_CHANGED, json!({})), None).await;
        Ok(())
    }
}

/// Whether an error reports that headers and body don't match.
fn is_header_mismatch(error: &Value) -> bool {
    error.get("code").and_then(Value::as_i64) == Some(code::HEADER_MISMATCH)
}
