//! Normalise: transforms and validations in order, each seeing what the one before it left.

use std::borrow::Cow;

use serde_json::Value;

use super::Subject;
use super::trace::Trace;
use crate::call::{CallView, Phase, Reason, Verdict, reason_code};
use crate::json::JsonType;
use crate::matcher::Truth;
use crate::middleware::{Kind, apply_steps};
use crate::policy::{Mode, Policy};

/// The arguments in form, or as far as they came.
pub(super) struct Normalised<'a> {
    pub(super) input: Cow<'a, Value>,
    /// Why they do not fit: the first problem.
    pub(super) failure: Option<Reason>,
}

/// Runs every policy of the phase, also after a failure: gate still looks for what halts.
pub(super) fn run<'c>(
    subject: &Subject<'_>,
    input: &'c Value,
    view: CallView<'_>,
    trace: &mut Trace,
) -> Normalised<'c> {
    if !input.is_object() {
        let failure = Reason {
            policy: None,
            code: reason_code::INVALID_ARGUMENTS.to_owned(),
            message: format!("arguments are a JSON object, these are of type {}", JsonType::of(input)),
        };
        return Normalised { input: Cow::Borrowed(input), failure: Some(failure) };
    }
    let mut input = Cow::Borrowed(input);
    let mut failure = None;
    for (reference, policy) in subject.policies(|chain| &chain.normalise) {
        let now = CallView { input: &input, ..view };
        let shadow = policy.mode == Mode::Shadow;
        let step = match policy.matcher.eval(&now) {
            Truth::No => continue,
            Truth::Undecided(why) => Err(undecided(policy, &why)),
            truth @ (Truth::Yes | Truth::Absent) => act(subject, policy, &truth, now),
        };
        match step {
            Ok(None) => trace.note(reference, Phase::Normalise, Verdict::Pass, false),
            Ok(Some(changed)) => {
                trace.note(reference, Phase::Normalise, Verdict::Rewrite, false);
                if !shadow {
                    input = Cow::Owned(changed);
                }
            }
            Err(reason) => {
                let open = reason.code == reason_code::UNDECIDED;
                trace.note(reference, Phase::Normalise, Verdict::Deny, open);
                if !shadow {
                    failure.get_or_insert(reason);
                }
            }
        }
    }
    Normalised { input, failure }
}

/// What a matching policy makes of the arguments: the same, others, or a failure.
fn act(
    subject: &Subject<'_>,
    policy: &Policy,
    truth: &Truth,
    view: CallView<'_>,
) -> Result<Option<Value>, Reason> {
    match &policy.kind {
        Kind::Validate(validate) => validate.check(&policy.id, view.input, subject.tool).map(|()| None),
        // What is absent gives a transform nothing to decide on.
        Kind::Transform(_) if *truth == Truth::Absent => Ok(None),
        Kind::Transform(transform) => {
            let mut changed = view.input.clone();
            match apply_steps(&transform.input, &view, &mut changed) {
                Ok(true) => Ok(Some(changed)),
                Ok(false) => Ok(None),
                Err(problem) => Err(Reason {
                    policy: Some(policy.id.clone()),
                    code: reason_code::TRANSFORM_FAILED.to_owned(),
                    message: problem,
                }),
            }
        }
        _ => Ok(None),
    }
}

/// A policy of this phase that can't be decided: neither applying nor leaving out is known to be the stricter.
fn undecided(policy: &Policy, why: &str) -> Reason {
    Reason {
        policy: Some(policy.id.clone()),
        code: reason_code::UNDECIDED.to_owned(),
        message: format!("it can't be decided whether `{}` applies: {why}", policy.id),
    }
}
