//! Where two JSON values differ.

use serde_json::Value;

use super::report::Difference;
use crate::json;

/// More differences of one value are not listed.
const MAX_LISTED: usize = 20;

/// Where `actual` is not what was expected, each place once, as a path from `root`. Nothing where the values are equal.
pub(super) fn differences(root: &str, expected: &Value, actual: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(root, Some(expected), Some(actual), json::MAX_DEPTH, &mut found);
    found
}

fn compare(
    path: &str,
    expected: Option<&Value>,
    actual: Option<&Value>,
    depth: usize,
    found: &mut Vec<Difference>,
) {
    if found.len() >= MAX_LISTED {
        return;
    }
    match (expected, actual) {
        (Some(expected), Some(actual)) if json::equal(expected, actual) => {}
        (Some(Value::Object(expected)), Some(Value::Object(actual))) if depth > 0 => {
            let added = actual.keys().filter(|key| !expected.contains_key(*key));
            for key in expected.keys().chain(added) {
                compare(&below(path, key), expected.get(key), actual.get(key), depth - 1, found);
            }
        }
        (Some(Value::Array(expected)), Some(Value::Array(actual))) if depth > 0 => {
            for index in 0..expected.len().max(actual.len()) {
                let place = format!("{path}[{index}]");
                compare(&place, expected.get(index), actual.get(index), depth - 1, found);
            }
        }
        (expected, actual) => found.push(Difference {
            path: path.to_owned(),
            expected: expected.cloned(),
            actual: actual.cloned(),
        }),
    }
}

fn below(path: &str, key: &str) -> String {
    let plain = key.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !key.starts_with(|c: char| c.is_numeric())
        && !key.is_empty();
    if plain { format!("{path}.{key}") } else { format!("{path}[{}]", Value::from(key)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_that_differs_is_named_once() {
        let expected = json!({ "a": 1, "b": [1, { "x y": 2 }], "c": null, "e": [] });
        let actual = json!({ "e": [], "b": [1.0, { "x y": 3 }, 4], "a": "1", "d": 0 });
        let found: Vec<String> = differences("$.output", &expected, &actual)
            .into_iter()
            .map(|difference| {
                let shown = |value: Option<Value>| value.map_or("–".to_owned(), |value| value.to_string());
                format!("{} {} {}", difference.path, shown(difference.expected), shown(difference.actual))
            })
            .collect();
        assert_eq!(
            found,
            [
                r#"$.output.a 1 "1""#,
                r#"$.output.b[1]["x y"] 2 3"#,
                "$.output.b[2] – 4",
                "$.output.c null –",
                "$.output.d – 0"
            ]
        );
    }

    #[test]
    fn equal_values_differ_nowhere() {
        assert!(differences("$", &json!({ "a": 1.0, "b": 2 }), &json!({ "b": 2, "a": 1 })).is_empty());
    }
}
