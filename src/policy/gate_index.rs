//! The policies of a tool that are evaluated in gate, narrowed to those that may match a call by its values, and ordered by strictness.

use std::collections::HashMap;
use std::iter::{Copied, Peekable};
use std::slice::Iter;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::{Mode, Policy};
use crate::call::{CallView, Effect};
use crate::json::JsonType;
use crate::matcher::ScalarKey;
use crate::middleware::PolicyKind;
use crate::path::Path;

/// The policies of the gate phase. Those that require a certain value at a certain path are found by hash.
#[derive(Debug)]
pub struct GateIndex {
    always: Box<[u32]>,
    lookups: Box<[ValueIndex]>,
    hasher: RandomState,
    /// Those of `always` that can stop a call, with the effect that they have, the strictest first. `None` if some policy of gate does more
    /// than to stop or permit calls.
    strictest_first: Option<Box<[(Effect, u32)]>>,
}

/// All policies that require a value of one type at one path to equal one of their literals.
#[derive(Debug)]
struct ValueIndex {
    path: Path,
    json_type: JsonType,
    by_hash: FastHashMap<u64, Vec<u32>>,
    all_policies: Vec<u32>,
}

/// With fewer policies than this on one path, evaluation is as fast as a lookup.
const MIN_INDEXED_POLICIES: usize = 24;

impl GateIndex {
    pub(super) fn build(indices: Vec<u32>, policies: &[Policy]) -> Self {
        let hasher = RandomState::default();
        let mut groups: HashMap<(String, JsonType), Vec<u32>> = HashMap::new();
        let demand = |index: &u32| {
            policies
                .get(*index as usize)?
                .matcher
                .condition
                .as_ref()?
                .required_tests()
                .find_map(|test| test.index_keys())
        };
        for index in &indices {
            if let Some((path, keys)) = demand(index)
                && let Some(key) = keys.first()
            {
                groups.entry((path.text().to_owned(), key.json_type())).or_default().push(*index);
            }
        }
        groups.retain(|_, members| members.len() >= MIN_INDEXED_POLICIES);
        let mut always = indices;
        let mut lookups = Vec::new();
        for ((_, json_type), members) in groups {
            let mut by_hash: FastHashMap<u64, Vec<u32>> = FastHashMap::default();
            let mut tested_path = None;
            for index in &members {
                let Some((path, keys)) = demand(index) else { continue };
                for key in keys {
                    by_hash.entry(key.hash(&hasher)).or_default().push(*index);
                }
                tested_path = Some(path.clone());
            }
            if let Some(path) = tested_path {
                always.retain(|index| members.binary_search(index).is_err());
                lookups.push(ValueIndex { path, json_type, by_hash, all_policies: members });
            }
        }
        let strictest_first = order_by_strictness(&always, &lookups, policies);
        Self { always: always.into(), lookups: lookups.into(), hasher, strictest_first }
    }

    /// The policies that can stop a call and are evaluated for every call, the strictest first. Returns `None` if some policy of gate does
    /// more than to stop or permit calls.
    pub fn strictest_first(&self) -> Option<&[(Effect, u32)]> {
        self.strictest_first.as_deref()
    }

    /// Returns the policies that may match this call because of one of its values.
    pub fn found_by_value(&self, view: &CallView<'_>) -> FoundPolicies {
        let mut found = FoundPolicies::new();

        for lookup in &self.lookups {
            match lookup.path.nodes(view) {
                Ok(nodes) => {
                    match nodes.first().map(|node| (ScalarKey::from_node(*node), node.json_type())) {
                        // Absent value: none of the policies matches.
                        None => {}
                        Some((Some(key), json_type)) if json_type == lookup.json_type => {
                            found.extend(
                                lookup.by_hash.get(&key.hash(&self.hasher)).into_iter().flatten().copied(),
                            );
                        }
                        // Value of another type: evaluate each policy, which reports that its test is undecided.
                        Some(_) => found.extend_from_slice(&lookup.all_policies),
                    }
                }
                Err(_) => found.extend_from_slice(&lookup.all_policies),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the policies that may match this call, in evaluation order; all others certainly do not.
    pub fn candidates(&self, view: &CallView<'_>) -> CandidatePolicies<'_> {
        CandidatePolicies {
            always: self.always.iter().copied().peekable(),
            found: self.found_by_value(view).into_iter().peekable(),
        }
    }
}

/// Policies that an index found, in evaluation order.
pub type FoundPolicies = SmallVec<[u32; 32]>;

/// The effect of a policy that only stops or permits calls.
pub fn effect_of(policy: &Policy) -> Option<Effect> {
    if policy.kind.script().is_some() {
        return None;
    }
    Some(match (&policy.kind, policy.mode) {
        (PolicyKind::Allow(_), _) => Effect::Run,
        (PolicyKind::Deny(_) | PolicyKind::Approval(_) | PolicyKind::Halt(_), Mode::Shadow) => Effect::Run,
        (PolicyKind::Deny(_), _) => Effect::Deny,
        (PolicyKind::Approval(_), _) => Effect::Suspend,
        (PolicyKind::Halt(_), _) => Effect::Halt,
        _ => return None,
    })
}

fn order_by_strictness(
    always: &[u32],
    lookups: &[ValueIndex],
    policies: &[Policy],
) -> Option<Box<[(Effect, u32)]>> {
    let effect = |index: &u32| Some((effect_of(policies.get(*index as usize)?)?, *index));
    let are_found_known =
        lookups.iter().flat_map(|lookup| &lookup.all_policies).all(|index| effect(index).is_some());
    let mut order = always.iter().map(effect).collect::<Option<Vec<_>>>().filter(|_| are_found_known)?;
    order.retain(|(effect, _)| *effect > Effect::Run);
    order.sort_by(|(a, _), (b, _)| b.cmp(a));
    Some(order.into())
}

/// Map with a fast hash function, for lookups on every call. A collision costs a comparison and never changes a result.
type FastHashMap<K, V> = HashMap<K, V, RandomState>;

/// Iterator over the policies that may match a call, in evaluation order: those evaluated for every call, merged with those
/// that the index found.
#[derive(Debug)]
pub struct CandidatePolicies<'g> {
    always: Peekable<Copied<Iter<'g, u32>>>,
    found: Peekable<smallvec::IntoIter<[u32; 32]>>,
}

impl Iterator for CandidatePolicies<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match (self.always.peek(), self.found.peek()) {
            (Some(always), Some(found)) if found < always => self.found.next(),
            (Some(_), _) => self.always.next(),
            (None, _) => self.found.next(),
        }
    }
}
