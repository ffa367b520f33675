//! Human approval of a call: the approval request, the decision, and the approval that lets the call run.

use serde::{Deserialize, Serialize};

use crate::json::Value;

/// The approval request: the `tool-approval-request` part of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// `approval_<toolCallId>`.
    pub approval_id: String,
    /// The pending call.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Its final arguments, redacted.
    pub input: Value,
    /// The question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The ids of all policies that require approval.
    pub policies: Vec<String>,
    /// When the request expires, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Digest of the final arguments, to which an approval is bound.
    pub input_digest: String,
    /// The MCP server that has the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The arguments that matter most, and their parts, as JSON pointers: those that policies read or name in a question, then
    /// those that the tool requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevant: Vec<String>,
    /// How often the same approval was requested before in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// The policy author's labels for the card.
    #[serde(default, skip_serializing_if = "CardLabels::is_empty")]
    pub card: CardLabels,
    /// The seal over all of it, with the encrypted state that Callgate needs to resume the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_token: Option<String>,
}

/// The approval that lets a suspended call run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalRecord {
    /// The request that was answered; for a grant, the one that it was given with.
    pub approval_id: String,
    /// The approvers, as far as they were verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Whether an approval of an earlier call applies to this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remembered: bool,
    /// Whether the approver changed the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What keeps the answer from being used twice.
    pub used_once_by: SingleUseGuarantee,
}

/// A policy author's labels for the approval card; a missing one has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardLabels {
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The label of the approve button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// The label of the deny button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
}

impl CardLabels {
    /// Whether all labels are the defaults.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The decision of the approvers about a pending call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalDecision {
    /// The request that was answered.
    pub approval_id: String,
    /// The pending call.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: String,
    /// The policies that required approval.
    pub policies: Vec<String>,
    /// Whether the call may run, as far as approval is required.
    pub approved: bool,
    /// The reason code: [`super::reason_code::APPROVED`], [`super::reason_code::APPROVAL_DENIED`],
    /// [`super::reason_code::APPROVAL_EXPIRED`], [`super::reason_code::CANCELLED`], [`super::reason_code::ANSWERED`].
    pub code: String,
    /// The approvers' comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The approvers, as far as they were verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

/// What keeps an answer from being used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SingleUseGuarantee {
    /// A store that outlives the process and is shared with others.
    Store,
    /// This process's memory, and the history.
    History,
}
