//! A yes that stands for later calls: scoped, expiring, revocable.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::permit::Permit;
use crate::json::{self, Value, json};

/// For which calls a yes stands.
#[derive(Clone, Copy, Debug)]
pub struct GrantKey<'a> {
    /// The policy that asked, as it was; `about` is the digest of the arguments that must be the same.
    pub permit: &'a Permit,
    /// The tool.
    pub tool: &'a str,
    /// Its server.
    pub server: Option<&'a str>,
    /// The tenant.
    pub tenant: &'a Value,
    /// For whom the agent acts.
    pub requester: Option<&'a str>,
}

impl GrantKey<'_> {
    /// Its name among all grants.
    pub fn name(&self) -> String {
        let Self { permit: Permit { layer, policy, behaviour, about }, tool, server, tenant, requester } =
            self;
        let key =
            json!([layer, policy, behaviour.to_string(), about.to_string(), tool, server, tenant, requester]);
        json::digest(&key).to_string()
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
}

impl Grant {
    /// Whether it stands now. Before it was given, which a clock that was set back may say, it does not.
    pub fn stands(&self, now: Timestamp) -> bool {
        !self.revoked && self.from <= now && now < self.until
    }
}
