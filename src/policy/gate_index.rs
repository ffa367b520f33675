//! The policies of a tool that are evaluated in gate, narrowed to those that may match a call by its values, and ordered by strictness.

mod lookup;

use std::collections::HashMap;
use std::iter::{Copied, Peekable};
use std::slice::Iter;
use std::sync::Arc;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use self::lookup::Lookup;
use super::{Mode, Policy};
use crate::call::{CallView, Effect};
use crate::matcher::{FieldTest, Requirement, ScalarKey};
use crate::middleware::PolicyKind;
use crate::path::Path;

/// The policies of the gate phase. Those that require something of the value at a certain path are looked up by it.
#[derive(Debug)]
pub struct GateIndex {
    always: Box<[u32]>,
    lookups: Box<[Lookup]>,
    hasher: RandomState,
    /// Those of `always` that can stop a call, with the effect that they have, the strictest first. `None` if some policy of gate does more
    /// than to stop or permit calls.
    strictest_first: Option<Box<[(Effect, u32)]>>,
}

/// With fewer policies than this on one path, evaluation is as fast as a lookup.
const MIN_INDEXED_POLICIES: usize = 24;

/// The search for parts of texts takes the most memory of all lookups, for each tool.
const MIN_SEARCHED_POLICIES: usize = 64;

/// Each evaluation of `host` and `inside` parses the text again.
const MIN_PARSED_POLICIES: usize = 2;

impl GateIndex {
    pub(super) fn build(indices: Vec<u32>, policies: &[Arc<Policy>]) -> Self {
        let hasher = RandomState::default();
        let mut groups: HashMap<_, (&Path, Vec<(u32, Requirement<'_>)>)> = HashMap::new();
        if indices.len() >= MIN_PARSED_POLICIES {
            for index in &indices {
                let Some((path, requirement)) =
                    policies.get(*index as usize).and_then(|policy| requirement_of(policy))
                else {
                    continue;
                };
                let json_type = match &requirement {
                    Requirement::OneOf(keys) => keys.first().map(ScalarKey::json_type),
                    _ => None,
                };
                let group = groups.entry((path.text(), requirement.kind(), json_type));
                group.or_insert((path, Vec::new())).1.push((*index, requirement));
            }
        }
        let is_worthwhile = |members: &[(u32, Requirement<'_>)]| {
            let least = match members.first() {
                Some((_, Requirement::Host(_) | Requirement::Inside(_))) => MIN_PARSED_POLICIES,
                Some((_, Requirement::Part(_))) => MIN_SEARCHED_POLICIES,
                _ => MIN_INDEXED_POLICIES,
            };
            members.len() >= least
        };
        let lookups: Box<[Lookup]> = groups
            .into_values()
            .filter(|(_, members)| is_worthwhile(members))
            .filter_map(|(path, members)| Lookup::new(path.clone(), &members, &hasher))
            .collect();
        let mut always = indices;
        for lookup in &lookups {
            always.retain(|index| lookup.policies.binary_search(index).is_err());
        }
        let strictest_first = order_by_strictness(&always, &lookups, policies);
        Self { always: always.into(), lookups, hasher, strictest_first }
    }

    /// The policies that can stop a call and are evaluated for every call, the strictest first. Returns `None` if some policy of gate does
    /// more than to stop or permit calls.
    pub fn strictest_first(&self) -> Option<&[(Effect, u32)]> {
        self.strictest_first.as_deref()
    }

    /// Returns the policies that may match this call because of one of its values.
    pub fn found_by_value(&self, view: &CallView<'_>) -> FoundPolicies {
        let mut found = FoundPolicies::new();
        self.lookups.iter().for_each(|lookup| lookup.find(view, &self.hasher, &mut found));
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

/// What a policy requires of the value at a path, as the index can look it up.
fn requirement_of(policy: &Policy) -> Option<(&Path, Requirement<'_>)> {
    let tests = policy.matcher.condition.as_ref()?.required_tests();
    tests.filter_map(FieldTest::requirement).min_by_key(|(_, requirement)| requirement.kind())
}

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
    lookups: &[Lookup],
    policies: &[Arc<Policy>],
) -> Option<Box<[(Effect, u32)]>> {
    let effect = |index: &u32| Some((effect_of(policies.get(*index as usize)?)?, *index));
    let are_found_known =
        lookups.iter().flat_map(|lookup| &lookup.policies).all(|index| effect(index).is_some());
    let mut order = always.iter().map(effect).collect::<Option<Vec<_>>>().filter(|_| are_found_known)?;
    order.retain(|(effect, _)| *effect > Effect::Run);
    order.sort_by(|(a, _), (b, _)| b.cmp(a));
    Some(order.into())
}

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
