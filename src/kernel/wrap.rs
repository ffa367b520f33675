//! Which policies wrap the execution of a call, found before it runs.

use smallvec::SmallVec;

use super::Subject;
use super::hearing::{Hearing, Said};
use super::trace::{PolicyRef, Trace};
use crate::authoring::Polarity;
use crate::call::{CallView, Phase, Verdict};
use crate::matcher::Truth;
use crate::policy::Mode;

/// A policy around the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapper {
    pub(crate) policy: PolicyRef,
    /// Its place among all that can wrap a call of this tool, the outermost first. It is the same whatever the arguments
    /// are, so that a wrapper that changes them knows which ones are inside of it.
    pub(crate) order: u32,
}

/// What wraps a call.
pub(super) struct Wrappers {
    pub(super) inner: SmallVec<[Wrapper; 2]>,
    /// A policy of which neither applying nor leaving out is known to be the stricter, and it can't be decided whether it
    /// applies.
    pub(super) undecided: Option<(PolicyRef, String)>,
}

/// Finds what wraps a call with these arguments.
pub(super) fn find<'a>(
    subject: &Subject<'a>,
    view: &CallView<'a>,
    trace: &mut Trace,
    hearing: &Hearing<'_>,
) -> Wrappers {
    let mut found = Wrappers { inner: SmallVec::new(), undecided: None };
    for (order, (reference, policy)) in (0u32..).zip(subject.policies(|chain| &chain.execute)) {
        let truth = policy.matcher.eval(view);
        let enforced = policy.mode != Mode::Shadow;
        let verdict = match (&truth, policy.kind.entry().polarity) {
            (Truth::Yes, _) | (Truth::Absent | Truth::Undecided(_), Polarity::Restricting) => {
                Some(Verdict::Pass)
            }
            (Truth::Undecided(_), Polarity::Forming) => Some(Verdict::Deny),
            _ => None,
        };
        hearing.asked((reference, policy), view, Said::Truth(&truth), verdict);
        let Some(verdict) = verdict else { continue };
        let why = match truth {
            Truth::Undecided(why) => Some(why),
            _ => None,
        };
        trace.note(reference, Phase::Execute, verdict, why.is_some());
        match (enforced, verdict, why) {
            (false, ..) => {}
            (true, Verdict::Deny, Some(why)) => {
                found.undecided.get_or_insert((reference, why));
            }
            _ => found.inner.push(Wrapper { policy: reference, order }),
        }
    }
    found
}
