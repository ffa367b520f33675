//! Facts with `when: attempted`: a call whose tool is about to run + session → the changed session, and the trace.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::events::{Event, FactStored, notify};
use super::phase_recorder::{Evaluation, PhaseRecorder};
use super::policy_reference::PolicyHandle;
use super::redacted_call::RedactedCall;
use super::trace::Trace;
use super::{CallScope, Kernel};
use crate::call::{CallView, LetMemo, Masks, Phase, SessionState, ToolCall, Verdict};
use crate::json::Value;
use crate::middleware::{ExtractedFact, Fact, PolicyKind};
use crate::policy::{CompiledPolicies, Mode, ToolPolicies};

impl Kernel<'_> {
    /// Whether policies store facts when a call of this tool starts.
    pub(crate) fn has_attempted_facts(&self, call: &ToolCall) -> bool {
        let server = call.server.as_deref().unwrap_or_default();
        let at_start =
            |layer: &Arc<CompiledPolicies>| !layer.tool_policies(server, &call.tool).start.is_empty();
        self.layers.iter().any(|layer| layer.acts_at_start() && at_start(layer))
    }

    /// Stores the facts of a call that starts with these arguments. After a panic in here they are unknown.
    pub(crate) fn store_attempted_facts(&self, call: &ToolCall, session: &mut SessionState) -> Trace {
        let subject = self.subject(call);
        let recorder = PhaseRecorder::new(self.listener, Phase::Execute, Trace::default());
        for by in subject.policies(start) {
            let PolicyKind::Fact(fact) = &by.policy.kind else { continue };
            let stored = catch_unwind(AssertUnwindSafe(|| store(&subject, by, fact, session, &recorder)));
            if stored.is_err() {
                fact.mark_unknown(session);
            }
        }
        recorder.into_trace()
    }
}

fn start(chain: &ToolPolicies) -> &[u32] {
    &chain.start
}

fn store(
    subject: &CallScope<'_>,
    by: PolicyHandle<'_>,
    fact: &Fact,
    session: &mut SessionState,
    recorder: &PhaseRecorder<'_>,
) {
    // Each policy sees the facts of those before it.
    let lets = LetMemo::default();
    let view = CallView { lets: Some(&lets), ..subject.view(session) };
    let truth = by.policy.matcher.eval(&view);
    let application = by.policy.kind.application(&truth, Phase::Execute);
    let verdict = application.takes_part().then_some(Verdict::Pass);
    recorder.record(by, &view, Evaluation::new(&truth, verdict));
    if !application.takes_part() || by.policy.mode == Mode::Shadow {
        return;
    }
    if application.is_undecided() {
        return fact.mark_unknown(session);
    }
    let (found, masks) = read(subject, fact, view);
    store_entries(subject, by, fact, found, session);
    session.add_masks(&masks);
}

/// Stores what a fact found, and reports it.
pub(super) fn store_entries(
    subject: &CallScope<'_>,
    by: PolicyHandle<'_>,
    fact: &Fact,
    found: Vec<ExtractedFact>,
    session: &mut SessionState,
) {
    let change = fact.store(found, session);
    let stored = FactStored { call: subject.call, policy: by.policy, layer: by.reference.layer, change };
    notify(subject.listener, &Event::FactStored(stored));
}

/// What a fact stores of a call, and the redacted strings in it.
pub(super) fn read(subject: &CallScope<'_>, fact: &Fact, view: CallView<'_>) -> (Vec<ExtractedFact>, Masks) {
    let found = fact.extract(&view);
    let stored: Value = found.iter().filter_map(ExtractedFact::stored_values).collect();
    let redacted = RedactedCall::new(subject, view);
    let mut masks = redacted.masks().matching(&stored);
    if !redacted.masks().is_empty() {
        let shown = fact.extract(&redacted.view(view));
        let shown: Value = shown.iter().filter_map(ExtractedFact::stored_values).collect();
        masks.merge(&redacted.masks().derived(&stored, Some(&shown)));
    }
    (found, masks)
}
