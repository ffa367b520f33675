//! Comparison of two bundles: old and new rules → [`BundleComparison`]. What can be proven is proven, and example calls show the rest.

use std::collections::BTreeMap;

use callgate::kernel::Layers;
use callgate::tools::ToolDescriptor;

use crate::call_sample::{CallSample, SampleOrigin};
use crate::evaluator::Evaluator;
use crate::policy_changes::{PossibleChanges, describe, find_changed};
use crate::policy_pair::{PolicyPair, isolate};
use crate::report::{BundleComparison, CallDirection, Change, ChangeSubject, Direction, PolicyState};
use crate::rules_version::RulesVersion;
use crate::sample_space::SampleSpace;
use crate::sample_tools::{KnownCalls, sample_tools};
use crate::setting_changes::compare_settings;
use crate::vocabulary::Vocabulary;
use crate::witness_search::{FoundWitnesses, SearchPlan, WitnessSearch};

/// What a comparison uses beside the rules.
#[derive(Clone, Debug)]
pub struct ComparisonInputs<'a> {
    /// The known tools.
    pub tools: &'a [ToolDescriptor],
    /// Calls to try beside generated ones and those of the policy tests, such as recorded ones.
    pub samples: &'a [CallSample],
    /// The most calls that are generated for one policy.
    pub calls_per_policy: usize,
}

impl Default for ComparisonInputs<'_> {
    fn default() -> Self {
        Self { tools: &[], samples: &[], calls_per_policy: 1_000 }
    }
}

/// The most calls that are generated for all policies together.
const MAX_CALLS: usize = 200_000;
/// The most calls of policy tests that are tried.
const MAX_TESTED_CALLS: usize = 20_000;
/// With more changed policies, both bundles decide only the calls that a policy treats differently.
const MAX_PAIRS_DECIDED: usize = 50;

/// Compares two versions of a bundle. `progress` is called with the number of compared policies and their total.
///
/// If some call is treated less strictly by the new rules, a change of the result has a direction that
/// [allows more](Direction::allows_more). The same inputs give the same result.
pub fn compare(
    old: &RulesVersion,
    new: &RulesVersion,
    inputs: &ComparisonInputs<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> BundleComparison {
    let possible = PossibleChanges::new(old, new);
    let (mut pairs, unchanged) = find_changed(old, new, &possible);
    isolate(&mut pairs, old, new);
    let settings = compare_settings(old.policies(), new.policies());
    let layers = |version: &RulesVersion| Layers::from_iter([version.policies().clone()]);
    let (before, after) = (layers(old), layers(new));
    let evaluator = Evaluator::new(inputs.tools, new.policies());
    let mut search = WitnessSearch::new(&evaluator, &before, &after, &pairs);
    let tested = tested_calls(new).chain(tested_calls(old)).take(MAX_TESTED_CALLS);
    let tested: Vec<CallSample> = tested.collect();
    let known = KnownCalls { tools: inputs.tools, tested: &tested };
    tested.iter().for_each(|sample| search.try_sample(sample));
    inputs.samples.iter().for_each(|sample| search.try_sample(sample));
    let mut tried = Vec::new();
    let per_policy = inputs.calls_per_policy.min(MAX_CALLS / pairs.len().max(1));
    for (index, pair) in pairs.iter().enumerate() {
        progress(index, pairs.len());
        let plan = SearchPlan {
            limit: if pair.is_enforced() { per_policy } else { 0 },
            wanted: wanted_directions(pair, &possible),
            decides_all: !settings.is_empty() || pairs.len() <= MAX_PAIRS_DECIDED,
        };
        tried.push(search.search(index, &sample_space(pair, old, new, known), &plan));
    }
    if !settings.is_empty() {
        try_unchanged_policies(new, known, inputs.calls_per_policy, &mut search);
    }
    let WitnessSearch { found, unattributed, .. } = search;
    let mut changes = Vec::new();
    for ((pair, found), tried) in pairs.iter().zip(found).zip(tried) {
        let subject = describe(pair, old, new);
        changes.push(Change { tried, ..policy_change(pair, subject, found, &possible) });
    }
    changes.extend(settings.into_iter().map(|setting| Change {
        subject: ChangeSubject::Setting { key: setting.key, was: setting.was, is: setting.is },
        direction: setting.direction,
        proven: setting.direction == Direction::Stricter,
        reasons: Vec::new(),
        witnesses: Vec::new(),
        tried: 0,
    }));
    attribute_rest(&mut changes, unattributed);
    if possible.may_allow_more() && !changes.iter().any(|change| change.direction.allows_more()) {
        changes.push(bundle_change(Direction::MayBeLooser));
    }
    // The sort is stable: within a direction the order of the bundle remains.
    changes.sort_by_key(|change| change.direction);
    BundleComparison {
        old_revision: old.policies().revision().to_owned(),
        new_revision: new.policies().revision().to_owned(),
        changes,
        unchanged,
    }
}

/// The calls of the policy tests beside the rules.
fn tested_calls(version: &RulesVersion) -> impl Iterator<Item = CallSample> {
    version.tests().suite.calls().map(|tested| CallSample {
        session: tested.session,
        task: tested.task,
        now: tested.clock,
        ..CallSample::new(tested.call, SampleOrigin::PolicyTest(tested.location))
    })
}

/// The directions that a change may have, as far as known without calls.
fn wanted_directions(pair: &PolicyPair<'_>, possible: &PossibleChanges) -> Vec<CallDirection> {
    let mut wanted = Vec::new();
    if !possible.reasons(pair.id).is_empty() {
        wanted.push(CallDirection::Looser);
    }
    if possible.may_be_stricter(pair.id) {
        wanted.push(CallDirection::Stricter);
    }
    wanted
}

fn sample_space(
    pair: &PolicyPair<'_>,
    old: &RulesVersion,
    new: &RulesVersion,
    known: KnownCalls<'_>,
) -> SampleSpace {
    let mut vocabulary = Vocabulary::new(CallSample::default_time());
    let mut versions = Vec::new();
    // The new version first: its values are the first of each field.
    for (side, version) in [(&pair.new, new), (&pair.old, old)] {
        if let (Some(policy), Some(node)) = (side.enforced(), side.node) {
            version.add_terms(policy, node, &mut vocabulary);
            versions.push((policy, &**version.policies()));
        }
    }
    SampleSpace::new(sample_tools(&versions, known), vocabulary.into_dimensions())
}

/// Tries calls that unchanged policies are about, because settings of the bundle changed.
fn try_unchanged_policies(
    version: &RulesVersion,
    known: KnownCalls<'_>,
    calls_per_policy: usize,
    search: &mut WitnessSearch<'_, '_>,
) {
    const POLICIES: usize = 100;
    const CALLS: usize = 50;
    let nodes = version.policy_nodes();
    for policy in version.policies().policies().iter().take(POLICIES) {
        let Some(node) = nodes.get(policy.id.as_str()) else { continue };
        let mut vocabulary = Vocabulary::new(CallSample::default_time());
        version.add_terms(policy, node, &mut vocabulary);
        let tools = sample_tools(&[(policy, version.policies())], known);
        let space = SampleSpace::new(tools, vocabulary.into_dimensions());
        let samples = space.choices(CALLS.min(calls_per_policy));
        samples
            .iter()
            .filter_map(|choice| space.sample(choice))
            .for_each(|sample| search.try_sample(&sample));
    }
    let other = callgate::ToolCall::new("sample", "any_tool", callgate::json::json!({}));
    search.try_sample(&CallSample::new(other, SampleOrigin::Generated));
}

fn policy_change(
    pair: &PolicyPair<'_>,
    subject: ChangeSubject,
    found: FoundWitnesses,
    possible: &PossibleChanges,
) -> Change {
    let reasons = possible.reasons(pair.id).to_vec();
    let (may_loosen, may_tighten) = (!reasons.is_empty(), possible.may_be_stricter(pair.id));
    let direction = match (found.has(CallDirection::Looser), found.has(CallDirection::Stricter)) {
        (true, true) => Direction::Mixed,
        (true, false) => Direction::Looser,
        (false, _) if may_loosen => Direction::MayBeLooser,
        (false, true) => Direction::Stricter,
        (false, false) if may_tighten => Direction::Stricter,
        (false, false) => Direction::Equivalent,
    };
    let proven = match direction {
        Direction::Looser => !may_tighten,
        Direction::MayBeLooser => false,
        _ => true,
    };
    Change { subject, direction, proven, reasons, witnesses: found.into_witnesses(), tried: 0 }
}

fn bundle_change(direction: Direction) -> Change {
    let subject = ChangeSubject::Bundle;
    Change { subject, direction, proven: false, reasons: Vec::new(), witnesses: Vec::new(), tried: 0 }
}

/// Attributes witnesses that no changed policy explains: to the setting that probably does, else to another one, else to policies that
/// moved, else to all changes together.
fn attribute_rest(changes: &mut Vec<Change>, unattributed: BTreeMap<&'static str, FoundWitnesses>) {
    for (setting, found) in unattributed {
        for witness in found.into_witnesses() {
            let direction = match witness.direction {
                CallDirection::Looser => Direction::Looser,
                CallDirection::Stricter => Direction::Stricter,
                CallDirection::Different => Direction::MayBeLooser,
            };
            let fits = |change: &Change| change.direction.allows_more() == direction.allows_more();
            let find = |accepts: &dyn Fn(&Change) -> bool| changes.iter().position(accepts);
            let place = find(&|change| fits(change) && setting_key(change) == Some(setting))
                .or_else(|| find(&|change| fits(change) && setting_key(change).is_some()))
                .or_else(|| find(&|change| fits(change) && has_moved(change)));
            match place.and_then(|index| changes.get_mut(index)) {
                Some(change) => {
                    change.direction = change.direction.min(direction);
                    change.witnesses.push(witness);
                }
                None => changes.push(Change { witnesses: vec![witness], ..bundle_change(direction) }),
            }
        }
    }
}

fn setting_key(change: &Change) -> Option<&'static str> {
    match change.subject {
        ChangeSubject::Setting { key, .. } => Some(key),
        _ => None,
    }
}

/// Whether a policy is the same, but for its position in the evaluation order.
fn has_moved(change: &Change) -> bool {
    matches!(&change.subject, ChangeSubject::Policy { was: PolicyState::Enforced, is: PolicyState::Enforced, changed, .. } if changed.is_empty())
}
