//! Candidate values of a field: what a test compares it with, and the neighbours of that.

use crate::pattern_examples::examples_of_regex;
use callgate::durations;
use callgate::json::{Number, Value, json};
use callgate::source::YamlNode;
use jiff::Timestamp;

/// The most values that are taken from one list.
const MAX_ITEMS: usize = 20;
/// The longest string that a test of `length` gets.
const MAX_LENGTH: u64 = 1_000;

/// Returns values that pass or just fail a test with this operator, a passing one first. Empty for an operand that is read from the call.
pub(crate) fn candidates_of_operator(operator: &str, operand: &YamlNode, now: Timestamp) -> Vec<Value> {
    let is_read =
        operand.get("path").is_some() || operand.get("expr").is_some() || operand.get("data").is_some();
    if is_read {
        return Vec::new();
    }
    let value = operand.to_json();
    let items: Vec<&Value> = match &value {
        Value::Array(items) => items.iter().take(MAX_ITEMS).collect(),
        one => vec![one],
    };
    let texts = || items.iter().filter_map(|item| item.as_str());
    match operator {
        "gt" => ordered(&value, [1, 0, -1]),
        "gte" => ordered(&value, [0, 1, -1]),
        "lt" => ordered(&value, [-1, 0, 1]),
        "lte" => ordered(&value, [0, -1, 1]),
        "eq" | "in" => items.iter().flat_map(|item| with_neighbours(item)).collect(),
        "ne" | "not_in" => {
            let others = items.first().into_iter().flat_map(|item| with_neighbours(item)).skip(1);
            others.chain(items.iter().map(|item| (*item).clone())).collect()
        }
        "contains" | "contains_any" => {
            let in_lists = items.iter().map(|item| json!([(*item).clone()]));
            texts().map(Value::from).chain(in_lists).collect()
        }
        "starts_with" => texts().flat_map(|text| [json!(format!("{text}x")), json!(text)]).collect(),
        "ends_with" => texts().flat_map(|text| [json!(format!("x{text}")), json!(text)]).collect(),
        "matches" => texts().flat_map(examples_of_regex).map(Value::from).collect(),
        "inside" => {
            let paths = texts().map(|text| json!(format!("{}/x", text.trim_end_matches('/'))));
            paths.chain([json!("/etc/passwd"), json!("/")]).collect()
        }
        "host" => {
            let hosts = texts().map(|text| json!(format!("https://{}/", text.replace('*', "www"))));
            hosts.chain([json!("https://other.example/")]).collect()
        }
        "domain" => {
            let domains = texts().map(|text| json!(format!("ana@{}", text.replace('*', "www"))));
            domains.chain([json!("eve@other.example")]).collect()
        }
        "type" => texts().filter_map(value_of_type).collect(),
        "length" => lengths(&value),
        "detects" => ["ana@example.com", "4111 1111 1111 1111", "078-05-1120", "DE89370400440532013000"]
            .map(Value::from)
            .into(),
        "within" | "older_than" => times_around(&value, now),
        _ => Vec::new(),
    }
}

/// Returns a value with its neighbours: for a number one less and one more, for a string a longer one, for a boolean the other one.
pub(crate) fn with_neighbours(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(_) => ordered(value, [0, 1, -1]),
        Value::String(text) => vec![value.clone(), json!(format!("{text}x"))],
        Value::Bool(flag) => vec![value.clone(), json!(!flag)],
        other => vec![other.clone()],
    }
}

/// The values that every field is tried with: other types, and strings that detectors and addresses do not match.
pub(crate) fn common_values() -> Vec<Value> {
    vec![json!("x"), json!(1), json!(true), Value::Null, json!([]), json!({})]
}

/// Returns a value of a JSON type by its name.
pub(crate) fn value_of_type(name: &str) -> Option<Value> {
    Some(match name {
        "null" => Value::Null,
        "boolean" => json!(true),
        "number" => json!(1.5),
        "integer" => json!(1),
        "string" | "text" => json!("x"),
        "array" => json!([]),
        "object" => json!({}),
        _ => return None,
    })
}

/// A number and its neighbours in this order; a string and a longer one.
fn ordered(value: &Value, steps: [i64; 3]) -> Vec<Value> {
    match value {
        Value::Number(number) => steps.into_iter().filter_map(|step| neighbour(number, step)).collect(),
        Value::String(text) => vec![json!(format!("{text}x")), value.clone(), json!("")],
        _ => Vec::new(),
    }
}

fn neighbour(number: &Number, step: i64) -> Option<Value> {
    if step == 0 {
        return Some(Value::Number(number.clone()));
    }
    let whole = number.as_i64().and_then(|whole| whole.checked_add(step)).map(Number::from);
    whole.or_else(|| Number::from_f64(number.as_f64()? + step as f64)).map(Value::Number)
}

fn lengths(value: &Value) -> Vec<Value> {
    let bounds: Vec<u64> = match value {
        Value::Object(members) => members.iter().filter_map(|(_, bound)| bound.as_u64()).collect(),
        other => other.as_u64().into_iter().collect(),
    };
    let around = bounds.into_iter().filter(|bound| *bound < MAX_LENGTH);
    let counts = around.flat_map(|bound| [bound, bound + 1, bound.saturating_sub(1)]);
    counts
        .filter_map(|count| usize::try_from(count).ok())
        .flat_map(|count| [json!("x".repeat(count)), Value::Array(vec![json!("x"); count])])
        .collect()
}

fn times_around(value: &Value, now: Timestamp) -> Vec<Value> {
    let Some(duration) = value.as_str().and_then(durations::parse) else { return Vec::new() };
    let second = std::time::Duration::from_secs(1);
    [duration.saturating_sub(second), duration, duration.saturating_add(second)]
        .into_iter()
        .filter_map(|ago| now.checked_sub(ago).ok())
        .map(|time| json!(time.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(operator: &str, operand: &Value) -> Vec<Value> {
        let span = callgate::diagnostic::SourceMap::default().add("rules.yaml", "");
        let node = YamlNode::from_json(operand, callgate::diagnostic::Span::new(span, 0, 0));
        candidates_of_operator(operator, &node, "2026-01-01T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn both_sides_of_a_bound_are_candidates() {
        assert_eq!(candidates("gt", &json!(100)), [json!(101), json!(100), json!(99)]);
        assert_eq!(candidates("lte", &json!(0.5)), [json!(0.5), json!(-0.5), json!(1.5)]);
        assert_eq!(candidates("gt", &json!(i64::MAX)).len(), 3);
        assert_eq!(
            candidates("older_than", &json!("1h")),
            [json!("2026-01-01T11:00:01Z"), json!("2026-01-01T11:00:00Z"), json!("2026-01-01T10:59:59Z")]
        );
    }

    #[test]
    fn operands_that_are_read_from_the_call_have_no_candidates() {
        assert_eq!(candidates("eq", &json!({ "path": "$.context.limit" })), Vec::<Value>::new());
    }
}
