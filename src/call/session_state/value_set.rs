//! Facts that are sets: each value once, with a bound.

use std::collections::HashSet;

use crate::json::{self, Value};

/// What a set of values does once it has as many as it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
