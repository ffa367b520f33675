//! The trace of a call: which policies took part, kept small while the call is decided and named only on
//! request.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::call::{Phase, PolicyTrace, Verdict};
use crate::policy::{CompiledPolicies, Mode, Policy};

/// The layers that decide a call, the bundle first.
pub type Layers = SmallVec<[Arc<CompiledPolicies>; 3]>;

/// A reference to a policy of one of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyRef {
    pub(super) layer: u32,
    pub(super) index: u32,
}

impl PolicyRef {
    /// The policy itself.
    pub(crate) fn find(self, layers: &Layers) -> Option<&Policy> {
        layers.get(self.layer as usize)?.policy(self.index)
    }

    /// The layer that it is in; the bundle is 0.
    pub(crate) fn layer(self) -> u32 {
        self.layer
    }
}

/// A policy with its place in the layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyHandle<'p> {
    pub(crate) reference: PolicyRef,
    pub(crate) policy: &'p Policy,
}

impl<'p> PolicyHandle<'p> {
    pub(crate) fn find(reference: PolicyRef, layers: &'p Layers) -> Option<Self> {
        Some(Self { reference, policy: reference.find(layers)? })
    }

    /// The layer that it is in; the bundle is 0.
    pub(crate) fn layer(self) -> u32 {
        self.reference.layer
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    policy: PolicyRef,
    phase: Phase,
    verdict: Verdict,
    undecided: bool,
}

/// The verdicts of policies, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    steps: SmallVec<[Step; 8]>,
}

impl Trace {
    /// Adds a verdict.
    pub(super) fn note(&mut self, policy: PolicyRef, phase: Phase, verdict: Verdict, undecided: bool) {
        self.steps.push(Step { policy, phase, verdict, undecided });
    }

    /// Corrects the verdict of a policy.
    pub(crate) fn amend(&mut self, policy: PolicyRef, verdict: Verdict) {
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.policy == policy) {
            step.verdict = verdict;
        }
    }

    /// Removes the wrappers of an execution that does not happen.
    pub(crate) fn forget_wrappers(&mut self) {
        self.steps.retain(|step| step.phase != Phase::Execute || step.verdict != Verdict::Pass);
    }

    /// Adds the steps of another trace of the same call.
    pub(crate) fn append(&mut self, other: Trace) {
        self.steps.extend(other.steps);
    }

    /// The trace with the policies' names.
    pub(super) fn named(&self, layers: &Layers) -> Vec<PolicyTrace> {
        let entry = |step: &Step| {
            let policy = step.policy.find(layers)?;
            Some(PolicyTrace {
                id: policy.id.clone(),
                kind: policy.kind.definition().name.to_owned(),
                phase: step.phase,
                verdict: step.verdict,
                shadow: policy.mode == Mode::Shadow,
                undecided: step.undecided,
            })
        };
        self.steps.iter().filter_map(entry).collect()
    }
}
