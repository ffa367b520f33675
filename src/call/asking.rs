//! What is said of a call that waits for a person: the question, what was decided, and by what it may then run.

use serde::{Deserialize, Serialize};

use crate::json::Value;

/// The question put to a person: the `tool-approval-request` part of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// `approval_<toolCallId>`.
    pub approval_id: String,
    /// The call that waits.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: String,
    /// Its final arguments, as they may be shown.
    pub input: Value,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The ids of all policies that ask.
    pub policies: Vec<String>,
    /// When the question lapses, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Digest of the final arguments, which are what an approval is bound to.
    pub input_digest: String,
    /// The MCP server that has the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The arguments that matter most, and their parts, as JSON pointers: those that policies read or name in a question, then those
    /// that the tool requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevant: Vec<String>,
    /// How often the same was asked before in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// The policy author's words for the card.
    #[serde(default, skip_serializing_if = "CardWords::is_empty")]
    pub card: CardWords,
    /// The seal over all of it, with what Callgate must know again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_token: Option<String>,
}

/// By what a call may run that waited for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// The request that was answered; for a grant, the one it was given with.
    pub approval_id: String,
    /// Who answered, as far as that was verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Whether it is an answer to an earlier call that stands for this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remembered: bool,
    /// Whether the person changed the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What keeps the answer from being used twice.
    pub used_once_by: UsedOnceBy,
}

/// A policy author's words for the card that asks; where one is missing, the card has words of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardWords {
    /// What stands above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the button that approves says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// What the button that denies says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
}

impl CardWords {
    /// Whether the card has words of its own for everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What people have decided about a call that waited for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecision {
    /// The request that was answered.
    pub approval_id: String,
    /// The call that waited.
    pub tool_call_id: String,
    /// Its tool.
    pub tool_name: String,
    /// The policies that asked.
    pub policies: Vec<String>,
    /// Whether the call may run, as far as people are asked.
    pub approved: bool,
    /// Why: [`super::reason_code::APPROVED`], [`super::reason_code::APPROVAL_DENIED`], [`super::reason_code::APPROVAL_EXPIRED`],
    /// [`super::reason_code::CANCELLED`], [`super::reason_code::ANSWERED`].
    pub code: String,
    /// What they said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who, as far as that was verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

/// What keeps an answer from being used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsedOnceBy {
    /// A store that outlives the process, and that others share.
    Store,
    /// This process's memory, and the history.
    History,
}
