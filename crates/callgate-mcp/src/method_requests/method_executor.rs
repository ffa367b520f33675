//! Executes a request that policies permitted: sends it to its receiver, and returns the result.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::with_params;
use crate::approval_channels;
use crate::binary_content::DetachedBinary;
use crate::call_result;
use crate::connection::ClientConnection;
use crate::jsonrpc::{JsonRpcMessage, RequestId};
use crate::upstream_event::UpstreamError;
use callgate::call::{Outcome, OutcomeKind, ToolCall};
use callgate::host::{BoxFuture, ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;

/// Sends one request, and waits for the response. `Ok(None)`: the client cancelled it, and the receiver did not answer.
pub(super) trait SendRequest: Send + Sync {
    fn send(&self, message: JsonRpcMessage) -> BoxFuture<'_, Result<Option<JsonRpcMessage>, UpstreamError>>;
}

/// Executes one request.
pub(super) struct MethodExecutor<'c, S> {
    /// The request as it arrived.
    message: &'c JsonRpcMessage,
    sender: S,
    /// Policies search results for what they redact, and binary content is none of it.
    is_searched: bool,
    answer: Mutex<Answer>,
}

/// The parts of the response that policies don't see.
#[derive(Default)]
struct Answer {
    message: Option<JsonRpcMessage>,
    /// The last error: the message that policies saw, and the original.
    error: Option<(String, Value)>,
    binary: DetachedBinary,
    is_cancelled: bool,
}

impl<'c, S: SendRequest> MethodExecutor<'c, S> {
    pub(super) fn new(
        connection: &ClientConnection,
        server: &str,
        message: &'c JsonRpcMessage,
        sender: S,
    ) -> Self {
        let is_searched = connection.session.redacts_results(server);
        Self { message, sender, is_searched, answer: Mutex::default() }
    }

    fn answer(&self) -> MutexGuard<'_, Answer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client cancelled the request, and the receiver did not answer it.
    pub(super) fn is_cancelled(&self) -> bool {
        self.answer().is_cancelled
    }

    /// Converts the outcome to the response. Returns `None` if the request was not permitted, or did not complete.
    pub(super) fn response(
        &self,
        connection: &ClientConnection,
        id: &RequestId,
        (call, outcome): (&ToolCall, &Outcome),
    ) -> Option<JsonRpcMessage> {
        let Answer { message, error, binary, .. } = std::mem::take(&mut *self.answer());
        let respond = |member: &str, value| match message {
            Some(mut message) => {
                message.extension_members().for_each(|member| connection.session.redact(call, member));
                message.with_payload(member, value).with_id(id)
            }
            None if member == "result" => JsonRpcMessage::response(id, value),
            None => JsonRpcMessage::error_response_from(id, value),
        };
        match outcome.outcome {
            OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered => {
                let mut result = outcome.output.clone().filter(Value::is_object)?;
                binary.reattach(&mut result);
                Some(match outcome.outcome {
                    OutcomeKind::Executed => respond("result", result),
                    _ => JsonRpcMessage::response(id, call_result::adapt_to_protocol(self.message, result)),
                })
            }
            // The original error, unless a policy changed it.
            OutcomeKind::Failed => {
                let (seen, mut error) = error?;
                let mut seen = Value::from(seen);
                connection.session.redact(call, &mut seen);
                (outcome.error.as_deref() == seen.as_str()).then(|| {
                    connection.session.redact(call, &mut error);
                    respond("error", error)
                })
            }
            _ => None,
        }
    }
}

impl<S: SendRequest> ToolExecutor for MethodExecutor<'_, S> {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let mut request = with_params(self.message, &call.input);
        request.set_trace_from(call);
        let response = self.sender.send(request).await;
        let response = response.map_err(|UpstreamError(why)| ToolError::new(why).with_kind("unavailable"))?;
        let Some(mut response) = response else {
            self.answer().is_cancelled = true;
            return Err(ToolError::new("the request was cancelled").with_kind("cancelled"));
        };
        let error = response.take_payload("error");
        let mut result = response.take_payload("result").unwrap_or_default();
        let mut answer = self.answer();
        answer.message = Some(response);
        if let Some(error) = error {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("the request failed");
            let kind = error.get("code").map(|code| format!("rpc{code}"));
            let failed = ToolError { message: message.to_owned(), kind };
            answer.error = Some((failed.message.clone(), error));
            return Err(failed);
        }
        if result.get("inputRequests").is_some_and(approval_channels::imitates_callgate) {
            // Only the gateway may ask in its own name.
            let why = "the server imitates an approval request of Callgate";
            return Err(ToolError::new(why).with_kind("imitation"));
        }
        let interim = call_result::is_interim(&result);
        // The binary content is put back into the response to this request only.
        let single_use = self.is_searched && answer.binary.detach_from(&mut result);
        Ok(ToolResponse { interim, single_use, ..result.into() })
    }
}
