//! The trace of a call: the verdicts of the policies that took part, kept small while the call is decided and named only on request.

use smallvec::SmallVec;

use super::policy_reference::{Layers, PolicyRef};
use crate::call::{Phase, PolicyTrace, Verdict};
use crate::policy::Mode;

/// One verdict, in eight bytes: a call has many of them.
#[derive(Clone, Copy, Debug)]
struct Step {
    index: u32,
    layer: u8,
    phase: Phase,
    verdict: Verdict,
    undecided: bool,
}

impl Step {
    fn policy(&self) -> PolicyRef {
        PolicyRef { layer: u32::from(self.layer), index: self.index }
    }
}

/// The verdicts of policies, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    steps: SmallVec<[Step; 32]>,
    /// The lines that scripts printed, redacted.
    printed: Vec<(PolicyRef, String)>,
}

impl Trace {
    /// Adds a verdict.
    pub(super) fn note(&mut self, policy: PolicyRef, phase: Phase, verdict: Verdict, undecided: bool) {
        // There are three layers.
        let layer = u8::try_from(policy.layer).unwrap_or(u8::MAX);
        self.steps.push(Step { index: policy.index, layer, phase, verdict, undecided });
    }

    /// Adds lines that the script of a policy printed, redacted.
    pub(super) fn note_printed(&mut self, policy: PolicyRef, lines: impl IntoIterator<Item = String>) {
        self.printed.extend(lines.into_iter().map(|line| (policy, line)));
    }

    /// Corrects the verdict of a policy.
    pub(crate) fn amend(&mut self, policy: PolicyRef, verdict: Verdict) {
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.policy() == policy) {
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
        self.printed.extend(other.printed);
    }

    /// The trace with the policies' names.
    pub(super) fn named(&self, layers: &Layers) -> Vec<PolicyTrace> {
        let mut printed = self.printed.clone();
        let entry = |step: &Step| {
            let of_step = printed.extract_if(.., |(policy, _)| *policy == step.policy());
            let printed = of_step.map(|(_, line)| line).collect();
            let policy = step.policy().find(layers)?;
            Some(PolicyTrace {
                id: policy.id.clone(),
                kind: policy.kind.definition().name.into(),
                phase: step.phase,
                verdict: step.verdict,
                shadow: policy.mode == Mode::Shadow,
                undecided: step.undecided,
                printed,
            })
        };
        let mut named = Vec::with_capacity(self.steps.len());
        named.extend(self.steps.iter().filter_map(entry));
        named
    }
}
