//! Tools in JavaScript: a call becomes a request, and its reply the response.

use std::sync::Arc;

use callgate::json::{Value, json};
use callgate::{ToolCall, ToolError, ToolExecutor, ToolResponse};
use serde::Serialize;

use crate::exchange::Exchange;

/// Executes calls with the tools that JavaScript passed to the operation.
pub struct JavaScriptTools {
    exchange: Arc<Exchange>,
}

impl JavaScriptTools {
    /// Executes the calls of one operation.
    pub fn new(exchange: Arc<Exchange>) -> Self {
        Self { exchange }
    }
}

impl ToolExecutor for JavaScriptTools {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        match self.exchange.request("execute", &ExecuteMembers { call: CallMembers::from(call) }).await {
            Some(reply) => read_response(reply),
            None => Err(ToolError::new("the program that runs the tool has ended")),
        }
    }
}

/// The members of a request to execute a call.
#[derive(Serialize)]
struct ExecuteMembers<'c> {
    call: CallMembers<'c>,
}

/// A call as tools and hooks receive it.
#[derive(Serialize)]
pub struct CallMembers<'c> {
    id: &'c str,
    tool: &'c str,
    input: &'c Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'c str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    context: &'c Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    options: &'c Value,
}

impl<'c> From<&'c ToolCall> for CallMembers<'c> {
    fn from(call: &'c ToolCall) -> Self {
        Self {
            id: &call.id,
            tool: &call.tool,
            input: &call.input,
            server: call.server.as_deref(),
            context: &call.context,
            options: &call.options,
        }
    }
}

/// Reads the reply to a request for a result: `output`, or `error`.
pub fn read_response(mut reply: Value) -> Result<ToolResponse, ToolError> {
    if let Some(error) = reply.get("error") {
        return Err(read_error(error));
    }
    let dry = reply.get("dry").and_then(Value::as_bool).unwrap_or_default();
    match reply.as_object_mut().and_then(|members| members.remove("output")) {
        Some(output) => Ok(ToolResponse { dry, ..output.into() }),
        None if dry => Ok(ToolResponse { dry, ..Value::Null.into() }),
        None => Err(ToolError::new("the tool returned nothing that can be read")),
    }
}

/// Reads an error of a tool: `message` and `kind`.
pub fn read_error(error: &Value) -> ToolError {
    let text = |key| error.get(key).and_then(Value::as_str).map(str::to_owned);
    ToolError { message: text("message").unwrap_or_else(|| "the tool failed".to_owned()), kind: text("kind") }
}

/// An error for JavaScript.
pub fn error_json(error: &ToolError) -> Value {
    json!({ "message": error.message.as_str(), "kind": error.kind.as_deref() })
}
