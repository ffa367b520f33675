//! Outcomes as results of `tools/call`: what the client, and through it the model, is told.

use super::frame::Frame;
use super::method;
use crate::call::{Outcome, OutcomeKind};
use crate::json::{Map, Value, json};

/// The member of `_meta` that says, to programs, what Callgate made of the call.
pub const OUTCOME: &str = "dev.callgate/outcome";

/// The code of calls of tools that someone has to review first.
pub const QUARANTINED: &str = "tool_quarantined";

/// The texts of a result, one after the other.
pub(super) fn text_of(result: &Value) -> String {
    let content = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|part| part.get("text")?.as_str()).collect();
    if texts.is_empty() { "the tool failed".to_owned() } else { texts.join("\n") }
}

/// A result of ours in the protocol of the call that it answers: the one since 2026-07-28 demands that results say what they are.
pub(super) fn in_protocol_of(call: &Frame, mut result: Value) -> Value {
    if call.meta(method::PROTOCOL_VERSION).is_some()
        && let Some(members) = result.as_object_mut()
    {
        members.entry("resultType").or_insert_with(|| "complete".into());
    }
    result
}

/// Whether a value is a result as the protocol has them.
pub(super) fn is_result(output: &Value) -> bool {
    output.get("content").is_some_and(Value::is_array)
        || output.get("resultType").is_some()
        || output.get("toolResult").is_some()
}

/// Whether a result is not the end of its call: it asks for more, or says where the result will be.
pub(super) fn is_interim(result: &Value) -> bool {
    let kind = result.get("resultType").and_then(Value::as_str);
    let begins_task = result.get("task").is_some_and(Value::is_object)
        || result
            .get("_meta")
            .and_then(Value::as_object)
            .is_some_and(|meta| meta.keys().any(|name| name.ends_with("/task")));
    kind.is_some_and(|kind| kind != "complete") || begins_task
}

/// What a tool, or a policy in its place, gave, as a result. What is one already stays as it is.
pub(super) fn of_output(output: Value) -> Value {
    if is_result(&output) {
        return output;
    }
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    let mut result = text_result(&text);
    if output.is_object() {
        result.insert("structuredContent".to_owned(), output);
    }
    Value::Object(result)
}

/// What is said of a call that did not run, or did not come to a result: an error that the model can read, with a code for programs.
pub(super) fn of_refusal(outcome: &Outcome) -> Value {
    let said = match outcome.outcome {
        OutcomeKind::Recovered => outcome.output.as_ref().and_then(Value::as_str).map(str::to_owned),
        _ => outcome.error.clone(),
    };
    let message = said.unwrap_or_else(|| outcome.reason.message.clone());
    let text = match outcome.outcome {
        OutcomeKind::Denied | OutcomeKind::Halted | OutcomeKind::Aborted => {
            format!("Not run ({}): {message}", outcome.reason.code)
        }
        _ => message,
    };
    let mut about = json!({
        "outcome": outcome.outcome,
        "code": outcome.reason.code,
        "policy": outcome.reason.policy,
        "callId": outcome.id,
    });
    if let Some(about) = about.as_object_mut() {
        if let Some(after) = outcome.retry_after_ms {
            about.insert("retryAfterMs".to_owned(), after.into());
        }
        if let Some(request) = &outcome.approval {
            about.insert("approvalId".to_owned(), request.approval_id.as_str().into());
        }
    }
    let mut result = text_result(&text);
    result.insert("isError".to_owned(), true.into());
    result.insert("_meta".to_owned(), json!({ OUTCOME: about }));
    Value::Object(result)
}

/// What is said of a call of a tool that someone has to review first.
pub(super) fn of_quarantine(message: &str) -> Value {
    let mut result = text_result(&format!("Not run ({QUARANTINED}): {message}"));
    result.insert("isError".to_owned(), true.into());
    let about = json!({ "outcome": OutcomeKind::Denied, "code": QUARANTINED, "policy": null });
    result.insert("_meta".to_owned(), json!({ OUTCOME: about }));
    Value::Object(result)
}

fn text_result(text: &str) -> Map {
    Map::from_iter([("content".to_owned(), json!([{ "type": "text", "text": text }]))])
}
