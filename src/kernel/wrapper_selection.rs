//! Selects the policies that wrap the execution of a call, before it runs.

use smallvec::SmallVec;

use super::CallScope;
use super::decision::Wrapper;
use super::events::{MatchStatus, SkipReason};
use super::gate::GateResult;
use super::phase_recorder::{Evaluation, PhaseRecorder};
use super::trace::Trace;
use crate::call::Effect;
use crate::call::{CallView, Phase, Verdict};
use crate::middleware::{Application, OnUndecided};
use crate::policy::Mode;

/// Selects the wrappers of a call with these arguments, if gate lets it run. A call that waits for an approval is
/// denied if a wrapper would refuse it. `decision` gets the wrappers of a call that runs.
pub(super) fn select<'a>(
    subject: &CallScope<'a>,
    view: &CallView<'a>,
    gate: &mut GateResult,
    decision: &PhaseRecorder<'_>,
) -> SmallVec<[Wrapper; 2]> {
    let recorder = PhaseRecorder::new(subject.listener, Phase::Execute, Trace::default());
    let mut wrappers = SmallVec::new();
    let runs = gate.effect == Effect::Run;
    let mut refusal = None;
    if runs || gate.effect == Effect::Suspend {
        for (order, by) in (0u32..).zip(subject.policies(|chain| &chain.execute)) {
            let truth = by.policy.matcher.eval(view);
            let application = by.policy.kind.application(&truth, Phase::Execute);
            let verdict = match application {
                Application::No => None,
                Application::Undecided(OnUndecided::Refuse, _) => Some(Verdict::Deny),
                Application::Yes | Application::Undecided(..) => Some(Verdict::Pass),
            };
            recorder.record(by, view, Evaluation::new(&truth, verdict));
            match application {
                _ if by.policy.mode == Mode::Shadow => {}
                Application::No => {}
                // Neither applying nor skipping is known to be stricter.
                Application::Undecided(OnUndecided::Refuse, why) => {
                    refusal.get_or_insert_with(|| (by.reference, why.to_owned()));
                }
                Application::Yes | Application::Undecided(..) => {
                    wrappers.push(Wrapper { policy: by.reference, order });
                }
            }
        }
    }
    if runs && recorder.has_listener() {
        subject.policies(|chain| &chain.start).for_each(|by| recorder.leave(by.reference));
    }
    recorder.report_rest(subject, view, |_| MatchStatus::Skipped(SkipReason::NotRun));
    if let Some((policy, why)) = refusal {
        gate.refuse_undecided(policy, why);
    }
    if !runs {
        return SmallVec::new();
    }
    decision.append(recorder.into_trace());
    wrappers
}
