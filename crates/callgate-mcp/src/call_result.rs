//! Converts outcomes to results of `tools/call`, for the client and its model.

use super::jsonrpc::JsonRpcMessage;
use super::method;
use callgate::call::{Outcome, OutcomeKind};
use callgate::json::{Map, Value, json};

/// The member of `_meta` with the outcome of the call, for programs.
pub const OUTCOME_META_KEY: &str = "dev.callgate/outcome";

/// The reason code of calls whose tool is not reviewed.
pub const QUARANTINED: &str = "tool_quarantined";

/// All text content of a result, joined.
pub(super) fn text_content(result: &Value) -> String {
    let content = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|part| part.get("text")?.as_str()).collect();
    if texts.is_empty() { "the tool failed".to_owned() } else { texts.join("\n") }
}

/// Adapts a result of the gateway to the protocol version of its call: since 2026-07-28, results require a `resultType`.
pub(super) fn adapt_to_protocol(call: &JsonRpcMessage, mut result: Value) -> Value {
    if call.meta(method::PROTOCOL_VERSION).is_some()
        && let Some(members) = result.as_object_mut()
    {
        members.entry("resultType").or_insert_with(|| "complete".into());
    }
    result
}

/// Whether a value is a tool result as the protocol defines it.
pub(super) fn is_result(output: &Value) -> bool {
    output.get("content").is_some_and(Value::is_array)
        || output.get("resultType").is_some()
        || output.get("toolResult").is_some()
}

/// Whether a result does not complete its call: it requests input, or starts a task.
pub(super) fn is_interim(result: &Value) -> bool {
    let kind = result.get("resultType").and_then(Value::as_str);
    let begins_task = result.get("task").is_some_and(Value::is_object)
        || result
            .get("_meta")
            .and_then(Value::as_object)
            .is_some_and(|meta| meta.keys().any(|name| name.ends_with("/task")));
    kind.is_some_and(|kind| kind != "complete") || begins_task
}

/// Converts the output of a tool or a policy to a result. Returns a value that already is a result unchanged.
pub(super) fn from_output(output: Value) -> Value {
    if is_result(&output) {
        return output;
    }
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    let mut result = text_result(&text);
    if output.is_object() {
        result.insert("structuredContent", output);
    }
    Value::Object(result)
}

/// The result of a call that did not run or complete: an error that the model can read, with a reason code for programs.
pub(super) fn from_rejection(outcome: &Outcome) -> Value {
    let explanation = match outcome.outcome {
        OutcomeKind::Recovered => outcome.output.as_ref().and_then(Value::as_str).map(str::to_owned),
        _ => outcome.error.clone(),
    };
    let message = explanation.unwrap_or_else(|| outcome.reason.message.clone());
    let text = match outcome.outcome {
        OutcomeKind::Denied | OutcomeKind::Halted | OutcomeKind::Aborted => {
            format!("Not run ({}): {message}", outcome.reason.code)
        }
        _ => message,
    };
    let mut result = text_result(&text);
    result.insert("isError", true.into());
    result.insert("_meta", outcome_meta(outcome));
    Value::Object(result)
}

/// The outcome of a call, for programs.
pub(super) fn outcome_meta(outcome: &Outcome) -> Value {
    let mut about = json!({
        "outcome": outcome.outcome,
        "code": outcome.reason.code,
        "policy": outcome.reason.policy,
        "callId": outcome.id,
    });
    if let Some(about) = about.as_object_mut() {
        if let Some(after) = outcome.retry_after_ms {
            about.insert("retryAfterMs", after.into());
        }
        if let Some(request) = &outcome.approval {
            about.insert("approvalId", request.approval_id.as_str().into());
        }
    }
    json!({ OUTCOME_META_KEY: about })
}

/// The result of a call whose tool is not reviewed.
pub(super) fn from_quarantine(message: &str) -> Value {
    let mut result = text_result(&format!("Not run ({QUARANTINED}): {message}"));
    result.insert("isError", true.into());
    let about = json!({ "outcome": OutcomeKind::Denied, "code": QUARANTINED, "policy": null });
    result.insert("_meta", json!({ OUTCOME_META_KEY: about }));
    Value::Object(result)
}

fn text_result(text: &str) -> Map {
    Map::from_iter([("content".to_owned(), json!([{ "type": "text", "text": text }]))])
}
