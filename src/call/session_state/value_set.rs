//! Facts that are sets: each value once, with a bound on their number and size.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::{self, Map, Value};

/// The greatest size of a set: the bytes of its values as JSON. The state of a session is sealed and stored as a whole.
#[doc(hidden)]
pub const MAX_SET_BYTES: usize = 4 << 20;

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

/// The bound of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[doc(hidden)]
pub struct SetBound {
    /// The greatest number of values.
    pub max: usize,
    /// What happens to a set that has more, or more bytes than a set may have.
    pub on_full: OnFull,
}

/// What adding values to a set did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetGrowth {
    /// The given values that the set has, whether it had them before or not.
    pub(super) values: Vec<json::Digest>,
    /// The set lacks values that it should have: the fact is unknown.
    pub(super) is_full: bool,
    /// There was no room for a value, or the oldest ones have been dropped for it.
    pub(super) is_at_bound: bool,
}

/// What is known of the sets of a session beside their values. It follows from the values, and is computed when it is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueSets(HashMap<String, Arc<SetIndex>>);

/// Two states with the same values are equal, whatever has been computed of them.
impl PartialEq for ValueSets {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug, Default)]
struct SetIndex {
    digests: HashSet<json::Digest>,
    /// The values' digests and sizes, in the order of the values.
    values: VecDeque<(json::Digest, usize)>,
    bytes: usize,
}

impl ValueSets {
    /// Adds the values that a set lacks, in order, and shortens it to its bound.
    pub(super) fn extend(
        &mut self,
        name: &str,
        facts: &mut Map,
        values: &[Value],
        bound: SetBound,
    ) -> SetGrowth {
        let set = facts.entry(name.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        if !set.is_array() {
            *set = Value::Array(Vec::new());
        }
        let Value::Array(known) = set else { return SetGrowth::default() };
        let index = self.0.entry(name.to_owned()).or_default();
        if index.values.len() != known.len() {
            *index = Arc::new(SetIndex::new(known));
        }
        Arc::make_mut(index).extend(known, values, bound)
    }

    /// Forgets what is known of a set that is replaced.
    pub(super) fn discard(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Whether a set has a value with this digest.
    pub(super) fn contains(&self, name: &str, digest: &json::Digest) -> bool {
        self.0.get(name).is_some_and(|index| index.digests.contains(digest))
    }

    /// The values of a set that have these digests.
    pub(super) fn find(&self, name: &str, known: &[Value], digests: &BTreeSet<json::Digest>) -> Vec<Value> {
        let index = self.0.get(name).filter(|index| index.values.len() == known.len());
        let index = index.map_or_else(|| Arc::new(SetIndex::new(known)), Arc::clone);
        let found = index.values.iter().zip(known).filter(|((digest, _), _)| digests.contains(digest));
        found.map(|(_, value)| value.clone()).collect()
    }

    /// Whether the digests of a set's values are known, so that adding to it costs no more than the added values.
    pub(super) fn has_index(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

impl SetIndex {
    fn new(known: &[Value]) -> Self {
        let mut index = Self::default();
        known.iter().for_each(|value| {
            let (digest, size) = measure(value);
            index.push(digest, size);
        });
        index
    }

    fn push(&mut self, digest: json::Digest, size: usize) {
        self.digests.insert(digest);
        self.values.push_back((digest, size));
        self.bytes = self.bytes.saturating_add(size);
    }

    fn extend(&mut self, known: &mut Vec<Value>, values: &[Value], bound: SetBound) -> SetGrowth {
        let mut growth = SetGrowth::default();
        for value in values {
            let (digest, size) = measure(value);
            if self.digests.contains(&digest) {
                growth.values.push(digest);
                continue;
            }
            let is_full = self.values.len() >= bound.max || self.bytes.saturating_add(size) > MAX_SET_BYTES;
            // A value that no set can have is missing, whatever else is dropped.
            if size > MAX_SET_BYTES || (is_full && bound.on_full == OnFull::Undecided) {
                growth.is_full = true;
                continue;
            }
            self.push(digest, size);
            known.push(value.clone());
            growth.values.push(digest);
        }
        let surplus = self.drop_oldest(bound.max);
        known.drain(..surplus.min(known.len()));
        growth.is_full |= surplus > 0 && bound.on_full == OnFull::Undecided;
        growth.is_at_bound = growth.is_full || surplus > 0;
        growth
    }

    /// Drops the oldest values until the rest is within the bounds. Returns their number.
    fn drop_oldest(&mut self, max: usize) -> usize {
        let mut dropped = 0;
        while self.values.len() > max || self.bytes > MAX_SET_BYTES {
            let Some((digest, size)) = self.values.pop_front() else { break };
            self.digests.remove(&digest);
            self.bytes = self.bytes.saturating_sub(size);
            dropped += 1;
        }
        dropped
    }
}

fn measure(value: &Value) -> (json::Digest, usize) {
    let text = json::canonical_text(value);
    (json::Digest::compute(text.as_bytes()), text.len())
}
