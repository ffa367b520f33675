//! The phrases of policies: what each one did to the call, and the reason of the outcome.

use std::time::Duration;

use super::condition_phrases::explain_condition;
use super::explanation::Explanation;
use super::step::{MatchResult, PolicyStep};
use crate::call::{OutcomeKind, Verdict, method_name, reason_code};
use crate::durations::format;
use crate::json::Value;
use crate::kernel::SkipReason;

/// The end of the call.
#[derive(Clone, Copy)]
pub(super) struct CallEnd {
    pub(super) outcome: OutcomeKind,
    /// Whether its execution began.
    pub(super) was_executed: bool,
    pub(super) attempts: Option<u32>,
}

/// Describes the effect of a policy, or why it had none.
pub(super) fn describe_step(step: &PolicyStep, ended: Option<CallEnd>) -> String {
    let why = step.condition.as_ref().map(explain_condition).filter(|why| !why.is_empty());
    let words = match (step.heard, step.verdict) {
        (MatchResult::NotAsked, _) => describe_skip(step.skip_reason).to_owned(),
        (MatchResult::OtherTool | MatchResult::OtherServer, _) => {
            let patterns: Vec<String> =
                step.patterns.iter().map(|pattern| format!("`{}`", pattern.text)).collect();
            let of = if step.heard == MatchResult::OtherTool { "for" } else { "for the server" };
            format!("{of} {}", patterns.join(", "))
        }
        (MatchResult::NoMatch, _) => why.unwrap_or_default(),
        (MatchResult::Matched | MatchResult::Absent, Some(verdict)) => {
            let did = describe_effect(step, verdict, ended);
            why.map_or(did.clone(), |why| format!("{did}: {why}"))
        }
        (MatchResult::Undecided, Some(verdict)) => {
            let did = describe_effect(step, verdict, ended);
            format!("{did}, because its match is undecided: {}", why.unwrap_or_default())
        }
        (MatchResult::Undecided, None) => format!(
            "its match is undecided, and then a policy of kind `{}` does not apply: {}",
            step.kind,
            why.unwrap_or_default()
        ),
        (MatchResult::Matched | MatchResult::Absent, None) => {
            why.unwrap_or_else(|| "it had no effect".to_owned())
        }
    };
    if step.shadow && step.verdict.is_some() {
        format!("in shadow mode, without effect: {words}")
    } else {
        words
    }
}

fn describe_skip(why: Option<SkipReason>) -> &'static str {
    match why {
        None => "not evaluated",
        Some(SkipReason::NotAnObject) => "not evaluated: the arguments are not a JSON object",
        Some(SkipReason::InvalidArguments) => {
            "not evaluated: the arguments are invalid, and it is not stricter than that"
        }
        Some(SkipReason::NotRun) => "not evaluated: the call did not get that far",
        Some(SkipReason::NoError) => "not evaluated: there was no error",
        Some(SkipReason::OtherError) => "not evaluated: it recovers other errors",
        Some(SkipReason::AttemptsExhausted) => "not evaluated: its recovery attempts are used up",
        Some(SkipReason::RecoveredBefore) => "not evaluated: the error is already recovered",
        Some(SkipReason::NoResult) => "not evaluated: there is no result of a real tool",
        Some(SkipReason::Failed) => "its conditions could not be evaluated, so it applies",
    }
}

/// Describes the effect of a policy that takes part, as a predicate.
fn describe_effect(step: &PolicyStep, verdict: Verdict, ended: Option<CallEnd>) -> String {
    let undecided = step.heard == MatchResult::Undecided;
    let problem = || step.problem.as_deref().filter(|_| !undecided);
    let because = |text: &str| match problem() {
        Some(problem) => format!("{text}: {problem}"),
        None => text.to_owned(),
    };
    let values = match step.changes.len() {
        1 => "1 value".to_owned(),
        many => format!("{many} values"),
    };
    let text = match (step.kind, verdict) {
        ("transform", Verdict::Deny) if undecided => "stops the call",
        ("transform", Verdict::Deny) => return because("can't be applied"),
        ("transform", Verdict::Rewrite) if step.problem.is_some() => return because("withholds the result"),
        ("transform", Verdict::Rewrite) => return format!("changes {values}"),
        ("transform", _) => "changes nothing",
        ("validate", Verdict::Pass) => "finds the arguments valid",
        ("validate", _) => return because("finds the arguments invalid"),
        ("deny", Verdict::Pass) => return because("does not deny"),
        ("deny", _) => return because("denies"),
        ("require", Verdict::Pass) => "finds the values that it requires",
        ("require", _) => return because("denies"),
        ("halt", Verdict::Pass) => return because("does not halt the run"),
        ("halt", _) => return because("halts the run"),
        ("approval", Verdict::Pass) if step.problem.is_some() => return because("requires no approval"),
        ("approval", Verdict::Pass) => "is approved",
        ("approval", _) => return because("requires approval"),
        ("allow", _) => "permits",
        ("respond", _) if ended.is_some_and(|ended| ended.outcome != OutcomeKind::Answered) => {
            "permits, and would have answered"
        }
        ("respond", _) => "answers in place of the tool",
        ("rate_limit" | "concurrency", verdict) => return describe_limit(step, verdict, ended),
        ("cache" | "around" | "retry" | "timeout", verdict) => {
            return describe_wrapper(step.kind, verdict, ended);
        }
        ("recover", _) => "turns the error into a message for the model",
        ("redact", _) if step.changes.is_empty() => "redacts what it finds",
        ("redact", _) => return format!("redacts {values}"),
        ("label", _) if undecided => "makes its labels unknown",
        ("label", _) => "labels the session",
        ("fact", _) if undecided => "makes its fact unknown",
        ("fact", _) => match &step.fact {
            Some(fact) => return fact.describe(),
            None => "stores a fact from the call",
        },
        ("audit", _) => "records the call",
        ("budget", _) => "limits the run",
        _ => "acts on the run",
    };
    text.to_owned()
}

/// Describes the effect of a policy that wraps the execution.
fn describe_wrapper(kind: &str, verdict: Verdict, ended: Option<CallEnd>) -> String {
    use OutcomeKind::{Denied, Halted, Invalid, Suspended};
    let executed = ended.filter(|ended| ended.was_executed);
    let text = match (kind, verdict, executed) {
        (_, Verdict::Deny, None) => "stops the call",
        ("cache", Verdict::Answer, _) => "answers from the cache",
        ("cache", _, Some(_)) => "has no entry for this call",
        ("cache", _, None) => "would be looked up",
        // At the same priority, a cache wraps these.
        ("retry" | "timeout", Verdict::Pass, Some(CallEnd { outcome: OutcomeKind::Cached, .. })) => {
            "is not needed, because a cache answers"
        }
        (
            "retry" | "timeout",
            Verdict::Pass,
            Some(CallEnd { outcome: Denied | Suspended | Halted | Invalid, .. }),
        ) => "has no effect, because the tool is not called",
        ("retry", _, Some(CallEnd { attempts: Some(attempts), .. })) => {
            return format!("retries: the tool was called {attempts} times");
        }
        ("retry", _, Some(_)) => "does not retry",
        ("retry", _, None) => "would retry the call if it fails",
        ("timeout", Verdict::Deny, Some(_)) => "times out",
        ("timeout", _, Some(_)) => "does not time out",
        ("timeout", _, None) => "would limit the time of the tool",
        (_, _, Some(_)) => "wraps the execution in its script",
        (_, _, None) => "would wrap the execution in its script",
    };
    text.to_owned()
}

fn describe_limit(step: &PolicyStep, verdict: Verdict, ended: Option<CallEnd>) -> String {
    let Some(limit) = &step.limit else {
        return match verdict {
            Verdict::Pass if ended.is_none() => "would be checked".to_owned(),
            Verdict::Pass => "acquires nothing, because the call does not run".to_owned(),
            _ => match &step.problem {
                Some(problem) => format!("stops the call: {problem}"),
                None => "stops the call".to_owned(),
            },
        };
    };
    let left = limit.left.as_ref().map(|left| format!(", {} left", format_amount(left))).unwrap_or_default();
    let real = match &limit.real_cost {
        None => String::new(),
        Some(Value::Null) => "; its real cost cannot be read, so it takes all that is left".to_owned(),
        Some(Value::String(withheld)) => format!("; its real cost is {withheld}"),
        Some(cost) => format!("; its real cost is {cost}"),
    };
    match (limit.enough, limit.taken) {
        (true, true) => format!("acquires {} of `{}`{left}{real}", limit.cost, limit.limit),
        (true, false) => format!("would have acquired {} of `{}`{left}", limit.cost, limit.limit),
        (false, true) => {
            format!("is exceeded, and approved: acquires {} of `{}`{left}{real}", limit.cost, limit.limit)
        }
        (false, false) if verdict == Verdict::Suspend => {
            format!("is exceeded and requires approval: {} needed of `{}`{left}", limit.cost, limit.limit)
        }
        (false, false) => {
            let again = limit.retry_after_ms.map(|after| format(Duration::from_millis(after)));
            let again = again.map(|after| format!("; retry in {after}")).unwrap_or_default();
            format!("is exceeded: {} needed of `{}`{left}{again}", limit.cost, limit.limit)
        }
    }
}

/// An amount with at most two decimals, rounded down: limits that refill over time have more digits than are useful.
fn format_amount(left: &Value) -> String {
    let text = left.to_string();
    match text.split_once('.') {
        Some((whole, rest)) => match rest.get(..2).unwrap_or(rest).trim_end_matches('0') {
            "" => whole.to_owned(),
            rest => format!("{whole}.{rest}"),
        },
        None => text,
    }
}

/// Explains why the call ended as it did, by the decisive policy or the default.
pub(super) fn describe_conclusion(explanation: &Explanation) -> String {
    let reason = &explanation.reason;
    if let Some(step) = explanation.decisive() {
        return format!("`{}` {}", step.policy, step.words);
    }
    let setting = match method_name(&explanation.call.tool) {
        Some(_) => "defaults.unmatched_methods",
        None => "defaults.unmatched",
    };
    match (reason.code.as_str(), explanation.unmatched.first()) {
        (reason_code::UNMATCHED, Some(unlifted)) => {
            let layer = layer_name(unlifted.layer);
            format!("no policy in {layer} permits it, and `{setting}` there is `{}`", unlifted.says)
        }
        (reason_code::UNMATCHED, None) => {
            format!("no policy decides it, and `{setting}` is `allow`")
        }
        (reason_code::SESSION_HALTED, _) => {
            format!("the session is already halted, so no policy was evaluated: {}", reason.message)
        }
        _ => reason.message.clone(),
    }
}

/// The name of a layer, for people.
pub(super) fn layer_name(layer: u32) -> &'static str {
    match layer {
        0 => "the bundle",
        1 => "the prompt's policies",
        2 => "the call's policies",
        _ => "a lower layer",
    }
}
