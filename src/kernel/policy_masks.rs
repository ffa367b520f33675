//! What redaction changes in the values that a value was made of, by the policy that changes it.

use std::collections::BTreeMap;

use crate::call::Masks;
use crate::json::Value;
use crate::policy::Policy;

/// What each `redact` policy changes: the digest of the policy → its masks.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyMasks(pub(super) BTreeMap<String, Masks>);

impl PolicyMasks {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(Masks::is_empty)
    }

    /// The masks of one policy.
    pub(super) fn of(&self, policy: &Policy) -> Option<&Masks> {
        self.0.get(&policy.behaviour_digest.to_string())
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (policy, masks) in &other.0 {
            self.0.entry(policy.clone()).or_default().merge(masks);
        }
    }

    pub(super) fn retain(&mut self, select: impl Fn(&Masks) -> Masks) {
        self.0.values_mut().for_each(|masks| *masks = select(masks));
    }
}

/// A value from a cache.
#[derive(Debug)]
pub(crate) struct CachedValue {
    pub(crate) value: Value,
    pub(crate) masks: PolicyMasks,
}
