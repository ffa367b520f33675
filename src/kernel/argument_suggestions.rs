//! Suggests arguments after a failed call: from the tool's schema, and from calls that worked in the same
//! session.

use crate::argument_schema::ArgumentSchema;
use crate::diagnostic::closest_match;
use crate::json::{Key, Map, Value};
use crate::safe_text::{escape_controls, truncate};

/// More suggestions would confuse.
const MAX_SUGGESTIONS: usize = 4;
/// The depth to which arguments are compared.
const MAX_DEPTH: usize = 4;

/// The suggested changes, joined; empty if there are none.
pub(super) fn suggestion(schema: Option<&ArgumentSchema>, input: &Value, earlier: &[Value]) -> String {
    let mut found: Vec<String> = schema.and_then(|schema| schema.suggest(input)).into_iter().collect();
    if let Some(arguments) = input.as_object() {
        let worked: Vec<&Map> = earlier.iter().filter_map(Value::as_object).collect();
        compare(arguments, &worked, &mut String::new(), 0, &mut found);
    }
    found.truncate(MAX_SUGGESTIONS);
    found.join("; ")
}

/// Compares arguments with those that worked.
fn compare(arguments: &Map, worked: &[&Map], path: &mut String, depth: usize, found: &mut Vec<String>) {
    if depth == MAX_DEPTH || worked.is_empty() {
        return;
    }
    for (key, value) in arguments {
        let values: Vec<&Value> = worked.iter().filter_map(|other| other.get(key)).collect();
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        match value {
            _ if values.is_empty() => {
                let known = worked.iter().flat_map(|other| other.keys().map(Key::as_str));
                let absent = known.filter(|known| !arguments.contains_key(known));
                let name = |key: &str| format!("`{}`", truncate(&escape_controls(key)));
                let meant = closest_match(key, absent);
                note(meant.map(|meant| format!("use {} instead of {}", name(meant), name(key))), found);
            }
            Value::String(text) if !values.contains(&value) => {
                let texts = values.iter().filter_map(|value| value.as_str());
                let meant = closest_match(text, texts);
                let value = |text: &str| Value::from(truncate(&escape_controls(text))).to_string();
                let request = meant.map(|meant| format!("use {} instead of {}", value(meant), value(text)));
                note(
                    request.map(|request| {
                        format!("{request} for `{}`, as before", truncate(&escape_controls(path)))
                    }),
                    found,
                );
            }
            Value::Object(inner) => {
                let worked: Vec<_> = values.iter().filter_map(|value| value.as_object()).collect();
                compare(inner, &worked, path, depth + 1, found);
            }
            _ => {}
        }
        path.truncate(length);
    }
}

fn note(suggestion: Option<String>, found: &mut Vec<String>) {
    if let Some(suggestion) = suggestion
        && !found.iter().any(|known| known.contains(&suggestion))
    {
        found.push(suggestion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn what_worked_before_is_suggested_where_it_is_near() {
        let earlier = [
            json!({"customer": "ana_martinez_42", "filter": {"state": "open"}, "page": 1}),
            json!({"customer": "bob", "filter": {"state": "closed"}}),
        ];
        for (input, expected) in [
            (
                json!({"customer": "ana_martines_42"}),
                r#"use "ana_martinez_42" instead of "ana_martines_42" for `customer`, as before"#,
            ),
            (json!({"custmer": "bob"}), "use `customer` instead of `custmer`"),
            (
                json!({"customer": "bob", "filter": {"state": "opn"}}),
                r#"use "open" instead of "opn" for `filter.state`, as before"#,
            ),
            (json!({"customer": "zoe", "page": 7}), ""),
            (json!({"customer": "bob", "costumer": "ana"}), ""),
            (json!([]), ""),
        ] {
            assert_eq!(suggestion(None, &input, &earlier), expected, "{input}");
        }
        assert_eq!(suggestion(None, &json!({"customer": "bab"}), &[]), "");
    }
}
