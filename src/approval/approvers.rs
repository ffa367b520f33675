//! The approvers of a policy: parses the entries of `approvers`, and checks whether an approver's answer counts.

use super::requirement::ApprovalRequirement;
use crate::message::Approver;
use crate::principal::{Principal, PrincipalComparison};
use crate::safe_text::escape_controls;

/// Prefix of an entry that names a role.
const ROLE_PREFIX: &str = "role:";

/// One entry of `approvers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApproverEntry<'e> {
    /// A principal, by name.
    Principal(&'e str),
    /// Everyone with this role.
    Role(&'e str),
}

impl<'e> ApproverEntry<'e> {
    /// Parses an entry: `role:finance` names a role, anything else a principal.
    pub fn parse(entry: &'e str) -> Self {
        match entry.strip_prefix(ROLE_PREFIX) {
            Some(role) => Self::Role(role),
            None => Self::Principal(entry),
        }
    }

    /// Whether the entry can match anyone.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Principal(name) => Principal::parse(name, PrincipalComparison::Canonical).is_some(),
            Self::Role(role) => !role.trim().is_empty(),
        }
    }

    /// Whether the entry matches an approver. Roles are compared code point by code point.
    fn matches(&self, principal: &Principal, roles: &[String], comparison: PrincipalComparison) -> bool {
        match self {
            Self::Principal(name) => Principal::parse(name, comparison).as_ref() == Some(principal),
            Self::Role(role) => roles.iter().any(|own| own == role),
        }
    }
}

/// Why an answer does not count for a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApproverError {
    /// The policy restricts approvers, and the answer has no verified name.
    #[error("the policy requires a verified approver, and the answer has none")]
    Unidentified,
    /// The agent's principal is unknown, and may be the approver.
    #[error(
        "the agent's principal is unknown, so `{}` may be answering their own request; the host must set \
         `context.principal` to a string, and the agent must request approval again",
        escape_controls(.0)
    )]
    UnknownRequester(String),
    /// The approver is the agent's own principal.
    #[error("`{}` can't answer their own request", escape_controls(.0))]
    SelfApproval(String),
    /// The approver is not listed.
    #[error("`{}` is not one of the approvers: {}", escape_controls(.0), escape_controls(&.1.join(", ")))]
    NotAnApprover(String, Vec<String>),
}

impl ApproverError {
    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unidentified => "unnamed_answer",
            Self::UnknownRequester(_) => "unknown_requester",
            Self::SelfApproval(_) => "self_approval",
            Self::NotAnApprover(..) => "not_an_approver",
        }
    }
}

/// How names are compared for a request of several policies: by canonical form, unless all of them compare exactly.
pub fn name_comparison(askers: &[ApprovalRequirement]) -> PrincipalComparison {
    match askers.iter().all(|asker| asker.principals == PrincipalComparison::Exact) {
        true => PrincipalComparison::Exact,
        false => PrincipalComparison::Canonical,
    }
}

impl ApprovalRequirement {
    /// Whether an answer counts only with the verified name of its approver.
    pub fn needs_approver_name(&self) -> bool {
        !self.approvers.is_empty() || self.quorum > 1
    }

    /// Checks whether an answer of this approver counts for the policy. `requester` is the agent's principal: where names count,
    /// nobody answers their own request.
    ///
    /// # Errors
    /// Why the answer does not count.
    pub fn check(
        &self,
        by: Option<&Approver>,
        requester: Option<&str>,
        comparison: PrincipalComparison,
    ) -> Result<(), ApproverError> {
        if !self.needs_approver_name() {
            return Ok(());
        }
        let by = by.ok_or(ApproverError::Unidentified)?;
        let parse = |name: &str| Principal::parse(name, comparison);
        let approver = parse(&by.principal).ok_or(ApproverError::Unidentified)?;
        let Some(requester) = requester.and_then(parse) else {
            return Err(ApproverError::UnknownRequester(by.principal.clone()));
        };
        if approver == requester {
            return Err(ApproverError::SelfApproval(by.principal.clone()));
        }
        let own = Principal::parse(&by.principal, self.principals).ok_or(ApproverError::Unidentified)?;
        let admits = |entry: &String| ApproverEntry::parse(entry).matches(&own, &by.roles, self.principals);
        match self.approvers.is_empty() || self.approvers.iter().any(admits) {
            true => Ok(()),
            false => Err(ApproverError::NotAnApprover(by.principal.clone(), self.approvers.clone())),
        }
    }

    /// Whether an answer of this approver counts for the policy.
    pub fn accepts(
        &self,
        by: Option<&Approver>,
        requester: Option<&str>,
        comparison: PrincipalComparison,
    ) -> bool {
        self.check(by, requester, comparison).is_ok()
    }
}
