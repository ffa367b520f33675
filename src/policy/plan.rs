//! Bundle → [`Plan`]: the order in which policies act, decided here and nowhere else.

use std::cmp::Reverse;

use super::{Bundle, Defaults, Mode, Policy};
use crate::json::Digest;

/// The policies that take part, in the order in which they act within a phase.
#[derive(Debug)]
pub struct Plan {
    /// Higher priority first, then by file name, then by place.
    pub policies: Vec<Policy>,
    /// What holds for all of them.
    pub defaults: Defaults,
    /// Digest of everything that was read.
    pub revision: Digest,
}

/// Orders a bundle's policies and leaves out those that are off.
pub fn plan(bundle: Bundle) -> Plan {
    let Bundle { mut policies, defaults, revision } = bundle;
    policies.retain(|policy| policy.mode != Mode::Off);
    // The sort is stable: files come sorted by name, and policies in the order of their file.
    policies.sort_by_key(|policy| Reverse(policy.priority));
    Plan { policies, defaults, revision }
}
