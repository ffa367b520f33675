//! Approval requests of a store, as approvers read and answer them.

use callgate::approval::{Inbox, InboxError, InboxItem, RequestStatus};
use callgate::json::{self, Value, json};
use callgate::message::{Approver, RequestPart, ResponsePart};
use serde::Deserialize;

use crate::exchange::OperationResult;
use crate::failure::Failure;

/// What to do with the requests of a store.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InboxCommand {
    /// The id of a request, alone or as `CONVERSATION/ID`; all requests, if absent.
    id: Option<String>,
    /// An answer to the request.
    response: Option<Value>,
    /// The approver, whom the host has verified.
    approver: Option<Approver>,
}

impl InboxCommand {
    /// Reads a command.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        json::from_str(text).map_err(Failure::invalid_argument)
    }

    /// Carries it out.
    pub async fn run(self, inbox: &Inbox) -> OperationResult {
        let Some(id) = self.id else {
            let items: Vec<Value> = inbox.list().await.map_err(failed)?.iter().map(item_json).collect();
            return Ok(Value::Array(items).to_string());
        };
        let item = inbox.find(&id).await.map_err(failed)?;
        let Some(response) = self.response else { return Ok(item_json(&item).to_string()) };
        let response = read_response_part(&item.request.approval_id, &response)?;
        let answered = inbox.answer_shown(&item, response, self.approver).await.map_err(failed)?;
        Ok(item_json(&answered).to_string())
    }
}

fn failed(error: InboxError) -> Failure {
    Failure::new("approval_not_recorded", error.to_string())
}

/// Reads an answer, whose `approvalId` need not be given.
pub fn read_response_part(approval_id: &str, response: &Value) -> Result<ResponsePart, Failure> {
    let mut response = response.clone();
    if let Some(members) = response.as_object_mut() {
        members.insert("type", "tool-approval-response".into());
        if !members.contains_key("approvalId") {
            members.insert("approvalId", approval_id.into());
        }
    }
    ResponsePart::from_json(&response).ok_or_else(|| {
        Failure::invalid_argument("the approval response needs `approved`, and members of the right types")
    })
}

fn item_json(item: &InboxItem) -> Value {
    let (status, details) = match &item.status {
        RequestStatus::Pending { by } => ("pending", json!({ "by": by.clone() })),
        RequestStatus::Answered(_) => ("answered", Value::Null),
        RequestStatus::Expired { at } => ("expired", json!({ "at": at.to_string() })),
        RequestStatus::Invalid(error) => ("invalid", json!({ "why": error.to_string() })),
        RequestStatus::Running { at } => ("running", json!({ "at": at.to_string() })),
        RequestStatus::Completed { at, outcome } => (
            "completed",
            json!({ "at": at.to_string(), "outcome": json::to_value(&**outcome).unwrap_or_default() }),
        ),
    };
    let requirements: Vec<Value> = item
        .requirements
        .iter()
        .map(|one| {
            json!({
                "policy": one.policy.as_deref(),
                "approvers": one.approvers.clone(),
                "quorum": one.quorum,
                "approvals": one.approvals,
            })
        })
        .collect();
    json!({
        "id": item.qualified_id(),
        "conversation": item.key.conversation.as_str(),
        "request": RequestPart::from(&item.request).to_json(),
        "requirements": requirements,
        "status": status,
        "details": details,
    })
}
