//! Normalise: transforms and validations in order, each seeing what the one before it left.

use std::borrow::Cow;

use super::Subject;
use super::hearing::{Answer, Change, Said, Unasked};
use super::trace::Trace;
use crate::call::{CallView, Phase, Reason, Verdict, reason_code};
use crate::json::{JsonType, Value};
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
    let hearing = subject.hearing(Phase::Normalise);
    if !input.is_object() {
        let failure = Reason {
            policy: None,
            code: reason_code::INVALID_ARGUMENTS.to_owned(),
            message: format!("arguments are a JSON object, these are {}", JsonType::of(input).with_article()),
        };
        hearing.rest(subject, &view, |_| Said::Unasked(Unasked::NoObject));
        return Normalised { input: Cow::Borrowed(input), failure: Some(failure) };
    }
    let mut input = Cow::Borrowed(input);
    let mut failure = None;
    for (reference, policy) in subject.policies(|chain| &chain.normalise) {
        let now = CallView { input: &input, ..view };
        let truth = policy.matcher.eval(&now);
        if truth == Truth::No {
            hearing.asked((reference, policy), &now, Said::Truth(&truth), None);
            continue;
        }
        let open = matches!(truth, Truth::Undecided(_));
        let (changed, problem) = act(subject, policy, &truth, now);
        let verdict = match (&changed, &problem) {
            (_, Some(_)) => Verdict::Deny,
            (Some(_), None) => Verdict::Rewrite,
            (None, None) => Verdict::Pass,
        };
        trace.note(reference, Phase::Normalise, verdict, open);
        let answer = Answer {
            verdict: Some(verdict),
            change: changed.as_ref().map(|after| Change { before: now.input, after }),
            problem: problem.as_ref().map(|problem| problem.message.as_str()),
        };
        hearing.asked((reference, policy), &now, Said::Truth(&truth), answer);
        if policy.mode == Mode::Shadow {
            continue;
        }
        if let Some(changed) = changed {
            input = Cow::Owned(changed);
        }
        failure = failure.or(problem);
    }
    let failure = failure.or_else(|| subject.check_arguments(&input));
    hearing.rest(subject, &CallView { input: &input, ..view }, |_| Said::LeftOut);
    Normalised { input, failure }
}

/// What a policy that does not certainly not match makes of the arguments, if it changes them, and what does not fit. A
/// check is made when in doubt. Of a transform neither applying nor leaving out is known to be the stricter.
fn act(
    subject: &Subject<'_>,
    policy: &Policy,
    truth: &Truth,
    view: CallView<'_>,
) -> (Option<Value>, Option<Reason>) {
    let fail = |code: &str, message: String| {
        Some(Reason { policy: Some(policy.id.clone()), code: code.to_owned(), message })
    };
    match (&policy.kind, truth) {
        (Kind::Validate(validate), _) => (None, validate.check(&policy.id, view.input, subject.tool).err()),
        (Kind::Transform(_), Truth::Undecided(why)) => {
            let message = format!("it can't be decided whether `{}` applies: {why}", policy.id);
            (None, fail(reason_code::UNDECIDED, message))
        }
        // What is absent gives a transform nothing to decide on.
        (Kind::Transform(transform), Truth::Yes) => {
            let mut changed = view.input.clone();
            match apply_steps(&transform.input, &view, &view, &mut changed) {
                Ok(true) => (Some(changed), None),
                Ok(false) => (None, None),
                // The steps that could be made stand, so that what halts is found in the form it is looked for.
                Err(problem) => (Some(changed), fail(reason_code::TRANSFORM_FAILED, problem)),
            }
        }
        _ => (None, None),
    }
}
