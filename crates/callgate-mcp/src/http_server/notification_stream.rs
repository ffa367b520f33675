//! Handles GET and DELETE: the stream of a session's messages that belong to no request, and the end of a session.

use std::task::{Context, Poll};

use axum::http::HeaderMap;
use axum::response::Response;
use tokio::sync::{OwnedMutexGuard, mpsc, watch};

use super::ServerState;
use super::client_sessions::{ClientError, ClientGuard};
use super::responses::rejection;
use super::sse_response::{MessageSource, stream_response};
use crate::http_headers::{EVENT_STREAM, SESSION};
use crate::jsonrpc::JsonRpcMessage;
use callgate_http::{Caller, accepts, empty, single_value};

/// The messages of a session that belong to no request, for one reader at a time.
struct GeneralMessages(OwnedMutexGuard<mpsc::Receiver<JsonRpcMessage>>);

impl MessageSource for GeneralMessages {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<JsonRpcMessage>> {
        self.0.poll_recv(context)
    }
}

impl ServerState {
    /// The client of the session that a request names.
    pub(super) fn session(&self, headers: &HeaderMap, caller: &Caller) -> Result<ClientGuard, Box<Response>> {
        match single_value(headers, SESSION) {
            Ok(Some(name)) => {
                self.clients.session(name, caller).map_err(|why| Box::new(client_error_response(&why)))
            }
            Ok(None) => Err(Box::new(rejection(
                400,
                "the header `mcp-session-id` is missing; begin a session with `initialize`",
            ))),
            Err(error) => Err(Box::new(rejection(400, &error.to_string()))),
        }
    }

    pub(super) fn open_stream(&self, headers: &HeaderMap, caller: &Caller) -> Response {
        if !accepts(headers, EVENT_STREAM) {
            return rejection(406, "`Accept` must contain `text/event-stream`");
        }
        let client = match self.session(headers, caller) {
            Ok(client) => client,
            Err(response) => return *response,
        };
        match client.general_messages() {
            Some(messages) => {
                let ends = either(client.closed(), self.closing.clone());
                let ends = either(ends, self.watch_revocation(caller));
                stream_response(GeneralMessages(messages), caller.remaining_validity(), ends)
            }
            None => rejection(409, "the stream of this session is already open"),
        }
    }

    pub(super) async fn end_session(&self, headers: &HeaderMap, caller: &Caller) -> Response {
        match single_value(headers, SESSION) {
            Ok(Some(name)) if self.clients.end_session(name, caller).await => empty(200),
            Ok(Some(_)) => client_error_response(&ClientError::UnknownSession),
            Ok(None) => rejection(400, "the header `mcp-session-id` is missing"),
            Err(error) => rejection(400, &error.to_string()),
        }
    }
}

/// Becomes true when either of them does.
pub(super) fn either(one: watch::Receiver<bool>, other: watch::Receiver<bool>) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            () = wait_until_true(one) => drop(sender.send(true)),
            () = wait_until_true(other) => drop(sender.send(true)),
            () = sender.closed() => {}
        }
    });
    receiver
}

/// Returns when a flag becomes true; never if its sender is gone.
async fn wait_until_true(mut flag: watch::Receiver<bool>) {
    if flag.wait_for(|is| *is).await.is_err() {
        std::future::pending().await
    }
}

/// The response if no client is available.
pub(super) fn client_error_response(why: &ClientError) -> Response {
    match why {
        ClientError::UnknownSession => rejection(404, "unknown session; begin one with `initialize`"),
        ClientError::TooManyClients => rejection(503, "too many active clients; try again later"),
        ClientError::ServerUnavailable(why) => rejection(502, why),
    }
}
