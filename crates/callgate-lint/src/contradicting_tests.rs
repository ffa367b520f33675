//! Lint: tests of the same path that no value can pass together.

use crate::condition_source::{EachMode, TestSource};
use crate::lint::Lint;
use crate::lint_context::LintContext;
use crate::lint_inputs::RequiredInput;
use crate::policy_source::PolicySource;
use crate::scalars::{compare_scalars, is_literal};
use crate::subsumption::value_passes;
use callgate::diagnostic::{CONTRADICTING_TESTS, Diagnostic, Diagnostics, Span};
use callgate::json::{JsonType, Value};
use callgate::source::{MappingEntry, YamlNode};

pub(super) static LINT: Lint = Lint { code: &CONTRADICTING_TESTS, needs: RequiredInput::Nothing, check };

/// Maximum number of operators per policy that are compared; further ones are skipped.
const MAX_COMPARED: usize = 32;

fn check(checked: &LintContext<'_>, found: &mut Diagnostics) {
    for written in &checked.policies {
        // With `absent: match` an absent value passes every test.
        let tests: Vec<&TestSource<'_>> = written
            .tests
            .iter()
            .filter(|test| {
                test.is_singular() && test.each != EachMode::None && !test.absence_counts && !test.is_folded()
            })
            .collect();
        let mut operators: Vec<(&TestSource<'_>, &MappingEntry)> = Vec::new();
        for test in &tests {
            operators.extend(test.operators().map(|operator| (*test, operator)));
        }
        for (index, (test, operator)) in operators.iter().enumerate().take(MAX_COMPARED) {
            let before = operators.iter().take(index);
            let excluded = before.rev().find(|(other, earlier)| {
                must_hold_together(written, test, other) && are_exclusive(earlier, operator)
            });
            if let Some((_, earlier)) = excluded {
                found.push(contradiction_diagnostic(written, test, operator, (earlier.key_span, earlier)));
            }
        }
        for test in tests.iter().filter(|test| test.exists() == Some(false)) {
            report_absent_and_tested(written, test, &operators, found);
        }
    }
}

/// Whether two tests have the same path and must hold together.
fn must_hold_together(written: &PolicySource<'_>, a: &TestSource<'_>, b: &TestSource<'_>) -> bool {
    a.text() == b.text()
        && a.exists() != Some(false)
        && b.exists() != Some(false)
        && (written.scopes.implies(a.scope, b.scope) || written.scopes.implies(b.scope, a.scope))
}

fn contradiction_diagnostic(
    written: &PolicySource<'_>,
    test: &TestSource<'_>,
    operator: &MappingEntry,
    (span, earlier): (Span, &MappingEntry),
) -> Diagnostic {
    let message = format!(
        "no value of `{}` passes both `{}` and `{}`",
        test.text(),
        format_operator(earlier),
        format_operator(operator)
    );
    let whole = Span::new(operator.key_span.source, operator.key_span.start(), operator.value.span.end());
    written
        .diagnostic(&CONTRADICTING_TESTS, whole, message)
        .with_label(span, "the other test")
        .with_help("both tests must hold; put alternatives under `any:`")
}

fn report_absent_and_tested(
    written: &PolicySource<'_>,
    test: &TestSource<'_>,
    operators: &[(&TestSource<'_>, &MappingEntry)],
    found: &mut Diagnostics,
) {
    let other = operators.iter().find(|(other, _)| {
        let same = std::ptr::eq(other.node, test.node);
        let path = other.text() == test.text();
        path && (same || (other.exists() != Some(false) && written.scopes.implies(test.scope, other.scope)))
    });
    let (Some((other, operator)), Some(exists)) = (other, test.operator("exists")) else { return };
    let path = test.text();
    let message = match std::ptr::eq(other.node, test.node) {
        true => {
            format!("`{}` is never evaluated, because `{path}` must be absent", format_operator(operator))
        }
        false => format!("`{path}` must be absent and also pass `{}`", format_operator(operator)),
    };
    let diagnostic = written
        .diagnostic(&CONTRADICTING_TESTS, operator.key_span, message)
        .with_label(exists.key_span, "must be absent here")
        .with_help("remove one of the two, or make them separate items under `any:`");
    found.push(diagnostic);
}

fn format_operator(operator: &MappingEntry) -> String {
    format!("{}: {}", operator.key, crate::scalars::display_value(&operator.value.to_json()))
}

/// Whether it is certain that no value passes both operators.
fn are_exclusive(a: &MappingEntry, b: &MappingEntry) -> bool {
    if !is_literal(&a.value) || !is_literal(&b.value) {
        return false;
    }
    no_value_passes(a, b)
        || no_value_passes(b, a)
        || bounds_exclude(a, b)
        || bounds_exclude(b, a)
        || types_exclude(a, b)
}

/// Whether `a` lists all permitted values and none of them passes `b`.
fn no_value_passes(a: &MappingEntry, b: &MappingEntry) -> bool {
    let values: &[YamlNode] = match a.key.as_str() {
        "eq" => std::slice::from_ref(&a.value),
        "in" => a.value.items().unwrap_or_default(),
        _ => return false,
    };
    let is_comparable = match b.key.as_str() {
        "starts_with" | "ends_with" | "contains" => values.iter().all(|value| value.as_str().is_some()),
        "ne" | "not_in" | "eq" | "in" => true,
        "gt" | "gte" | "lt" | "lte" => values.iter().all(|value| compare_scalars(value, &b.value).is_some()),
        _ => false,
    };
    let passes = |value: &YamlNode| match b.key.as_str() {
        // With a value of another type these are undecided, which another lint reports.
        "ne" => value.to_json() != b.value.to_json(),
        "not_in" => !b.value.items().is_some_and(|items| contains(items, value)),
        _ => value_passes(value, b),
    };
    is_comparable && !values.is_empty() && !values.iter().any(passes)
}

fn contains(items: &[YamlNode], value: &YamlNode) -> bool {
    items.iter().any(|item| item.to_json() == value.to_json())
}

/// Whether the lower bound `low` is above the upper bound `high`.
fn bounds_exclude(low: &MappingEntry, high: &MappingEntry) -> bool {
    let Some(order) = compare_scalars(&low.value, &high.value) else { return false };
    match (low.key.as_str(), high.key.as_str()) {
        ("gte", "lte") => order.is_gt(),
        ("gt" | "gte", "lt" | "lte") => order.is_ge(),
        _ => false,
    }
}

/// Whether the operators need values of different types.
fn types_exclude(a: &MappingEntry, b: &MappingEntry) -> bool {
    match (required_types(a), required_types(b)) {
        (Some(a), Some(b)) => !a.iter().any(|json_type| b.contains(json_type)),
        _ => false,
    }
}

fn required_types(operator: &MappingEntry) -> Option<Vec<JsonType>> {
    let of = |node: &YamlNode| JsonType::from_value(&node.to_json());
    Some(match operator.key.as_str() {
        "type" => {
            let words = operator.value.items().unwrap_or(std::slice::from_ref(&operator.value));
            let schema = Value::Array(words.iter().map(YamlNode::to_json).collect());
            crate::argument_lookup::permitted_types(&callgate::json::json!({ "type": schema }))?
        }
        "gt" | "gte" | "lt" | "lte" | "eq" => vec![of(&operator.value)],
        "starts_with" | "ends_with" | "matches" | "inside" | "host" | "domain" => vec![JsonType::String],
        "contains" | "contains_any" => vec![JsonType::String, JsonType::Array],
        "mentioned_in" => vec![JsonType::String, JsonType::Number],
        _ => return None,
    })
}
