//! The phrases of explanations: the results of tests, the effects of policies, and the reason of the outcome.

use std::time::Duration;

use super::condition::{
    ConditionForm, ConditionTest, ElementReason, ExplainedCondition, ExplainedElement, ExplainedElements,
    FoundValue, TestOperator, TruthValue,
};
use super::explained_value::ExplainedValue;
use super::explanation::Explanation;
use super::step::{MatchResult, PolicyStep};
use crate::call::{OutcomeKind, Verdict, reason_code};
use crate::durations::format;
use crate::json::Value;
use crate::kernel::SkipReason;
use crate::safe_text;

/// The maximum number of listed reasons; more are only counted.
const MAX_REASONS: usize = 3;
/// The maximum number of listed values; more are only counted.
const MAX_VALUES: usize = 5;

/// Explains the result of a condition by its deciding tests, with the values on both sides.
pub(super) fn explain_condition(condition: &ExplainedCondition) -> String {
    let deciding = condition.decisive_parts();
    let reasons = deciding.iter().take(MAX_REASONS).map(|leaf| explain_leaf(leaf, condition.truth));
    let mut reasons: Vec<String> = reasons.collect();
    if let Some(more @ 1..) = deciding.len().checked_sub(MAX_REASONS) {
        reasons.push(format!("and {more} more"));
    }
    reasons.join("; ")
}

fn explain_leaf(leaf: &ExplainedCondition, whole: TruthValue) -> String {
    let words = match (leaf.form, leaf.truth) {
        (ConditionForm::All, _) => "it has no conditions".to_owned(),
        (ConditionForm::Any, _) => "its `any` is empty".to_owned(),
        (_, TruthValue::Undecided) => leaf.why.clone().unwrap_or_default(),
        (ConditionForm::Expr, TruthValue::Absent) => {
            let text = format_expression(leaf.expr.as_deref().unwrap_or_default());
            format!("`{text}` is open: a value that it tests is absent, which counts as matching")
        }
        (ConditionForm::Expr, truth) => {
            let word = if truth == TruthValue::Yes { "true" } else { "false" };
            let text = format_expression(leaf.expr.as_deref().unwrap_or_default());
            format!("`{text}` is {word}{}", format_parts(&leaf.values))
        }
        (ConditionForm::Every | ConditionForm::AnyOf | ConditionForm::None, _) => {
            leaf.elements.as_ref().map_or_else(String::new, explain_elements)
        }
        (_, truth) => leaf.test.as_ref().map_or_else(String::new, |test| explain_test(test, truth)),
    };
    let turned =
        matches!((whole, leaf.truth), (TruthValue::Yes, TruthValue::No) | (TruthValue::No, TruthValue::Yes));
    if turned { format!("{words} (under `not`)") } else { words }
}

/// The values of the parts of an expression, in parentheses. Empty if there are none.
pub(super) fn format_parts(values: &[ExplainedValue]) -> String {
    let parts = values.iter().map(|part| format!("`{}` is {}", part.text, format_value(&part.value)));
    match parts.collect::<Vec<_>>().join(", ") {
        parts if parts.is_empty() => parts,
        parts => format!(" ({parts})"),
    }
}

fn explain_elements(elements: &ExplainedElements) -> String {
    let path = &elements.path;
    match (&elements.deciding, elements.count) {
        (Some(ExplainedElement { number, value, truth, because }), _) => {
            let verb = match truth {
                TruthValue::Yes => "passes",
                TruthValue::No => "does not pass",
                TruthValue::Absent | TruthValue::Undecided => "lacks a value that is needed",
            };
            let reasons: Vec<String> = because.iter().take(MAX_REASONS).map(format_reason).collect();
            let reasons =
                if reasons.is_empty() { String::new() } else { format!(" {}", reasons.join(" and ")) };
            format!("element {number} of `{path}` {verb}{reasons}: {}", format_value(value))
        }
        (None, None | Some(0)) => format!("`{path}` has no elements"),
        (None, Some(1)) => format!("the only element of `{path}` does not decide otherwise"),
        (None, Some(count)) => format!("none of the {count} elements of `{path}` decides otherwise"),
    }
}

/// What decided an element, as written.
fn format_reason(reason: &ElementReason) -> String {
    let operators: Vec<String> =
        reason.operators.iter().map(|operator| format!("`{}`", safe_text::truncate(operator))).collect();
    let operators = operators.join(" and ");
    match reason.operators.is_empty() {
        true => format!("`{}`", format_expression(&reason.path)),
        false if reason.is_about_element() => operators,
        false => format!("{operators} of `{}`", reason.path),
    }
}

fn explain_test(test: &ConditionTest, truth: TruthValue) -> String {
    let path = &test.path;
    let operators = || test.operators.iter().filter(|operator| operator.key != "exists");
    match (truth, test.found.as_slice()) {
        (TruthValue::Absent, []) => format!("`{path}` is absent, which counts as matching (`absent: match`)"),
        (_, []) => format!("`{path}` is absent"),
        _ if operators().next().is_none() => format!("`{path}` is present"),
        (TruthValue::Absent, _) => {
            match operators().find(|operator| operator.truth == Some(TruthValue::Absent)) {
                Some(TestOperator { operand_path: Some(operand), .. }) => {
                    format!(
                        "`{operand}`, which `{path}` is compared with, is absent, which counts as matching"
                    )
                }
                _ => format!("the operand of `{path}` is absent, which counts as matching"),
            }
        }
        (truth, [one]) if test.count == 1 => explain_value(&format!("`{path}`"), one, test, truth),
        (truth, found) => explain_values(test, truth, found),
    }
}

/// The operators with this result.
fn operators_with_result(test: &ConditionTest, truth: TruthValue) -> String {
    let all = || test.operators.iter().filter(|operator| operator.key != "exists");
    let has_result = |operator: &&TestOperator| operator.truth.is_none_or(|result| result == truth);
    let mut operators: Vec<String> = all().filter(has_result).map(format_operator).collect();
    if operators.is_empty() {
        operators = all().map(format_operator).collect();
    }
    operators.join(" and ")
}

fn explain_value(subject: &str, found: &FoundValue, test: &ConditionTest, truth: TruthValue) -> String {
    let value = format_value(&found.value);
    let absent = |operator: &&TestOperator| operator.operand_path.is_some() && operator.operand.is_null();
    if let Some(TestOperator { key, operand_path: Some(path), .. }) = test.operators.iter().find(absent)
        && truth == TruthValue::No
    {
        return format!("{subject} is {value}, and `{path}`, which `{key}` compares it with, is absent");
    }
    // `each: none` inverts the result of the operators.
    let holds = (truth == TruthValue::Yes) != (test.each == "none");
    match holds {
        true => format!("{subject} is {value}: {}", operators_with_result(test, truth)),
        false => format!("{subject} is {value}, not {}", operators_with_result(test, truth)),
    }
}

fn explain_values(test: &ConditionTest, truth: TruthValue, found: &[FoundValue]) -> String {
    let path = &test.path;
    let one = |truth: TruthValue| {
        let value = found.iter().find(|found| found.truth == truth);
        value.map_or_else(String::new, |found| {
            format!("value {} of `{path}` is {}", found.index + 1, format_value(&found.value))
        })
    };
    let operators = operators_with_result(test, truth);
    let mut listed: Vec<String> =
        found.iter().take(MAX_VALUES).map(|found| format_value(&found.value)).collect();
    if test.count > listed.len() {
        listed.push(format!("{} more", test.count - listed.len()));
    }
    let listed = listed.join(", ");
    match (test.each, truth) {
        ("any", TruthValue::Yes) | ("none", TruthValue::No) => {
            format!("{}: {operators}", one(TruthValue::Yes))
        }
        ("every", TruthValue::No) => {
            format!("{}, not {operators}", one(TruthValue::No))
        }
        ("every", _) => format!("every value of `{path}` is {operators}: {listed}"),
        _ => format!("no value of `{path}` is {operators}: {listed}"),
    }
}

/// An operator as written, with the value of an operand that is read from the call.
fn format_operator(operator: &TestOperator) -> String {
    match &operator.operand_path {
        Some(path) if operator.operand.is_null() => format!("`{}: {path}` (absent)", operator.key),
        Some(path) => format!("`{}: {path}` ({})", operator.key, format_value(&operator.operand)),
        None => format!("`{}: {}`", operator.key, format_value(&operator.operand)),
    }
}

/// A value on one line of a message.
pub(super) fn format_value(value: &Value) -> String {
    safe_text::truncate(&value.to_string())
}

/// An expression, which may be written on several lines, on one line.
fn format_expression(text: &str) -> String {
    safe_text::truncate(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

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
        ("fact", _) => "stores a fact from the call",
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
    match (reason.code.as_str(), explanation.unmatched.first()) {
        (reason_code::UNMATCHED, Some(unlifted)) => {
            let layer = layer_name(unlifted.layer);
            format!("no policy in {layer} permits it, and `defaults.unmatched` there is `{}`", unlifted.says)
        }
        (reason_code::UNMATCHED, None) => {
            "no policy decides it, and `defaults.unmatched` is `allow`".to_owned()
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
