//! Bundle → [`Plan`]: the order in which policies act, decided here and nowhere else.

use std::cmp::Reverse;

use super::{Bundle, Defaults, Mode, Policy, ReloadSettings};
use crate::json::Digest;

/// The policies that take part, in the order in which they act within a phase.
#[derive(Debug)]
pub struct Plan {
    /// Higher priority first, then by file name, then by place.
    pub policies: Vec<Policy>,
    /// The ids of those that are off.
    pub off: Vec<String>,
    /// What holds for all of them.
    pub defaults: Defaults,
    /// What holds when they are to be replaced.
    pub reload: ReloadSettings,
    /// Digest of everything that was read.
    pub revision: Digest,
}

/// Orders a bundle's policies and leaves out those that are off.
pub fn plan(bundle: Bundle) -> Plan {
    let Bundle { mut policies, defaults, reload, revision, drawn_files: _ } = bundle;
    let off = policies.extract_if(.., |policy| policy.mode == Mode::Off).map(|policy| policy.id).collect();
    // The sort is stable: files come sorted by name, and policies in the order of their file.
    policies.sort_by_key(|policy| Reverse(policy.priority));
    Plan { policies, off, defaults, reload, revision }
}
