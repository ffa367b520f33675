//! Tools in JavaScript: a call becomes a request, and its reply the response.

use std::sync::Arc;

use callgate::json::{Map, Value, json};
use callgate::{ToolCall, ToolError, ToolExecutor, ToolResponse};

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
        let reply = self.exchange.request("execute", json!({ "call": call_json(call) })).await;
        match reply {
            Some(reply) => read_response(reply),
            None => Err(ToolError::new("the program that runs the tool has ended")),
        }
    }
}

/// A call as tools and hooks receive it.
pub fn call_json(call: &ToolCall) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), call.id.as_str().into());
    members.insert("tool".to_owned(), call.tool.as_str().into());
    members.insert("input".to_owned(), call.input.clone());
    if let Some(server) = &call.server {
        members.insert("server".to_owned(), server.as_str().into());
    }
    for (key, value) in [("context", &call.context), ("options", &call.options)] {
        if !value.is_null() {
            members.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(members)
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
