//! Differences between two JSON values: expected + actual → [`Difference`]s.

use crate::report::Difference;
use callgate::json::{self, Value};

/// The maximum number of differences listed for one value.
const MAX_LISTED: usize = 20;

/// The paths, from `root`, at which `actual` differs from `expected`. Empty if the values are equal.
pub(super) fn differences(root: &str, expected: &Value, actual: &Value) -> Vec<Difference> {
    let found = json::differences(root, expected, actual, MAX_LISTED).into_iter();
    let difference = |json::Difference { path, before, after }| Difference {
        path,
        expected: before.cloned(),
        actual: after.cloned(),
    };
    found.map(difference).collect()
}

#[cfg(test)]
mod tests {
    use callgate::json::json;

    use super::*;

    #[test]
    fn reports_each_difference_once() {
        let expected = json!({ "a": 1, "b": [1, { "x y": 2 }], "c": null, "e": [] });
        let actual = json!({ "e": [], "b": [1.0, { "x y": 3 }, 4], "a": "1", "d": 0 });
        let found: Vec<String> = differences("$.output", &expected, &actual)
            .into_iter()
            .map(|difference| {
                let displayed =
                    |value: Option<Value>| value.map_or("–".to_owned(), |value| value.to_string());
                format!(
                    "{} {} {}",
                    difference.path,
                    displayed(difference.expected),
                    displayed(difference.actual)
                )
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
    fn reports_no_differences_for_equal_values() {
        assert!(differences("$", &json!({ "a": 1.0, "b": 2 }), &json!({ "b": 2, "a": 1 })).is_empty());
    }
}
