//! Remembered approvals: scoped, expiring, revocable.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bound_context::BoundContext;
use super::requirement::Permit;
use crate::json::json;
use crate::seal::{Keys, Purpose};

/// The calls that a grant applies to.
#[derive(Clone, Copy, Debug)]
pub struct GrantKey<'a> {
    /// The policy that required approval, as it was then; `about` is the digest of the arguments that must be the same.
    pub permit: &'a Permit,
    /// The tool.
    pub tool: &'a str,
    /// Its server.
    pub server: Option<&'a str>,
    /// The identity and the context members that the approval was given for.
    pub bound: &'a BoundContext,
}

impl GrantKey<'_> {
    /// The names of the grant's record, one for each key, the current one first. Which one it has depends on the key in use when it
    /// was given.
    pub fn record_names<'k>(&self, keys: &'k Keys) -> impl Iterator<Item = String> + use<'k> {
        let Self { permit: Permit { layer, policy, behaviour, about }, tool, server, bound } = self;
        let key = json!([layer, policy, behaviour.to_string(), about.to_string(), tool, server, bound]);
        keys.digests(Purpose::Record, &key).map(|digest| digest.to_string())
    }
}

/// An approval that also applies to later calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// The approval request that was answered.
    pub approval_id: String,
    /// The policy that required approval.
    pub policy: Option<String>,
    /// The tool.
    pub tool: String,
    /// The approvers, as far as they are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// When it was given.
    pub from: Timestamp,
    /// When it expires.
    pub until: Timestamp,
    /// Whether it was revoked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
    /// The full scope, so that a grant never applies to another one's calls.
    pub permit: Permit,
    /// The identity and context that it applies to. Without it, it applies to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundContext>,
}

impl Grant {
    /// Whether the grant applies to these calls.
    pub fn applies_to(&self, key: &GrantKey<'_>) -> bool {
        self.permit == *key.permit && self.tool == key.tool && self.bound.as_ref() == Some(key.bound)
    }

    /// Whether the grant is valid now. It is not valid before it was given, which a clock that was set back may report.
    pub fn is_active(&self, now: Timestamp) -> bool {
        !self.revoked && self.from <= now && now < self.until
    }
}
