//! Normalise: transforms and validations in order, each on the result of the one before; then the names and types of the final
//! arguments are checked.

use std::borrow::Cow;

use super::CallScope;
use super::events::{Change, MatchStatus, SkipReason};
use super::phase_recorder::{Evaluation, PhaseRecorder};
use crate::argument_schema;
use crate::call::{CallView, METHOD_PREFIX, Phase, Reason, Verdict, reason_code};
use crate::json::{JsonType, Value};
use crate::matcher::Truth;
use crate::middleware::{Application, OnUndecided, PolicyKind, apply_steps};
use crate::path::ArgumentNames;
use crate::policy::{ArgumentCheck, Mode, Policy};

/// The arguments after this phase, or as far as it came.
pub(super) struct Normalised<'a> {
    pub(super) input: Cow<'a, Value>,
    /// The first problem with them, if there is one.
    pub(super) failure: Option<Reason>,
}

/// Runs every policy of the phase, also after a failure: gate still evaluates policies that halt.
pub(super) fn run<'c>(
    subject: &CallScope<'_>,
    input: &'c Value,
    view: CallView<'_>,
    recorder: &PhaseRecorder<'_>,
) -> Normalised<'c> {
    if !input.is_object() {
        let failure = Reason {
            policy: None,
            code: reason_code::INVALID_ARGUMENTS.to_owned(),
            message: format!(
                "arguments must be a JSON object, not {}",
                JsonType::from_value(input).with_article()
            ),
        };
        recorder.report_rest(subject, &view, |_| MatchStatus::Skipped(SkipReason::NotAnObject));
        return Normalised { input: Cow::Borrowed(input), failure: Some(failure) };
    }
    let mut input = Cow::Borrowed(input);
    let mut failure = subject.call.has_reserved_name().then(|| Reason {
        policy: None,
        code: reason_code::INVALID_CALL.to_owned(),
        message: format!("a tool's name can't begin with `{METHOD_PREFIX}`"),
    });
    for by in subject.policies(|chain| &chain.normalise) {
        let policy = by.policy;
        let now = CallView { input: &input, ..view };
        let truth = policy.matcher.eval(&now);
        if truth == Truth::No {
            recorder.record(by, &now, Evaluation::new(&truth, None));
            continue;
        }
        let (changed, problem) = act(subject, policy, &truth, now);
        let verdict = match (&changed, &problem) {
            (_, Some(_)) => Verdict::Deny,
            (Some(_), None) => Verdict::Rewrite,
            (None, None) => Verdict::Pass,
        };
        let evaluation = Evaluation {
            change: changed.as_ref().map(|after| Change { before: now.input, after }),
            problem: problem.as_ref().map(|problem| problem.message.as_str()),
            ..Evaluation::new(&truth, Some(verdict))
        };
        recorder.record(by, &now, evaluation);
        if policy.mode == Mode::Shadow {
            continue;
        }
        if let Some(changed) = changed {
            input = Cow::Owned(changed);
        }
        failure = failure.or(problem);
    }
    let failure = failure.or_else(|| subject.check_arguments(&input));
    recorder.report_rest(subject, &CallView { input: &input, ..view }, |_| MatchStatus::Excluded);
    Normalised { input, failure }
}

/// Applies a policy whose condition is not false. Returns the changed arguments, if it changes any, and the
/// problem with them, if there is one. A validation applies when undecided; for a transform neither applying
/// nor skipping is known to be stricter.
fn act(
    subject: &CallScope<'_>,
    policy: &Policy,
    truth: &Truth,
    view: CallView<'_>,
) -> (Option<Value>, Option<Reason>) {
    let fail = |code: &str, message: String| {
        Some(Reason { policy: Some(policy.id.clone()), code: code.to_owned(), message })
    };
    match (&policy.kind, policy.kind.application(truth, Phase::Normalise)) {
        (_, Application::Undecided(OnUndecided::Refuse, why)) => {
            let message = format!("it is undecided whether `{}` applies: {why}", policy.id);
            (None, fail(reason_code::UNDECIDED, message))
        }
        (PolicyKind::Validate(validate), Application::Yes | Application::Undecided(..)) => {
            (None, validate.check(&policy.id, view.input, subject.tool).err())
        }
        (PolicyKind::Transform(transform), Application::Yes) => {
            let mut changed = view.input.clone();
            match apply_steps(&transform.input, &view, &view, &mut changed) {
                Ok(true) => (Some(changed), None),
                Ok(false) => (None, None),
                // The steps that succeeded are kept, so that policies that halt see the form that they expect.
                Err(problem) => (Some(changed), fail(reason_code::TRANSFORM_FAILED, problem)),
            }
        }
        _ => (None, None),
    }
}

impl CallScope<'_> {
    /// Why policies can't be evaluated over these arguments: a name that a server could mistake for one that
    /// policies read, a value of another type than the tool's schema declares, or a schema that this build can't check.
    pub(super) fn check_arguments(&self, input: &Value) -> Option<Reason> {
        let invalid =
            |code: &str, message: String| Some(Reason { policy: None, code: code.to_owned(), message });
        let declared = self.tool.and_then(|tool| tool.schema.as_ref());
        if let (Some(tool), Some(Err(error))) = (self.tool, declared)
            && error.is_unsupported()
        {
            let message = format!("the tool `{}` has a schema, but {error}", tool.descriptor.name);
            return invalid(reason_code::SCHEMA_UNAVAILABLE, message);
        }
        let check = self.argument_check();
        let reads = || self.chains.iter().map(|chain| &chain.argument_reads);
        if check != ArgumentCheck::Valid && reads().all(ArgumentNames::is_empty) {
            return None;
        }
        let declares = |path: &[_], name: &str| {
            declared.is_some_and(|schema| schema.as_ref().is_ok_and(|schema| schema.declares(path, name)))
        };
        let is_certain = match &*self.chains {
            [chain] => chain.name_filter.is_certain(input),
            // A name that one layer reads is no mistake to another one.
            _ => false,
        };
        if !is_certain && let Some(misread) = ArgumentNames::find_misread(reads(), input, &declares) {
            return invalid(reason_code::AMBIGUOUS_ARGUMENT, misread.to_string());
        }
        let schema = match (check, declared) {
            (ArgumentCheck::Unchecked, _) => None,
            (ArgumentCheck::Typed, _) => self.tool.and_then(|tool| tool.types.as_ref()),
            (ArgumentCheck::Valid, None) => None,
            (ArgumentCheck::Valid, Some(Ok(schema))) => Some(schema),
            (ArgumentCheck::Valid, Some(Err(error))) => {
                let message = format!("the tool's own schema can't be used: {error}");
                return invalid(reason_code::SCHEMA_UNAVAILABLE, message);
            }
        };
        let violations = schema?.check(input).err()?;
        invalid(reason_code::SCHEMA_VIOLATION, argument_schema::summarize(&violations))
    }

    /// The argument check of the layers: the strictest of them, and types if the bundle does not set one.
    fn argument_check(&self) -> ArgumentCheck {
        let mut settings = self.layers.iter().map(|layer| layer.defaults().arguments);
        let of_bundle = settings.next().flatten().unwrap_or(ArgumentCheck::Typed);
        settings.flatten().fold(of_bundle, ArgumentCheck::max)
    }
}
