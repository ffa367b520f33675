//! Who may answer: the entries of `approvers`, and why an answer of somebody else does not count.

use super::permit::Asker;
use crate::message::Approver;
use crate::principal::{Comparison, Principal};
use crate::text::inert;

/// What begins an entry that names a role.
const ROLE: &str = "role:";

/// One entry of `approvers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApproverEntry<'e> {
    /// A principal, by name.
    Principal(&'e str),
    /// Everybody who has this role.
    Role(&'e str),
}

impl<'e> ApproverEntry<'e> {
    /// Reads an entry as it is written: `role:finance` names a role, anything else a principal.
    pub fn parse(entry: &'e str) -> Self {
        match entry.strip_prefix(ROLE) {
            Some(role) => Self::Role(role),
            None => Self::Principal(entry),
        }
    }

    /// Whether the entry can name anybody.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::Principal(name) => Principal::parse(name, Comparison::Canonical).is_some(),
            Self::Role(role) => !role.trim().is_empty(),
        }
    }

    /// Whether somebody is meant. Roles are compared code point by code point.
    fn admits(&self, principal: &Principal, roles: &[String], comparison: Comparison) -> bool {
        match self {
            Self::Principal(name) => Principal::parse(name, comparison).as_ref() == Some(principal),
            Self::Role(role) => roles.iter().any(|own| own == role),
        }
    }
}

/// Why somebody's answer does not count for a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The policy says who may answer, and it is not known who did.
    #[error("it does not say, in a way that can be checked, who answered")]
    Unnamed,
    /// It is not known for whom the agent acts: that may be who answers.
    #[error(
        "the call names no principal for whom the agent acts, so `{}` may be answering for themselves; the host must set \
         `context.principal` to a string, and the agent must ask again",
        inert(.0)
    )]
    UnknownRequester(String),
    /// The agent acts for who answers.
    #[error("`{}` can't answer for themselves", inert(.0))]
    SelfApproval(String),
    /// Somebody else must answer.
    #[error("`{}` is none of those who may answer: {}", inert(.0), inert(&.1.join(", ")))]
    NotAnApprover(String, Vec<String>),
}

impl Refusal {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unnamed => "unnamed_answer",
            Self::UnknownRequester(_) => "unknown_requester",
            Self::SelfApproval(_) => "self_approval",
            Self::NotAnApprover(..) => "not_an_approver",
        }
    }
}

/// How the names around one question are compared, where several policies ask: by canonical form if one of them does so.
pub fn comparison_of(askers: &[Asker]) -> Comparison {
    match askers.iter().all(|asker| asker.principals == Comparison::Exact) {
        true => Comparison::Exact,
        false => Comparison::Canonical,
    }
}

impl Asker {
    /// Whether an answer only counts with the verified name of who gave it.
    pub fn needs_name(&self) -> bool {
        !self.approvers.is_empty() || self.quorum > 1
    }

    /// Checks whether an answer of this approver counts for the policy. `requester` is for whom the agent acts; nobody answers for
    /// themselves where names count.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn check(
        &self,
        by: Option<&Approver>,
        requester: Option<&str>,
        comparison: Comparison,
    ) -> Result<(), Refusal> {
        if !self.needs_name() {
            return Ok(());
        }
        let by = by.ok_or(Refusal::Unnamed)?;
        let parse = |name: &str| Principal::parse(name, comparison);
        let approver = parse(&by.principal).ok_or(Refusal::Unnamed)?;
        let Some(requester) = requester.and_then(parse) else {
            return Err(Refusal::UnknownRequester(by.principal.clone()));
        };
        if approver == requester {
            return Err(Refusal::SelfApproval(by.principal.clone()));
        }
        let own = Principal::parse(&by.principal, self.principals).ok_or(Refusal::Unnamed)?;
        let admits = |entry: &String| ApproverEntry::parse(entry).admits(&own, &by.roles, self.principals);
        match self.approvers.is_empty() || self.approvers.iter().any(admits) {
            true => Ok(()),
            false => Err(Refusal::NotAnApprover(by.principal.clone(), self.approvers.clone())),
        }
    }

    /// Whether an answer of this approver counts for the policy.
    pub fn accepts(&self, by: Option<&Approver>, requester: Option<&str>, comparison: Comparison) -> bool {
        self.check(by, requester, comparison).is_ok()
    }
}
