//! Callgate's own parts, equal in every dialect: approval requests, answers, and the session's sealed state.
//!
//! Only the AI SDK has approval parts of its own. In other dialects the same JSON is an element of a message's contents (in
//! OpenAI Responses, an item). It is never part of a text, which users, tools and web pages can write: prompt injection
//! must not be able to forge an answer. No other provider accepts these parts;
//! [`History::for_provider`](super::History::for_provider) removes them.

use serde::{Deserialize, Serialize};

use crate::call::{ApprovalRequest, CardLabels};
use crate::json::Value;

/// A request for approval in a history. Callgate's own requests have all members; others only those that they contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestPart {
    /// The request's id.
    pub approval_id: String,
    /// The id of the pending call.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: Option<String>,
    /// Its final arguments, redacted.
    pub input: Option<Value>,
    /// The question to the approver.
    pub message: Option<String>,
    /// The ids of the policies that require approval.
    pub policies: Vec<String>,
    /// When the request expires, in RFC 3339.
    pub expires_at: Option<String>,
    /// The digest of the final arguments.
    pub input_digest: Option<String>,
    /// The MCP server that provides the tool.
    pub server: Option<String>,
    /// The most relevant arguments and parts of them, as JSON pointers.
    pub relevant: Vec<String>,
    /// How often the same approval was requested before in the session.
    pub repeats: Option<u64>,
    /// The policy author's texts for the card.
    pub card: CardLabels,
    /// The seal over the request, with the data that Callgate needs for resuming the call.
    pub approval_token: Option<String>,
}

impl From<&ApprovalRequest> for RequestPart {
    fn from(request: &ApprovalRequest) -> Self {
        Self {
            approval_id: request.approval_id.clone(),
            tool_call_id: request.tool_call_id.clone(),
            tool_name: Some(request.tool_name.clone()),
            input: Some(request.input.clone()),
            message: request.message.clone(),
            policies: request.policies.clone(),
            expires_at: request.expires_at.clone(),
            input_digest: Some(request.input_digest.clone()),
            server: request.server.clone(),
            relevant: request.relevant.clone(),
            repeats: request.repeats,
            card: request.card.clone(),
            approval_token: request.approval_token.clone(),
        }
    }
}

/// The sealed state of a session, stored in its history.
#[derive(Clone, Debug, PartialEq)]
pub struct StatePart {
    /// The encrypted state, bound to the calls of the history.
    pub sealed: String,
}

/// An approver's answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponsePart {
    /// The id of the request.
    pub approval_id: String,
    /// Whether the call is approved.
    pub approved: bool,
    /// The reason.
    pub reason: Option<String>,
    /// The request's token, repeated, or a one-time token of the host.
    pub approval_token: Option<String>,
    /// Replacement arguments. A value that is not an object is accepted here; gate denies it.
    pub edited_input: Option<Value>,
    /// A result in place of the tool's; may be `null`.
    pub output: Option<Value>,
    /// Whether to end the run.
    pub cancel: bool,
    /// The approver, if the host has verified it.
    pub answered_by: Option<Approver>,
    /// When it was answered, in RFC 3339.
    pub answered_at: Option<String>,
    /// The seal over the answer and its approver.
    pub answer_seal: Option<String>,
}

/// An approver: a principal that the host has verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The name of the principal.
    pub principal: String,
    /// The roles of the principal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
}

impl Approver {
    /// A principal without roles.
    pub fn new(principal: impl Into<String>) -> Self {
        Self { principal: principal.into(), roles: Vec::new() }
    }

    /// Adds a role.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }
}
