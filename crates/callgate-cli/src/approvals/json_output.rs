//! JSON output of `callgate approvals`, as described in docs/approvals.md.

use std::io::Write;

use super::ApprovalsError;
use super::request_card::{editable_paths, request_card};
use crate::exit::CommandError;
use crate::output::Output;
use callgate::approval::{Grant, IgnoredAnswer, InboxItem, RequestStatus, Tally};
use callgate::card::{CardExtent, call_digest};
use callgate::json::{Value, json};
use callgate::message::{RequestPart, ResponsePart};

/// The version of the JSON format.
const VERSION: u64 = 1;

pub(super) fn write_json(content: &Value, output: &mut Output) -> Result<(), ApprovalsError> {
    let mut document = json!({ "version": VERSION });
    if let (Value::Object(document), Value::Object(content)) = (&mut document, content) {
        document.extend(content.clone());
    }
    let text =
        callgate::json::to_string_pretty(&document).map_err(|error| CommandError::new(error.to_string()))?;
    Ok(writeln!(output, "{text}")?)
}

pub(super) fn request_json(item: &InboxItem) -> Value {
    let request = &item.request;
    let answers = item.answers.iter().enumerate().map(|(index, answer)| {
        let ignored = item.ignored.iter().find(|ignored| ignored.index == index);
        answer_json(answer, ignored)
    });
    let asks = item.requirements.iter().map(|ask| {
        json!({
            "policy": ask.policy,
            "approvers": ask.approvers,
            "quorum": ask.quorum,
            "approvals": ask.approvals,
        })
    });
    let (stage, since, decision, why, outcome) = match &item.status {
        RequestStatus::Pending { .. } => ("waiting", None, None, None, None),
        RequestStatus::Answered(tally) => ("answered", None, Some(decision_name(tally)), None, None),
        RequestStatus::Expired { at } => ("lapsed", Some(at), None, None, None),
        RequestStatus::Invalid(error) => ("unproven", None, None, Some(error.to_string()), None),
        RequestStatus::Running { at } => ("running", Some(at), None, None, None),
        RequestStatus::Completed { at, outcome } => ("settled", Some(at), None, None, Some(json!(outcome))),
    };
    json!({
        "id": request.approval_id,
        "conversation": item.key.conversation,
        "call": request.tool_call_id,
        "tool": request.tool_name,
        "server": request.server,
        "message": request.message,
        "input": request.input,
        "digest": call_digest(&RequestPart::from(request)),
        "policies": request.policies,
        "asked_at": item.bound_request.as_ref().map(|question| question.asked_at.to_string()),
        "expires_at": request.expires_at,
        "requester": item.bound_request.as_ref().and_then(|question| question.requester.as_deref()),
        "stage": stage,
        "since": since.map(ToString::to_string),
        "decision": decision,
        "why": why,
        "asks": asks.collect::<Vec<_>>(),
        "editable": editable_paths(item),
        "answers": answers.collect::<Vec<_>>(),
        "outcome": outcome,
        "card": json!(request_card(item, CardExtent::Bounded)),
    })
}

fn decision_name(tally: &Tally) -> &'static str {
    match tally {
        Tally::Pending { .. } => "open",
        Tally::Approved { edited: None, .. } => "approved",
        Tally::Approved { .. } => "edited",
        Tally::Answered { .. } => "answered",
        Tally::Denied { .. } => "denied",
        Tally::Cancelled { .. } => "cancelled",
    }
}

fn answer_json(answer: &ResponsePart, ignored: Option<&IgnoredAnswer>) -> Value {
    json!({
        "decision": match answer {
            _ if answer.cancel => "cancelled",
            _ if !answer.approved => "denied",
            _ if answer.output.is_some() => "answered",
            _ if answer.edited_input.is_some() => "edited",
            _ => "approved",
        },
        "by": answer.answered_by.as_ref().map(|by| by.principal.as_str()),
        "roles": answer.answered_by.as_ref().map(|by| by.roles.clone()).unwrap_or_default(),
        "at": answer.answered_at,
        "reason": answer.reason,
        "input": answer.edited_input,
        "output": answer.output,
        "counts": ignored.is_none(),
        "code": ignored.map(|ignored| ignored.code),
        "why": ignored.map(|ignored| ignored.why.as_str()),
    })
}

pub(super) fn grant_json(name: &str, grant: &Grant, state: &str) -> Value {
    json!({
        "id": name,
        "approval": grant.approval_id,
        "policy": grant.policy,
        "tool": grant.tool,
        "by": grant.by,
        "from": grant.from.to_string(),
        "until": grant.until.to_string(),
        "state": state,
    })
}
