//! Evaluates a request whose response is not awaited: an executor that keeps the parameters that result from the policies.

use std::sync::{Mutex, PoisonError};

use callgate::call::{Outcome, OutcomeKind, ToolCall};
use callgate::host::{ToolError, ToolExecutor, ToolResponse};
use callgate::json::Value;

/// The final parameters of a request.
#[derive(Default)]
pub(super) struct FinalParams(Mutex<Option<Value>>);

impl FinalParams {
    /// The final parameters. Returns `None` if the request was not permitted.
    pub(super) fn into_permitted(self, outcome: &Outcome) -> Option<Value> {
        let params = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        params.filter(|_| outcome.outcome == OutcomeKind::Executed)
    }
}

impl ToolExecutor for FinalParams {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.input.clone());
        Ok(ToolResponse { interim: true, ..Value::Null.into() })
    }
}
