//! Approved calls whose server requested input by its result. The client sends such a call again with that input, and the approval covers
//! the continuation, once for each time that the server requests input.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::jsonrpc::JsonRpcMessage;
use callgate::call::{ApprovalRecord, ToolCall};
use callgate::json::Value;
use callgate::message::{RequestPart, ResponsePart, approval_response};

/// The `resultType` of results that request input.
pub(super) const INPUT_REQUIRED: &str = "input_required";

/// How long an approved call can be continued after its server requested input.
const CONTINUATION_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The maximum number of approved calls of one connection that wait for input. Beyond it the oldest is evicted and needs a new approval.
const MAX_CONTINUATIONS: usize = 256;

/// An approved call whose server requested input.
#[derive(Clone, Debug)]
pub(super) struct ApprovedContinuation {
    call: ToolCall,
    /// The approval request that was answered.
    request: RequestPart,
    /// The server's `requestState`.
    state: Option<Value>,
    created: Instant,
}

impl ApprovedContinuation {
    /// Creates the continuation of an approved call from the response that requests input.
    pub(super) fn new(call: ToolCall, request: RequestPart, response: &JsonRpcMessage) -> Self {
        let state = response.result_value().and_then(|result| result.get("requestState").cloned());
        Self { call, request, state, created: Instant::now() }
    }

    /// Whether a call with this approval can be continued: its response requests input. Not if the approver edited the arguments: the
    /// client sends the original ones again.
    pub(super) fn is_possible(approved: &ApprovalRecord, response: &JsonRpcMessage) -> bool {
        let requests_input = |result: &Value| result.get("resultType") == Some(&INPUT_REQUIRED.into());
        !approved.edited && !approved.remembered && response.result_value().is_some_and(requests_input)
    }

    /// Whether a call continues this one, and its approval request equals the one that was answered.
    fn matches(&self, call: &ToolCall, message: &JsonRpcMessage, request: &RequestPart) -> bool {
        let answered = &self.request;
        self.call.tool == call.tool
            && self.call.server == call.server
            && self.call.input == call.input
            && self.created.elapsed() < CONTINUATION_TIMEOUT
            && message.param("requestState") == self.state.as_ref()
            && (self.state.is_some() || message.param("inputResponses").is_some())
            && answered.policies == request.policies
            && answered.input_digest.is_some()
            && answered.input_digest == request.input_digest
    }

    /// The given approval, as an answer to the current approval request.
    pub(super) fn answer(&self, request: &RequestPart) -> ResponsePart {
        ResponsePart {
            reason: Some(format!("goes on after {}", self.request.approval_id)),
            approval_token: request.approval_token.clone(),
            ..approval_response(&request.approval_id, true)
        }
    }
}

/// The approved calls of one connection that wait for input.
#[derive(Debug, Default)]
pub(super) struct PendingContinuations {
    calls: Mutex<VecDeque<ApprovedContinuation>>,
}

impl PendingContinuations {
    fn calls(&self) -> MutexGuard<'_, VecDeque<ApprovedContinuation>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call; evicts the oldest one if there are too many.
    pub(super) fn add(&self, call: ApprovedContinuation) {
        let mut calls = self.calls();
        calls.push_back(call);
        if calls.len() > MAX_CONTINUATIONS {
            calls.pop_front();
        }
    }

    /// Takes the approved call that this one continues.
    pub(super) fn take(
        &self,
        call: &ToolCall,
        message: &JsonRpcMessage,
        request: &RequestPart,
    ) -> Option<ApprovedContinuation> {
        let mut calls = self.calls();
        let position = calls.iter().position(|approved| approved.matches(call, message, request))?;
        calls.remove(position)
    }
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    fn call(tool: &str) -> ToolCall {
        ToolCall::new("c1", tool, json!({ "a": 1 }))
    }

    fn request() -> RequestPart {
        RequestPart { input_digest: Some("digest".to_owned()), ..RequestPart::default() }
    }

    fn continuation(tool: &str) -> ApprovedContinuation {
        let result = json!({ "resultType": INPUT_REQUIRED, "requestState": "s" });
        let id = crate::jsonrpc::RequestId::from_text("1");
        ApprovedContinuation::new(call(tool), request(), &JsonRpcMessage::response(&id, result))
    }

    fn repeated_call() -> JsonRpcMessage {
        JsonRpcMessage::notification("tools/call", json!({ "requestState": "s" }))
    }

    #[test]
    fn a_continuation_is_taken_once_by_the_same_call() {
        let pending = PendingContinuations::default();
        pending.add(continuation("pay"));
        let message = repeated_call();
        let other_state = JsonRpcMessage::notification("tools/call", json!({ "requestState": "other" }));
        let edited = RequestPart { input_digest: Some("other".to_owned()), ..request() };
        assert!(pending.take(&call("other"), &message, &request()).is_none());
        assert!(pending.take(&call("pay"), &other_state, &request()).is_none());
        assert!(pending.take(&call("pay"), &message, &edited).is_none());
        assert!(pending.take(&call("pay"), &message, &RequestPart::default()).is_none());
        assert!(pending.take(&call("pay"), &message, &request()).is_some());
        assert!(pending.take(&call("pay"), &message, &request()).is_none());
    }

    #[test]
    fn the_oldest_continuation_is_evicted() {
        let pending = PendingContinuations::default();
        for number in 0..=MAX_CONTINUATIONS {
            pending.add(continuation(&format!("tool{number}")));
        }
        let take =
            |number: usize| pending.take(&call(&format!("tool{number}")), &repeated_call(), &request());
        assert!(take(0).is_none());
        assert!(take(1).is_some() && take(MAX_CONTINUATIONS).is_some());
    }
}
