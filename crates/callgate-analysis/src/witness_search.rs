//! Search for calls that two bundles treat differently: samples → witnesses, each attributed to the policies that cause it.

use std::collections::BTreeMap;

use callgate::kernel::Layers;

use crate::call_sample::{CallSample, SampleOrigin};
use crate::evaluator::{DecisionSummary, EvaluatedCall, Evaluator};
use crate::policy_pair::{OwnDifference, PolicyPair};
use crate::report::{CallDirection, Witness, WitnessBasis};
use crate::sample_space::{SampleChoice, SampleSpace};

/// The best witness of each direction.
#[derive(Debug, Default)]
pub(crate) struct FoundWitnesses(BTreeMap<CallDirection, FoundWitness>);

/// How good a witness is, the best first: what it shows, and whether the conditions are decided for it.
type WitnessRank = (WitnessBasis, bool);

#[derive(Debug)]
struct FoundWitness {
    rank: WitnessRank,
    witness: Witness,
    /// Its coordinates, if it was generated.
    choice: Option<SampleChoice>,
}

/// The rank that no other witness exceeds.
const BEST: WitnessRank = (WitnessBasis::Decision, false);

impl FoundWitnesses {
    fn offer(&mut self, found: FoundWitness) {
        let known = self.0.get(&found.witness.direction);
        if known.is_none_or(|known| found.rank < known.rank) {
            self.0.insert(found.witness.direction, found);
        }
    }

    pub(crate) fn has(&self, direction: CallDirection) -> bool {
        self.0.contains_key(&direction)
    }

    fn has_best(&self, direction: CallDirection) -> bool {
        self.0.get(&direction).is_some_and(|found| found.rank == BEST)
    }

    /// The witnesses, the looser one first. One without a direction is left out if there are others.
    pub(crate) fn into_witnesses(mut self) -> Vec<Witness> {
        let mut witnesses: Vec<Witness> = [CallDirection::Looser, CallDirection::Stricter]
            .into_iter()
            .filter_map(|direction| self.0.remove(&direction))
            .map(|found| found.witness)
            .collect();
        if witnesses.is_empty() {
            witnesses.extend(self.0.remove(&CallDirection::Different).map(|found| found.witness));
        }
        witnesses
    }
}

/// What both bundles do with a call.
struct BothDecisions {
    before: DecisionSummary,
    after: DecisionSummary,
    /// `None` if they do the same.
    direction: Option<CallDirection>,
}

impl BothDecisions {
    /// The setting by which the decisions probably differ: without a policy that stops the call it is a default.
    fn probable_setting(&self) -> &'static str {
        let stricter = match self.before.strictness > self.after.strictness {
            true => &self.before,
            false => &self.after,
        };
        match (&stricter.policy, stricter.effect) {
            (None, "invalid") => "defaults.arguments",
            (None, _) => "defaults.unmatched",
            (Some(_), _) => "defaults.absent",
        }
    }
}

/// Searches for witnesses of changes.
pub(crate) struct WitnessSearch<'s, 'p> {
    evaluator: &'s Evaluator,
    old: &'s Layers,
    new: &'s Layers,
    pairs: &'s [PolicyPair<'p>],
    /// The witnesses of each pair.
    pub(crate) found: Vec<FoundWitnesses>,
    /// Calls that the bundles decide differently though each policy alone treats them alike, by the setting that may explain them.
    pub(crate) unattributed: BTreeMap<&'static str, FoundWitnesses>,
}

impl<'s, 'p> WitnessSearch<'s, 'p> {
    pub(crate) fn new(
        evaluator: &'s Evaluator,
        old: &'s Layers,
        new: &'s Layers,
        pairs: &'s [PolicyPair<'p>],
    ) -> Self {
        let found = pairs.iter().map(|_| FoundWitnesses::default()).collect();
        Self { evaluator, old, new, pairs, found, unattributed: BTreeMap::new() }
    }

    /// Tries a call that is not made for a certain policy.
    pub(crate) fn try_sample(&mut self, sample: &CallSample) {
        let both = self.decide_both(sample);
        if both.direction.is_some() {
            self.attribute(sample, &both, None);
        }
    }

    /// Tries at most `limit` generated calls for a pair, until there is a witness of each wanted direction. Returns the number of calls.
    pub(crate) fn search(&mut self, index: usize, space: &SampleSpace, plan: &SearchPlan) -> usize {
        let mut tried = 0;
        for choice in space.choices(plan.limit) {
            let Some(sample) = space.sample(&choice) else { continue };
            tried += 1;
            self.try_generated(index, &sample, &choice, plan.decides_all);
            let found = self.found.get(index);
            if found.is_some_and(|found| {
                !plan.wanted.is_empty() && plan.wanted.iter().all(|wanted| found.has_best(*wanted))
            }) {
                break;
            }
        }
        self.reduce(index, space);
        tried
    }

    fn try_generated(&mut self, index: usize, sample: &CallSample, choice: &SampleChoice, decides_all: bool) {
        let own = self.pairs.get(index).and_then(|pair| pair.compare(self.evaluator, sample));
        if own.is_none() && !decides_all {
            return;
        }
        let both = self.decide_both(sample);
        match (own, both.direction) {
            (None, None) => {}
            (Some(own), direction) if explains(own, direction) => {
                let found = new_witness(sample, &both, own, Some(choice.clone()));
                self.offer(index, found);
            }
            _ => self.attribute(sample, &both, Some(choice)),
        }
    }

    fn offer(&mut self, index: usize, witness: FoundWitness) {
        if let Some(found) = self.found.get_mut(index) {
            found.offer(witness);
        }
    }

    /// Attributes a call that the bundles decide differently to the policies that explain it.
    fn attribute(&mut self, sample: &CallSample, both: &BothDecisions, choice: Option<&SampleChoice>) {
        let compared: Vec<(usize, OwnDifference)> = self
            .pairs
            .iter()
            .enumerate()
            .filter_map(|(index, pair)| Some((index, pair.compare(self.evaluator, sample)?)))
            .collect();
        let Some(direction) = both.direction else { return };
        let with = |wanted: CallDirection| -> Vec<(usize, OwnDifference)> {
            compared.iter().filter(|(_, own)| own.direction == wanted).copied().collect()
        };
        let mut causes = with(direction);
        if causes.is_empty() {
            causes = with(CallDirection::Different);
        }
        if causes.is_empty() {
            causes = compared;
        }
        if causes.is_empty() {
            let own = OwnDifference { direction, is_decision: true, is_decided: true };
            let found = self.unattributed.entry(both.probable_setting()).or_default();
            found.offer(new_witness(sample, both, own, None));
        }
        for (index, own) in causes {
            self.offer(index, new_witness(sample, both, own, choice.cloned()));
        }
    }

    fn decide_both(&self, sample: &CallSample) -> BothDecisions {
        let before = self.evaluator.decide(self.old, sample);
        let after = self.evaluator.decide(self.new, sample);
        let direction = compare_decisions(&before, &after);
        BothDecisions { before: before.summary, after: after.summary, direction }
    }

    /// Removes what the witnesses of a pair do not need.
    fn reduce(&mut self, index: usize, space: &SampleSpace) {
        let Some(pair) = self.pairs.get(index) else { return };
        let Some(found) = self.found.get_mut(index) else { return };
        let found: Vec<FoundWitness> = std::mem::take(&mut found.0).into_values().collect();
        for witness in found {
            let reduced = self.reduced(pair, &witness, space);
            self.offer(index, reduced.unwrap_or(witness));
        }
    }

    fn reduced(
        &self,
        pair: &PolicyPair<'_>,
        found: &FoundWitness,
        space: &SampleSpace,
    ) -> Option<FoundWitness> {
        let choice = found.choice.as_ref()?;
        let rebuild = |sample: &CallSample, choice: Option<SampleChoice>| {
            let own = pair.compare(self.evaluator, sample)?;
            Some(new_witness(sample, &self.decide_both(sample), own, choice))
        };
        let is_alike = |sample: &CallSample| {
            rebuild(sample, None).is_some_and(|other| {
                let (was, is) = (&found.witness, &other.witness);
                let same = |a: &DecisionSummary, b: &DecisionSummary| {
                    (a.effect, &a.policy, &a.code) == (b.effect, &b.policy, &b.code)
                };
                other.rank == found.rank
                    && was.direction == is.direction
                    && same(&was.before, &is.before)
                    && same(&was.after, &is.after)
            })
        };
        let choice = space.reduce(choice, is_alike);
        rebuild(&space.sample(&choice)?, Some(choice))
    }
}

/// How the search for one pair is done.
pub(crate) struct SearchPlan {
    /// The most calls.
    pub(crate) limit: usize,
    /// The directions that are possible.
    pub(crate) wanted: Vec<CallDirection>,
    /// Whether both bundles decide every call, to find differences that the pair alone does not make.
    pub(crate) decides_all: bool,
}

/// Whether a policy's own difference explains the difference of the bundles.
fn explains(own: OwnDifference, bundles: Option<CallDirection>) -> bool {
    bundles.is_none_or(|direction| direction == own.direction)
}

fn compare_decisions(before: &EvaluatedCall, after: &EvaluatedCall) -> Option<CallDirection> {
    let (was, is) = (before.summary.strictness, after.summary.strictness);
    match is.cmp(&was) {
        std::cmp::Ordering::Less => Some(CallDirection::Looser),
        std::cmp::Ordering::Greater => Some(CallDirection::Stricter),
        std::cmp::Ordering::Equal => {
            // Arguments matter only to a tool that gets them, now or after an approval.
            let reaches_tool = matches!(before.summary.effect, "run" | "suspend");
            (reaches_tool && before.input != after.input).then_some(CallDirection::Different)
        }
    }
}

fn new_witness(
    sample: &CallSample,
    both: &BothDecisions,
    own: OwnDifference,
    choice: Option<SampleChoice>,
) -> FoundWitness {
    let basis = match (both.direction, own.is_decision) {
        (Some(_), _) => WitnessBasis::Decision,
        (None, true) => WitnessBasis::PolicyAlone,
        (None, false) => WitnessBasis::Application,
    };
    let source = match &sample.origin {
        SampleOrigin::Generated => None,
        SampleOrigin::PolicyTest(location) => Some(format!("{}:{}", location.file, location.line)),
        SampleOrigin::Recording { file, line } => Some(format!("{file}:{line}")),
    };
    let witness = Witness {
        direction: both.direction.unwrap_or(own.direction),
        basis,
        call: sample.call_json(),
        session: sample.session_json(),
        now: (sample.now != CallSample::default_time()).then(|| sample.now.to_string()),
        source,
        before: both.before.clone(),
        after: both.after.clone(),
    };
    FoundWitness { rank: (basis, !own.is_decided), witness, choice }
}
