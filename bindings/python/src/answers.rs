//! Approval requests and answers: their JSON, seals, and the inbox of a store.

use callgate::Engine;
use callgate::approval::{BoundRequest, Inbox, InboxItem, RequestStatus, seal_answer};
use callgate::json::{self, Map, Value, json};
use callgate::message::{Approver, RequestPart, ResponsePart};
use jiff::Timestamp;
use pyo3::prelude::*;

use crate::errors;
use crate::json_conversion::{to_python, to_value};
use crate::operation::{Operation, OperationResult};

/// The JSON object of a part, with its type.
fn part(object: &Bound<'_, PyAny>, kind: &str) -> PyResult<Value> {
    let mut members = Map::new();
    members.insert("type", kind.into());
    match to_value(object)? {
        Value::Object(given) => {
            for (key, value) in given.iter().filter(|(key, _)| *key != "type") {
                members.insert(key.clone(), value.clone());
            }
            Ok(Value::Object(members))
        }
        _ => Err(errors::answer("an approval request or answer must be a dict")),
    }
}

/// Reads an approval request: the dict of `outcome.approval`.
pub(crate) fn read_request(object: &Bound<'_, PyAny>) -> PyResult<RequestPart> {
    RequestPart::from_json(&part(object, "tool-approval-request")?)
        .ok_or_else(|| errors::answer("not an approval request; pass `outcome.approval` unchanged"))
}

/// Reads an answer: a dict with `approvalId`, `approved` and the other members of an approval response.
pub(crate) fn read_answer(object: &Bound<'_, PyAny>) -> PyResult<ResponsePart> {
    ResponsePart::from_json(&part(object, "tool-approval-response")?).ok_or_else(|| {
        errors::answer("not an answer; it needs the string `approvalId` and the boolean `approved`")
    })
}

/// The answer with its verified approver, sealed.
pub(crate) fn seal(
    engine: &Engine,
    request: &RequestPart,
    answer: ResponsePart,
    by: Approver,
) -> PyResult<ResponsePart> {
    let bound = BoundRequest::open(request, engine.keys())
        .map_err(|error| errors::answer(format!("the approval request is not valid: {error}")))?;
    Ok(seal_answer(&bound, answer, by, Timestamp::now(), engine.keys()))
}

/// Lists the requests of a store.
pub(crate) fn list(inbox: Inbox) -> Operation {
    Operation::new(|_| {
        Box::pin(async move {
            let listed = inbox.list().await;
            let listed = listed.map(|items| Value::Array(items.iter().map(document).collect()));
            value_result(listed.map_err(|error| errors::store(error.to_string())))
        })
    })
}

/// Records an answer.
pub(crate) fn record(inbox: Inbox, answer: ResponsePart, by: Option<Approver>) -> Operation {
    Operation::new(|_| {
        Box::pin(async move {
            let recorded = async {
                let item = inbox.find(&answer.approval_id).await?;
                inbox.answer_shown(&item, answer, by).await
            };
            let recorded = recorded.await.map(|item| document(&item));
            value_result(recorded.map_err(|error| errors::answer(error.to_string())))
        })
    })
}

fn value_result(value: PyResult<Value>) -> OperationResult {
    Box::new(move |py| Ok(to_python(py, &value?)?.unbind()))
}

fn document(item: &InboxItem) -> Value {
    let status = match &item.status {
        RequestStatus::Pending { .. } => "pending",
        _ => "answered",
    };
    json!({
        "conversation": item.key.conversation.clone(),
        "status": status,
        "request": json::to_value(&item.request).unwrap_or_default(),
    })
}
