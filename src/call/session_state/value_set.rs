//! Facts that are sets: each value once, with a bound.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::json::{self, Value};

/// What a set of values does once it has as many as it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// The fact becomes unknown: conditions that read it are undecided.
    #[default]
    Undecided,
    /// The oldest values are removed.
    DropOldest,
}

/// Adds the values that a set lacks, in order.
pub(super) fn add_missing(known: &mut Vec<Value>, values: &[Value]) {
    let mut digests: HashSet<json::Digest> = known.iter().map(json::digest).collect();
    known.extend(values.iter().filter(|value| digests.insert(json::digest(value))).cloned());
}

/// Shortens a set that has too many values. Returns whether the fact is unknown for that reason.
pub(super) fn is_shortened(known: &mut Vec<Value>, max: usize, on_full: OnFull) -> bool {
    let surplus = known.len().saturating_sub(max);
    if surplus == 0 {
        return false;
    }
    match on_full {
        OnFull::DropOldest => drop(known.drain(..surplus)),
        OnFull::Undecided => known.truncate(max),
    }
    on_full == OnFull::Undecided
}
