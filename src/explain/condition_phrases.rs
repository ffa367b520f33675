//! The phrases of conditions: an explained condition → which tests decided it, with the values on both sides.

use super::condition::{
    ConditionForm, ConditionTest, ElementReason, ExplainedCondition, ExplainedElement, ExplainedElements,
    FoundValue, TestOperator, TruthValue,
};
use super::explained_value::ExplainedValue;
use crate::json::Value;
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
        (ConditionForm::Shell, TruthValue::Absent) => {
            let path = leaf.shell.as_ref().map(|shell| shell.path.as_str()).unwrap_or_default();
            format!("`{path}` is absent, which counts as matching")
        }
        (ConditionForm::Shell, truth) => {
            leaf.shell.as_ref().map_or_else(String::new, |shell| shell.describe(truth))
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
    let options: Vec<String> = test.options.iter().map(|option| format!("`{option}`")).collect();
    match options.join(" and ") {
        options if options.is_empty() => operators.join(" and "),
        options => format!("{} with {options}", operators.join(" and ")),
    }
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
