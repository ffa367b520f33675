//! The entries of an approver's inbox: a request with its answers and status, and why an answer is not recorded.

use jiff::Timestamp;

use super::bound_request::{BoundRequest, BoundRequestError};
use super::ledger::LedgerKey;
use super::ledger_error::LedgerError;
use super::tally::{IgnoredAnswer, Tally};
use crate::call::{ApprovalRequest, Outcome};
use crate::message::ResponsePart;
use crate::safe_text::escape_controls;

/// An approval request with its answers and status.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InboxItem {
    /// The call's name in the ledger.
    pub key: LedgerKey,
    /// What people are shown.
    pub request: ApprovalRequest,
    /// What the request is bound to; `None` if its token is invalid.
    pub bound_request: Option<BoundRequest>,
    /// What each policy requires, and has so far.
    pub requirements: Vec<RequirementStatus>,
    /// All answers, in the order in which they were given.
    pub answers: Vec<ResponsePart>,
    /// The answers that do not count.
    pub ignored: Vec<IgnoredAnswer>,
    /// How far the request is.
    pub status: RequestStatus,
}

/// What one policy requires of answers, and has so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequirementStatus {
    /// The policy; `None` for `defaults.unmatched`.
    pub policy: Option<String>,
    /// The approvers: principals, and roles as `role:NAME`; anyone, if empty.
    pub approvers: Vec<String>,
    /// How many approvals are required.
    pub quorum: u32,
    /// How many there are.
    pub approvals: u32,
}

impl RequirementStatus {
    /// How many approvals are missing.
    pub fn missing(&self) -> u32 {
        self.quorum.saturating_sub(self.approvals)
    }
}

/// The status of an approval request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestStatus {
    /// It is pending.
    Pending {
        /// Who approved so far.
        by: Vec<String>,
    },
    /// It is answered, and the call has not resumed yet.
    Answered(Tally),
    /// It expired before the call resumed.
    Expired {
        /// Since when.
        at: Timestamp,
    },
    /// It is invalid: not sealed with one of the keys, or changed.
    Invalid(BoundRequestError),
    /// The call is running, or started and never recorded an outcome.
    Running {
        /// Since when.
        at: Timestamp,
    },
    /// The call has completed.
    Completed {
        /// Since when.
        at: Timestamp,
        /// Its outcome.
        outcome: Box<Outcome>,
    },
}

impl InboxItem {
    /// The unique id for people: `CONVERSATION/ID`.
    pub fn qualified_id(&self) -> String {
        format!("{}/{}", self.key.conversation, self.request.approval_id)
    }

    /// Whether the link of an e-mail proves who answers: every policy that requires the approval allows it.
    pub fn allows_answer_by_link(&self) -> bool {
        let requirements = self.bound_request.as_ref().map(|bound| bound.requirements.as_slice());
        requirements.is_some_and(|all| !all.is_empty() && all.iter().all(|requirement| requirement.by_link))
    }

    /// Whether the request is pending.
    pub fn is_pending(&self) -> bool {
        matches!(self.status, RequestStatus::Pending { .. })
    }
}

/// Why an operation on the inbox failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no such request.
    #[error("approval request `{}` not found{}", escape_controls(.id), did_you_mean(.near.as_ref()))]
    NotFound {
        /// The id that was searched for.
        id: String,
        /// The closest match.
        near: Option<String>,
    },
    /// Several requests or grants match this id.
    #[error("`{}` is ambiguous; use one of: {}", escape_controls(.id), listed(.candidates))]
    Ambiguous {
        /// The id that was searched for.
        id: String,
        /// The full ids that match.
        candidates: Vec<String>,
    },
    /// There is no such remembered approval.
    #[error("remembered approval `{}` not found{}", escape_controls(.id), did_you_mean(.near.as_ref()))]
    GrantNotFound {
        /// The id that was searched for.
        id: String,
        /// The closest match.
        near: Option<String>,
    },
    /// The answer is anonymous, and the policies that require approval do not allow that. It was not recorded.
    #[error(
        "the answer does not name an approver; only a policy with `anonymous: allow` accepts such answers"
    )]
    Anonymous,
    /// The answer would not count, and was not recorded.
    #[error("{why} [{code}]")]
    Rejected {
        /// The stable reason code, such as `self_approval`.
        code: &'static str,
        /// Why, for people.
        why: String,
    },
}

fn did_you_mean(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean `{}`?", escape_controls(near))).unwrap_or_default()
}

fn listed(candidates: &[String]) -> String {
    candidates
        .iter()
        .map(|candidate| format!("`{}`", escape_controls(candidate)))
        .collect::<Vec<_>>()
        .join(", ")
}
