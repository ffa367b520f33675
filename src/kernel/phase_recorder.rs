//! Records the evaluation of policies, phase by phase: in the trace of the call, and for its listener.

use std::cell::RefCell;

use super::CallScope;
use super::events::{Change, Event, EventListener, MatchStatus, PolicyEvaluated, notify};
use super::policy_reference::{Layers, PolicyHandle, PolicyRef};
use super::trace::Trace;
use crate::call::{CallView, Phase, PolicyTrace, Verdict};
use crate::matcher::Truth;
use crate::policy::Policy;

/// Records one phase of a call: the policies that take part in the trace, and for a listener all that were
/// evaluated, and in the end those that were not.
pub(super) struct PhaseRecorder<'h> {
    listener: Option<&'h dyn EventListener>,
    phase: Phase,
    trace: RefCell<Trace>,
    reported: RefCell<Vec<PolicyRef>>,
}

/// How a policy was evaluated, and what it did.
#[derive(Clone, Copy)]
pub(super) struct Evaluation<'a> {
    pub(super) status: MatchStatus<'a>,
    /// `None` if the policy takes no part.
    pub(super) verdict: Option<Verdict>,
    /// It takes part because it can't be evaluated.
    pub(super) undecided: bool,
    pub(super) change: Option<Change<'a>>,
    pub(super) problem: Option<&'a str>,
}

impl<'a> Evaluation<'a> {
    /// The evaluation of a condition.
    pub(super) fn new(truth: &'a Truth, verdict: Option<Verdict>) -> Self {
        Self {
            status: MatchStatus::Truth(truth),
            verdict,
            undecided: matches!(truth, Truth::Undecided(_)),
            change: None,
            problem: None,
        }
    }

    /// A policy whose condition was not evaluated.
    pub(super) fn skipped(status: MatchStatus<'a>) -> Self {
        Self { status, verdict: None, undecided: false, change: None, problem: None }
    }
}

impl<'h> PhaseRecorder<'h> {
    /// Continues the trace of a call with a phase.
    pub(super) fn new(listener: Option<&'h dyn EventListener>, phase: Phase, trace: Trace) -> Self {
        Self { listener, phase, trace: RefCell::new(trace), reported: RefCell::default() }
    }

    /// Goes on to the next phase.
    pub(super) fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.reported.get_mut().clear();
    }

    /// Adds the trace of another phase of the same call.
    pub(super) fn append(&self, trace: Trace) {
        self.trace.borrow_mut().append(trace);
    }

    /// The trace so far.
    pub(super) fn into_trace(self) -> Trace {
        self.trace.into_inner()
    }

    /// The trace so far, with the policies' names.
    pub(super) fn named(&self, layers: &Layers) -> Vec<PolicyTrace> {
        self.trace.borrow().named(layers)
    }

    /// Whether there is a listener.
    pub(super) fn has_listener(&self) -> bool {
        self.listener.is_some()
    }

    /// Records the evaluation of a policy.
    pub(super) fn record<'a>(&self, by: PolicyHandle<'a>, view: &CallView<'a>, evaluation: Evaluation<'a>) {
        if let Some(verdict) = evaluation.verdict {
            // An answer is found in gate, because it lifts `unmatched`, and acts in the tool's place.
            let phase = if verdict == Verdict::Answer { Phase::Execute } else { self.phase };
            self.trace.borrow_mut().note(by.reference, phase, verdict, evaluation.undecided);
        }
        if self.has_listener() {
            self.report(by, view, evaluation);
        }
    }

    /// Records lines that the script of a policy printed, redacted.
    pub(super) fn note_printed(&self, policy: PolicyRef, lines: Vec<String>) {
        self.trace.borrow_mut().note_printed(policy, lines);
    }

    /// Reports the evaluation of a policy to the listener only.
    pub(super) fn report<'a>(&self, by: PolicyHandle<'a>, view: &CallView<'a>, evaluation: Evaluation<'a>) {
        let PolicyHandle { reference, policy } = by;
        self.reported.borrow_mut().push(reference);
        let Evaluation { status, verdict, change, problem, .. } = evaluation;
        let evaluated = PolicyEvaluated {
            policy,
            layer: reference.layer,
            index: reference.index,
            phase: Some(self.phase),
            view: *view,
            status,
            verdict,
            change,
            problem,
        };
        notify(self.listener, &Event::PolicyEvaluated(evaluated));
    }

    /// Leaves a policy to a later part of the phase, which reports it.
    pub(super) fn leave(&self, reference: PolicyRef) {
        self.reported.borrow_mut().push(reference);
    }

    /// Whether this policy was reported.
    pub(super) fn has_reported(&self, reference: PolicyRef) -> bool {
        self.reported.borrow().contains(&reference)
    }

    /// Ends the phase: reports the policies of the phase that were not evaluated, and why.
    pub(super) fn report_rest<'a>(
        &self,
        subject: &CallScope<'a>,
        view: &CallView<'a>,
        why: impl Fn(&Policy) -> MatchStatus<'static>,
    ) {
        if !self.has_listener() {
            return;
        }
        let mut reported = self.reported.borrow().clone();
        reported.sort_unstable();
        let server = subject.call.server.as_deref().unwrap_or("");
        for (layer, policies) in (0u32..).zip(subject.layers) {
            for (index, policy) in (0u32..).zip(policies.policies()) {
                let reference = PolicyRef { layer, index };
                if !policy.kind.is_active_in(self.phase) || reported.binary_search(&reference).is_ok() {
                    continue;
                }
                let matches = policy.matcher.matches_tool(server, &subject.call.tool);
                let status = if matches { why(policy) } else { MatchStatus::OtherTool };
                self.report(PolicyHandle { reference, policy }, view, Evaluation::skipped(status));
            }
        }
    }
}
