//! Executes one call on its server, and converts the outcome to the response for the client.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::arguments;
use crate::binary_content::DetachedBinary;
use crate::connection::{ClientConnection, LATE_RESPONSE_WINDOW, Upstream};
use crate::jsonrpc::{JsonRpcMessage, RequestId};
use crate::upstream_event::UpstreamError;
use crate::{approval_channels, call_result};
use callgate::call::{Outcome, OutcomeKind, ToolCall};
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;

/// Executes one call on its server.
pub(super) struct UpstreamExecutor<'c> {
    pub(super) connection: &'c ClientConnection,
    upstream: &'c Upstream,
    pub(super) request: CallRequest<'c>,
    cancelled: watch::Receiver<bool>,
    response: Mutex<UpstreamResponse>,
}

/// A call as the client sent it.
pub(super) struct CallRequest<'c> {
    pub(super) message: &'c JsonRpcMessage,
    pub(super) id: &'c RequestId,
    /// The tool's own name, without the server's prefix.
    pub(super) tool: &'c str,
}

/// The parts of the server's response that policies don't see.
#[derive(Default)]
struct UpstreamResponse {
    /// The last failure: the message that policies saw, and the original response.
    failure: Option<(String, ToolFailure)>,
    binary: DetachedBinary,
    /// The server's last response, for its other members and their order.
    message: Option<JsonRpcMessage>,
    /// Its result has a form that the protocol does not define; it is forwarded unchanged.
    has_undefined_form: bool,
    /// The client cancelled it, and the server did not answer.
    is_cancelled: bool,
}

/// The ways in which a server reports the failure of a tool.
#[derive(Clone)]
enum ToolFailure {
    /// A result with `isError`.
    Result(Value),
    /// A JSON-RPC error.
    Error(Value),
}

impl ToolExecutor for UpstreamExecutor<'_> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let mut cancelled = self.cancelled.clone();
        if *cancelled.borrow() {
            self.response().is_cancelled = true;
            return Err(ToolError::new("the client cancelled the call").with_kind("cancelled"));
        }
        let response =
            self.upstream.start_request_for_client(self.upstream_request(call), self.request.id).await;
        let response = response.map_err(|UpstreamError(why)| {
            self.response().is_cancelled = *self.cancelled.borrow();
            ToolError::new(why).with_kind("unavailable")
        })?;
        let end_of_late_responses = async {
            if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LATE_RESPONSE_WINDOW).await;
        };
        let mut message = tokio::select! {
            response = response => match response {
                Ok(message) => message,
                Err(_) => {
                    // A cancelled call needs no response about the lost server.
                    self.response().is_cancelled = *self.cancelled.borrow();
                    let why = "the connection to the server was lost; the tool may have taken effect";
                    return Err(ToolError::new(why).with_kind("unavailable"));
                }
            },
            () = end_of_late_responses => {
                self.response().is_cancelled = true;
                return Err(ToolError::new("the client cancelled the call").with_kind("cancelled"));
            }
        };
        let error = message.take_payload("error");
        let mut result = message.take_payload("result").unwrap_or_default();
        self.response().message = Some(message);
        if let Some(error) = error {
            let message =
                error.get("message").and_then(Value::as_str).unwrap_or("the tool failed").to_owned();
            let kind = error.get("code").map(|code| format!("rpc{code}"));
            self.response().failure = Some((message.clone(), ToolFailure::Error(error)));
            return Err(ToolError { message, kind });
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            let message = call_result::text_content(&result);
            self.response().failure = Some((message.clone(), ToolFailure::Result(result)));
            return Err(ToolError::new(message).with_kind("tool_error"));
        }
        if result.get("inputRequests").is_some_and(approval_channels::imitates_callgate) {
            // Only the gateway may ask in its own name.
            self.upstream.log("it imitates an approval request of Callgate; the request is not forwarded");
            let why = "the server imitates an approval request of Callgate";
            return Err(ToolError::new(why).with_kind("imitation"));
        }
        self.response().has_undefined_form = !call_result::is_result(&result);
        let interim = call_result::is_interim(&result);
        // The binary content is put back into the response to this call only.
        let single_use = self.response().binary.detach_from(&mut result);
        Ok(ToolResponse { interim, single_use, ..result.into() })
    }
}

impl<'c> UpstreamExecutor<'c> {
    /// `cancelled`: becomes true when the client cancels the call.
    pub(super) fn new(
        connection: &'c ClientConnection,
        upstream: &'c Upstream,
        request: CallRequest<'c>,
        cancelled: watch::Receiver<bool>,
    ) -> Self {
        Self { connection, upstream, request, cancelled, response: Mutex::default() }
    }

    fn response(&self) -> MutexGuard<'_, UpstreamResponse> {
        self.response.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client cancelled the call, and the server did not answer it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.response().is_cancelled
    }

    /// The call as the server receives it: as the client sent it, with the changes of policies.
    fn upstream_request(&self, call: &ToolCall) -> JsonRpcMessage {
        let mut message = self.request.message.clone();
        if self.request.message.param("name").and_then(Value::as_str) != Some(self.request.tool) {
            message.set_param("name", self.request.tool.into());
        }
        if arguments(self.request.message) != call.input {
            message.set_param("arguments", call.input.clone());
        }
        message.set_trace_from(call);
        message
    }

    /// Converts an outcome to the response for the client.
    pub(super) fn client_response(&self, call: &ToolCall, outcome: Outcome) -> JsonRpcMessage {
        let (failure, binary, message, has_undefined_form) = {
            let mut response = self.response();
            let binary = std::mem::take(&mut response.binary);
            (response.failure.take(), binary, response.message.take(), response.has_undefined_form)
        };
        let message = message.map(|mut message| {
            message.extension_members().for_each(|member| self.connection.session.redact(call, member));
            message
        });
        let respond = |member: &str, value| match message.clone() {
            Some(message) => message.with_payload(member, value),
            None => JsonRpcMessage::response(self.request.id, value),
        };
        match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => {
                let output = outcome.output.unwrap_or_default();
                let mut result = match message {
                    Some(_) if has_undefined_form => output,
                    Some(_) => call_result::from_output(output),
                    // The output comes from a policy or a cache.
                    None => {
                        call_result::adapt_to_protocol(self.request.message, call_result::from_output(output))
                    }
                };
                binary.reattach(&mut result);
                respond("result", result)
            }
            // The server's original error, unless a policy changed it.
            OutcomeKind::Failed => match failure {
                Some((message, failure))
                    if outcome.error.as_deref() == Some(&*self.redacted(call, &message)) =>
                {
                    let (member, mut value) = match failure {
                        ToolFailure::Result(result) => ("result", result),
                        ToolFailure::Error(error) => ("error", error),
                    };
                    self.connection.session.redact(call, &mut value);
                    respond(member, value)
                }
                _ => self.rejection(&outcome),
            },
            _ => self.rejection(&outcome),
        }
    }

    fn rejection(&self, outcome: &Outcome) -> JsonRpcMessage {
        JsonRpcMessage::response(
            self.request.id,
            call_result::adapt_to_protocol(self.request.message, call_result::from_rejection(outcome)),
        )
    }

    fn redacted(&self, call: &ToolCall, text: &str) -> String {
        let mut value = Value::from(text);
        self.connection.session.redact(call, &mut value);
        value.as_str().unwrap_or_default().to_owned()
    }
}
