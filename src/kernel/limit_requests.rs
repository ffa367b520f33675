//! Limits in gate: the amounts that a call needs, and the reason of a call that a limit refuses.

use std::time::Duration;

use super::CallScope;
use crate::call::Effect;
use crate::call::{CallView, Reason, SessionState, Verdict, reason_code};
use crate::durations::format;
use crate::middleware::{Limit, LimitCharge, LimitRule, OnExceed, PolicyKind};
use crate::policy::Policy;

/// The effect on a call that finds too little left.
pub(crate) fn effect(on_exceed: &OnExceed) -> Effect {
    match on_exceed {
        OnExceed::Approval(_) => Effect::Suspend,
        OnExceed::Deny | OnExceed::Halt | OnExceed::Wait(_) => undecided_effect(on_exceed),
    }
}

/// The effect on a call if it is unknown how much it needs, or how much is left: nobody is asked to approve that.
pub(crate) fn undecided_effect(on_exceed: &OnExceed) -> Effect {
    match on_exceed {
        OnExceed::Halt => Effect::Halt,
        OnExceed::Deny | OnExceed::Wait(_) | OnExceed::Approval(_) => Effect::Deny,
    }
}

/// The verdict of a limit that has this effect on a call.
pub(crate) fn verdict(effect: Effect) -> Verdict {
    match effect {
        Effect::Halt => Verdict::Halt,
        Effect::Suspend => Verdict::Suspend,
        _ => Verdict::Deny,
    }
}

/// The amount that a call needs of a limit, under a key that no other policy uses. Ids are unique within a
/// layer.
pub(crate) fn measure(
    layer: u32,
    policy: &Policy,
    limit: &Limit,
    view: &CallView<'_>,
) -> Result<LimitCharge, String> {
    let LimitCharge { key, cost } = limit.charge(view)?;
    Ok(LimitCharge { key: format!("{layer}/{}/{key}", policy.id), cost })
}

/// Whether it is unknown how much was acquired of a limit of the run.
pub(super) fn is_unknown(limit: &Limit, session: &SessionState) -> bool {
    matches!(limit.rule, LimitRule::Run(_)) && !session.knows_run()
}

/// Whether a limit of the run has too little left. Other limits are checked by the store.
pub(crate) fn is_used_up(limit: &Limit, measure: &LimitCharge, session: &SessionState) -> bool {
    match limit.rule {
        LimitRule::Run(allowed) => {
            is_unknown(limit, session)
                || session.acquired(&measure.key).saturating_add(measure.cost) > allowed
        }
        LimitRule::Store(_) | LimitRule::Conversation(_) => false,
    }
}

/// The reason of a call that a limit refuses.
pub(super) fn refusal(
    subject: &CallScope<'_>,
    policy: &Policy,
    retry_after: Option<Duration>,
    view: &CallView<'_>,
) -> Option<Reason> {
    let limit = policy.kind.as_limit()?;
    let wait = retry_after.map(format);
    let message = match &limit.message {
        Some(template) => template.render(view, &[("retry_after", wait.as_deref().unwrap_or("never"))]).text,
        None => {
            let again = match (&wait, &policy.kind) {
                (Some(wait), _) => format!("; retry in {wait}"),
                (None, PolicyKind::Concurrency(_)) => "; retry when one of them has ended".to_owned(),
                (None, _) => String::new(),
            };
            format!("`{}` allows `{}` {}{again}", policy.id, subject.call.tool, limit.description)
        }
    };
    let code = match policy.kind {
        PolicyKind::Concurrency(_) => reason_code::CONCURRENCY_LIMITED,
        _ => reason_code::RATE_LIMITED,
    };
    Some(Reason { policy: Some(policy.id.clone()), code: code.to_owned(), message })
}
