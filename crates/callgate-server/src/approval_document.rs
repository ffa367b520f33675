//! The JSON form of approval requests, for `callgate approvals --format json` and the API: [`InboxItem`] → [`Value`].

use callgate::approval::{BoundRequest, Grant, IgnoredAnswer, InboxItem, RequestStatus, Tally};
use callgate::card::{Card, CardExtent, Resolution, ResolutionKind, call_digest};
use callgate::json::{Value, json};
use callgate::message::{RequestPart, ResponsePart};
use callgate::path::PathStep;
use jiff::Timestamp;

/// An approval request with its answers and status, as docs/approvals.md describes it.
pub fn approval_document(item: &InboxItem) -> Value {
    let request = &item.request;
    let answers = item.answers.iter().enumerate().map(|(index, answer)| {
        let ignored = item.ignored.iter().find(|ignored| ignored.index == index);
        answer_document(answer, ignored)
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
        "card": json!(approval_card(item, CardExtent::Bounded)),
    })
}

/// A remembered approval.
pub fn grant_document(name: &str, grant: &Grant, now: Timestamp) -> Value {
    let state = match grant {
        _ if grant.revoked => "revoked",
        _ if grant.is_active(now) => "stands",
        _ => "lapsed",
    };
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

/// The paths of the arguments that an approver may edit.
pub fn editable_paths(item: &InboxItem) -> Vec<String> {
    let paths = item.bound_request.iter().flat_map(BoundRequest::editable_paths);
    let written =
        |steps: Vec<PathStep>| steps.iter().fold("$.input".to_owned(), |text, step| format!("{text}{step}"));
    paths.map(written).collect()
}

/// The card of an approval request: with the question while it is pending, with the resolution afterwards.
pub fn approval_card(item: &InboxItem, extent: CardExtent) -> Card {
    let request = RequestPart::from(&item.request);
    let resolution = match &item.status {
        RequestStatus::Pending { .. } | RequestStatus::Invalid(_) => None,
        RequestStatus::Expired { at } => {
            let at = Some(at.to_string());
            Some(Resolution { kind: ResolutionKind::Expired, by: Vec::new(), at, reason: None })
        }
        RequestStatus::Answered(_) | RequestStatus::Running { .. } | RequestStatus::Completed { .. } => {
            deciding_answer(item).map(|answer| Resolution {
                by: deciders(item, answer),
                at: answer.answered_at.clone(),
                ..Resolution::from(answer)
            })
        }
    };
    match resolution {
        Some(resolution) => Card::resolved_with_extent(&request, &resolution, extent),
        None => Card::pending_with_extent(&request, extent),
    }
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

fn answer_document(answer: &ResponsePart, ignored: Option<&IgnoredAnswer>) -> Value {
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

fn counting_answers(item: &InboxItem) -> impl Iterator<Item = &ResponsePart> {
    let counts = |index: &usize| !item.ignored.iter().any(|ignored| ignored.index == *index);
    item.answers.iter().enumerate().filter(move |(index, _)| counts(index)).map(|(_, answer)| answer)
}

/// The principals whose answers decided; for an approval, all approvers.
fn deciders(item: &InboxItem, deciding: &ResponsePart) -> Vec<String> {
    let approves = |answer: &ResponsePart| answer.approved && !answer.cancel;
    let together = |answer: &&ResponsePart| *answer == deciding || approves(answer) && approves(deciding);
    let names = counting_answers(item).filter(together).filter_map(|answer| answer.answered_by.as_ref());
    names.map(|by| by.principal.clone()).collect()
}

/// The answer that decided: the strictest that counts; among approvals, the one that completed the quorum.
fn deciding_answer(item: &InboxItem) -> Option<&ResponsePart> {
    let counting = || counting_answers(item);
    let cancels = counting().find(|answer| answer.cancel);
    cancels.or_else(|| counting().find(|answer| !answer.approved)).or_else(|| counting().last())
}
