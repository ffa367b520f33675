//! What an approval covers, and what a policy requires of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json::Digest;
use crate::principal::PrincipalComparison;

/// What an approval covers: one policy, as it was when it required approval, and one set of final arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permit {
    /// The layer of the policy; the bundle is 0.
    pub layer: u32,
    /// The policy that required approval; `None` for `defaults.unmatched`.
    pub policy: Option<String>,
    /// The digest of the policy's behaviour.
    pub behaviour: Digest,
    /// The digest of what was approved: the final arguments, or a script's own question.
    pub about: Digest,
}

/// A policy that requires approval, and its conditions for answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequirement {
    /// What an approval would cover.
    pub permit: Permit,
    /// The approvers as written in the rules ([`ApproverEntry`](super::ApproverEntry)); if empty, anyone whom the host lets answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many approvals are required.
    pub quorum: u32,
    /// How principals are compared.
    #[serde(default, skip_serializing_if = "PrincipalComparison::is_canonical")]
    pub principals: PrincipalComparison,
    /// Whether an anonymous answer that is given through the store counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// Whether the link of an e-mail proves who answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_link: bool,
    /// The arguments that an approver may change, as JSONPaths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<String>,
    /// The later calls to which an approval also applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remembered>,
}

/// The later calls to which an approval also applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The digest of the arguments that must be the same.
    pub about: Digest,
    /// How long it applies, in seconds.
    pub seconds: u64,
}

impl Remembered {
    /// How long it applies.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
