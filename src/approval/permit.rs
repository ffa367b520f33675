//! What a person's yes is for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::json::Digest;
use crate::principal::Comparison;

/// What a yes is for: one policy, as it was when it asked, and one set of final arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permit {
    /// The layer of the policy; the bundle is 0.
    pub layer: u32,
    /// The policy that asked; none where `defaults.unmatched` did.
    pub policy: Option<String>,
    /// The digest of what the policy does.
    pub behaviour: Digest,
    /// The digest of what was asked about: the final arguments, or a script's own question.
    pub about: Digest,
}

/// A policy that asks, and what it demands of answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asker {
    /// What a yes would be for.
    pub permit: Permit,
    /// Who may answer, as the rules have it ([`ApproverEntry`](super::ApproverEntry)); whomever the host lets answer, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// How many approvals it takes.
    pub quorum: u32,
    /// How principals are compared.
    #[serde(default, skip_serializing_if = "Comparison::is_canonical")]
    pub principals: Comparison,
    /// Whether an answer that is given in the store counts without a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anonymous: bool,
    /// The arguments that an approver may change, as JSONPaths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<String>,
    /// For which later calls a yes stands as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remembered>,
}

/// For which later calls a yes stands as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The digest of the arguments that must be the same.
    pub about: Digest,
    /// For how many seconds.
    pub seconds: u64,
}

impl Remembered {
    /// For how long.
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
