//! A yes that stands for later calls: scoped, expiring, revocable.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bound::BoundContext;
use super::permit::Permit;
use crate::json::json;
use crate::seal::{Keys, Purpose};

/// For which calls a yes stands.
#[derive(Clone, Copy, Debug)]
pub struct GrantKey<'a> {
    /// The policy that asked, as it was; `about` is the digest of the arguments that must be the same.
    pub permit: &'a Permit,
    /// The tool.
    pub tool: &'a str,
    /// Its server.
    pub server: Option<&'a str>,
    /// The identity and the context members that it was given for.
    pub bound: &'a BoundContext,
}

impl GrantKey<'_> {
    /// Its name among all grants, with each of the keys, the current one first: which one it has depends on when it was given.
    pub fn names<'k>(&self, keys: &'k Keys) -> impl Iterator<Item = String> + use<'k> {
        let Self { permit: Permit { layer, policy, behaviour, about }, tool, server, bound } = self;
        let key = json!([layer, policy, behaviour.to_string(), about.to_string(), tool, server, bound]);
        keys.digests(Purpose::Record, &key).map(|digest| digest.to_string())
    }
}

/// A yes that stands for later calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The request that was answered.
    pub approval_id: String,
    /// The policy that asked.
    pub policy: Option<String>,
    /// The tool.
    pub tool: String,
    /// Who answered, as far as they are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Since when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// It was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
    /// All that it stands for, so that none stands for another's calls.
    pub permit: Permit,
    /// For whom it stands. Without it, for nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundContext>,
}

impl Grant {
    /// Whether it was given for this.
    pub fn is_for(&self, key: &GrantKey<'_>) -> bool {
        self.permit == *key.permit && self.tool == key.tool && self.bound.as_ref() == Some(key.bound)
    }

    /// Whether it stands now. Before it was given, which a clock that was set back may say, it does not.
    pub fn stands(&self, now: Timestamp) -> bool {
        !self.revoked && self.from <= now && now < self.until
    }
}
