//! Compares what candidate rules decide on a call with what was decided: two outcomes → [`CandidateDifference`].

use std::cmp::Ordering;

use crate::call::{Effect, Outcome, reason_code};
use crate::execution::CompletedCall;
use crate::host::CandidateDifference;

/// Codes of calls whose approval was answered: for a candidate that requires approval they are no difference.
const ANSWERED: [&str; 3] =
    [reason_code::APPROVAL_DENIED, reason_code::APPROVAL_EXPIRED, reason_code::ASK_AGAIN];

/// The effect of a completed call, if the rules alone decided it.
fn decided_effect(call: &CompletedCall) -> Option<Effect> {
    let outcome = &call.outcome;
    let depends_on_rules =
        !call.is_decided_by_hook && !reason_code::NOT_REPRODUCIBLE.contains(&outcome.reason.code.as_str());
    outcome.outcome.effect().filter(|_| depends_on_rules)
}

/// How the outcome of a candidate differs. Returns `None` if the two can't be compared.
pub(super) fn compare(call: &CompletedCall, candidate: &Outcome) -> Option<CandidateDifference> {
    let active = decided_effect(call)?;
    let effect = candidate.outcome.effect()?;
    if reason_code::NOT_REPRODUCIBLE.contains(&candidate.reason.code.as_str()) {
        return None;
    }
    let was_asked = call.outcome.approved.is_some() || ANSWERED.contains(&call.outcome.reason.code.as_str());
    if effect == Effect::Suspend && was_asked {
        return Some(CandidateDifference::None);
    }
    Some(match effect.compare_strictness(active) {
        Ordering::Less => CandidateDifference::Looser,
        Ordering::Greater => CandidateDifference::Stricter,
        Ordering::Equal if effect != active => CandidateDifference::Different,
        Ordering::Equal if effect == Effect::Run => compare_execution(call, candidate),
        Ordering::Equal => CandidateDifference::None,
    })
}

/// Compares arguments and results of a call that ran under both.
fn compare_execution(call: &CompletedCall, candidate: &Outcome) -> CandidateDifference {
    let active = &call.outcome;
    if active.input != candidate.input {
        return CandidateDifference::Arguments;
    }
    // Without a result of the tool, the candidate has none either.
    let has_result = !call.results.is_empty();
    let is_same = (&active.output, &active.error) == (&candidate.output, &candidate.error);
    if has_result && !is_same { CandidateDifference::Result } else { CandidateDifference::None }
}
