//! Subsumption: whether a policy is certain to match every call that another one matches.

use std::cmp::Ordering;

use crate::condition_source::{EachMode, TestSource};
use crate::policy_source::PolicySource;
use crate::scalars::{compare_scalars, is_literal};
use callgate::json::JsonType;
use callgate::source::{MappingEntry, YamlNode};

/// Whether `wide` is certain to match every call that `narrow` matches.
pub(super) fn covers(wide: &PolicySource<'_>, narrow: &PolicySource<'_>) -> bool {
    let (wide_calls, narrow_calls) = (&wide.policy.matcher, &narrow.policy.matcher);
    wide_calls.covers_names_of(narrow_calls)
        && wide.required_conditions.iter().all(|demand| is_implied(wide, demand, narrow))
}

fn is_implied(wide: &PolicySource<'_>, demand: &YamlNode, narrow: &PolicySource<'_>) -> bool {
    // The result for an absent value depends on the policy's polarity. An expression may name a condition that tests values.
    let has_tests = demand.as_str().is_some() || is_test(demand);
    let same_reading = wide.polarity() == narrow.polarity() || !has_tests;
    if same_reading && narrow.required_conditions.iter().any(|other| other.to_json() == demand.to_json()) {
        return true;
    }
    let of = |written: &'_ PolicySource<'_>, node: &YamlNode| {
        written.tests.iter().position(|test| std::ptr::eq(test.node, node))
    };
    let Some(wanted) = of(wide, demand).and_then(|index| wide.tests.get(index)) else { return false };
    narrow.required_tests().filter(|test| test.positive).any(|test| test_implies(test, wanted))
}

/// Whether a condition is a test with operators.
fn is_test(condition: &YamlNode) -> bool {
    condition.get("path").is_some() || condition.entries().is_some_and(|entries| entries.len() > 1)
}

/// Whether a value that passes one test is certain to pass the other.
fn test_implies(given: &TestSource<'_>, wanted: &TestSource<'_>) -> bool {
    let single = given.is_singular() && given.each == EachMode::Any && wanted.each == EachMode::Any;
    if !single || given.text() != wanted.text() || given.node.get("base").is_some() {
        return false;
    }
    if given.is_folded() || !given.has_options_of(wanted) {
        return false;
    }
    // An absent value may pass the one test and not the other.
    if given.exists() == Some(false) || (given.absence_counts && !wanted.absence_counts) {
        return false;
    }
    let there = match wanted.exists() {
        Some(wanted) => wanted && !given.absence_counts,
        None => true,
    };
    there && wanted.operators().all(|wanted| given.operators().any(|given| operator_implies(given, wanted)))
}

fn operator_implies(given: &MappingEntry, wanted: &MappingEntry) -> bool {
    if given.key == wanted.key && given.value.to_json() == wanted.value.to_json() {
        return true;
    }
    if !is_literal(&given.value) || !is_literal(&wanted.value) {
        return false;
    }
    match given.key.as_str() {
        "eq" => value_passes(&given.value, wanted),
        "in" => given.value.items().is_some_and(|items| items.iter().all(|item| value_passes(item, wanted))),
        bound => compare_scalars(&given.value, &wanted.value).is_some_and(|order| {
            match (bound, wanted.key.as_str()) {
                ("gt", "gt" | "gte") | ("gte", "gte") => order.is_ge(),
                ("gte", "gt") => order.is_gt(),
                ("lt", "lt" | "lte") | ("lte", "lte") => order.is_le(),
                ("lte", "lt") => order.is_lt(),
                ("starts_with" | "ends_with" | "contains", _) => string_implies(given, wanted),
                _ => false,
            }
        }),
    }
}

fn string_implies(given: &MappingEntry, wanted: &MappingEntry) -> bool {
    let (Some(given_text), Some(text)) = (given.value.as_str(), wanted.value.as_str()) else { return false };
    match (given.key.as_str(), wanted.key.as_str()) {
        ("starts_with", "starts_with") => given_text.starts_with(text),
        ("ends_with", "ends_with") => given_text.ends_with(text),
        _ => false,
    }
}

/// Whether a literal is certain to pass an operator with a literal operand.
pub(super) fn value_passes(value: &YamlNode, wanted: &MappingEntry) -> bool {
    let operand = &wanted.value;
    let same_type =
        |other: &YamlNode| JsonType::from_value(&other.to_json()) == JsonType::from_value(&value.to_json());
    let equal = |other: &YamlNode| other.to_json() == value.to_json();
    let ordered = |matches: fn(Ordering) -> bool| compare_scalars(value, operand).is_some_and(matches);
    let text = |matches: fn(&str, &str) -> bool| {
        let texts = operand.items().unwrap_or(std::slice::from_ref(operand));
        value
            .as_str()
            .is_some_and(|value| texts.iter().filter_map(YamlNode::as_str).any(|text| matches(value, text)))
    };
    match wanted.key.as_str() {
        "eq" => equal(operand),
        "ne" => same_type(operand) && !equal(operand),
        "in" => operand.items().is_some_and(|items| items.iter().any(equal)),
        "not_in" => {
            operand.items().is_some_and(|items| items.iter().any(same_type) && !items.iter().any(equal))
        }
        "gt" => ordered(Ordering::is_gt),
        "gte" => ordered(Ordering::is_ge),
        "lt" => ordered(Ordering::is_lt),
        "lte" => ordered(Ordering::is_le),
        "starts_with" => text(|value, text| value.starts_with(text)),
        "ends_with" => text(|value, text| value.ends_with(text)),
        "contains" => text(|value, text| value.contains(text)),
        _ => false,
    }
}
