//! Selects the policies that wrap the execution of a call, before it runs.

use smallvec::SmallVec;

use super::CallScope;
use super::events::{Evaluation, PhaseRecorder};
use super::trace::{PolicyRef, Trace};
use crate::call::{CallView, Phase, Verdict};
use crate::middleware::{Application, OnUndecided};
use crate::policy::Mode;

/// A policy around the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    pub(crate) policy: PolicyRef,
    /// Its place among all that can wrap a call of this tool, the outermost first. It does not depend on the
    /// arguments, so that a wrapper that changes them knows which ones are inside of it.
    pub(crate) order: u32,
}

/// The selected wrappers.
pub(super) struct Wrappers {
    pub(super) inner: SmallVec<[Wrapper; 2]>,
    /// A policy that is undecided, and for which neither applying nor skipping is known to be stricter.
    pub(super) undecided: Option<(PolicyRef, String)>,
}

/// Selects the wrappers of a call with these arguments.
pub(super) fn find<'a>(
    subject: &CallScope<'a>,
    view: &CallView<'a>,
    trace: &mut Trace,
    hearing: &PhaseRecorder<'_>,
) -> Wrappers {
    let mut found = Wrappers { inner: SmallVec::new(), undecided: None };
    for (order, by) in (0u32..).zip(subject.policies(|chain| &chain.execute)) {
        let truth = by.policy.matcher.eval(view);
        let application = by.policy.kind.application(&truth, Phase::Execute);
        let verdict = match application {
            Application::No => None,
            Application::Undecided(OnUndecided::Refuse, _) => Some(Verdict::Deny),
            Application::Yes | Application::Undecided(..) => Some(Verdict::Pass),
        };
        hearing.record(trace, by, view, Evaluation::new(&truth, verdict));
        match application {
            _ if by.policy.mode == Mode::Shadow => {}
            Application::No => {}
            Application::Undecided(OnUndecided::Refuse, why) => {
                found.undecided.get_or_insert_with(|| (by.reference, why.to_owned()));
            }
            Application::Yes | Application::Undecided(..) => {
                found.inner.push(Wrapper { policy: by.reference, order });
            }
        }
    }
    found
}
