//! Error messages for models, and limits against hostile schemas.

use super::*;
use crate::json::json;
use proptest::prelude::*;

fn order_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "The order id, such as '#W0000000'. Mind the '#'."},
            "reason": {"type": "string", "enum": ["no longer needed", "ordered by mistake"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "amount": {"type": "number", "multipleOf": 0.01},
            "express": {"type": "boolean"},
            "day": {"type": "string", "format": "date"},
            "to": {"type": "string", "format": "email"},
            "code": {"type": "string", "pattern": "^#W\\d{7}$"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": true, "maxItems": 2},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "mode": {"oneOf": [{"const": "fast"}, {"const": "slow"}]},
            "target": {"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "user"}, "user": {"type": "string"}}, "required": ["kind", "user"]},
                {"type": "object", "properties": {"kind": {"const": "team"}, "team": {"type": "string"}}, "required": ["kind", "team"]},
            ]},
            "address": {"$ref": "#/$defs/address"},
        },
        "required": ["order_id"],
        "additionalProperties": false,
        "$defs": {"address": {"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": false}},
    })
}

fn problems(extra: Value) -> String {
    let schema = ArgumentSchema::compile(&order_schema()).unwrap();
    let mut instance = json!({"order_id": "#W1"});
    instance.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    schema.check(&instance).err().map(|violations| summarize(&violations)).unwrap_or_default()
}

#[test]
fn reports_problem_path_and_fix() {
    for (extra, expected) in [
        (json!({}), ""),
        (json!({"amount": 19.99, "limit": 5.0, "note": null, "address": {"zip": "1"}}), ""),
        (json!({"target": {"kind": "team", "team": "a"}, "day": "2026-02-28", "to": "a@b.org"}), ""),
        (json!({"limit": 5000}), "`limit` must be at most 100, it is 5000"),
        (json!({"limit": 1.5}), "`limit` must be an integer, it is the number 1.5"),
        (
            json!({"reason": "no longer neded"}),
            "`reason` must be one of \"no longer needed\", \"ordered by mistake\"; it is \"no longer neded\": did you mean \"no longer needed\"?",
        ),
        (
            json!({"amount": "500"}),
            "`amount` must be a number, it is the string \"500\": send it without quotes",
        ),
        (json!({"amount": 0.001}), "`amount` must be a multiple of 0.01, it is 0.001"),
        (
            json!({"express": "true"}),
            "`express` must be true or false, it is the string \"true\": send it without quotes",
        ),
        (json!({"note": 5}), "`note` must be a string or null, it is the number 5: send it in quotes"),
        (
            json!({"tags": "[\"a\"]"}),
            "`tags` must be an array, it is the string \"[\\\"a\\\"]\": send it as an array, not as a string",
        ),
        (json!({"tags": ["a", "long"]}), "`tags[1]` must have at most 3 characters, it has 4"),
        (json!({"tags": ["a", "a"]}), "`tags` must not contain duplicate items"),
        (json!({"day": "2026-02-30"}), "`day` must be a date such as 2026-03-01, it is \"2026-02-30\""),
        (json!({"to": "nobody"}), "`to` must be an email address such as ana@example.com, it is \"nobody\""),
        (json!({"code": "W1"}), "`code` must match the pattern `^#W\\d{7}$`, it is \"W1\""),
        (
            json!({"mode": "fats"}),
            "`mode` must be one of \"fast\", \"slow\"; it is \"fats\": did you mean \"fast\"?",
        ),
        (json!({"target": {"kind": "team", "user": "a"}}), "`target.team` is missing (string)"),
        (
            json!({"address": {"zpi": "1"}}),
            "`address.zpi` is not a property of `address`: did you mean `address.zip`?",
        ),
        (json!({"expres": true}), "`expres` is not an argument of this tool: did you mean `express`?"),
        (
            json!({"day": "\u{202e}`\n"}),
            "`day` must be a date such as 2026-03-01, it is \"\\u{202e}\\u{60}\\u{a}\"",
        ),
    ] {
        assert_eq!(problems(extra.clone()), expected, "{extra}");
    }
}

#[test]
fn describes_missing_arguments_and_finds_misspelled_ones() {
    let schema = ArgumentSchema::compile(&order_schema()).unwrap();
    let violations = schema.check(&json!({"ordr_id": "#W1"})).unwrap_err();
    let messages: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
    assert!(
        messages.contains(&"`ordr_id` is not an argument of this tool: did you mean `order_id`?"),
        "{messages:?}"
    );
    assert!(
        messages.contains(&"`order_id` is missing (string: The order id, such as '#W0000000'.): did you write `ordr_id` instead?"),
        "{messages:?}"
    );
    assert_eq!(schema.suggest(&json!({"ordr_id": "#W1"})).unwrap(), "use `order_id` instead of `ordr_id`");
    assert_eq!(schema.suggest(&json!({"order_id": "#W1"})), None);
}

#[test]
fn suggests_misspelled_optional_arguments_even_if_unknown_ones_are_allowed() {
    let schema = ArgumentSchema::compile(&json!({"properties": {"priority": {}, "note": {}}})).unwrap();
    let call = json!({"prioritty": 1, "note": 2});
    assert!(schema.check(&call).is_ok());
    assert_eq!(schema.suggest(&call).unwrap(), "use `priority` instead of `prioritty`");
}

#[test]
fn schema_errors_have_a_pointer() {
    let schema = json!({"properties": {"a/b": {"$ref": "other.json"}}});
    assert_eq!(ArgumentSchema::compile(&schema).unwrap_err().pointer.unwrap(), "/properties/a~1b/$ref");
    let schema = json!({"properties": {"a": {"type": "strnig"}}});
    assert_eq!(ArgumentSchema::compile(&schema).unwrap_err().pointer.unwrap(), "/properties/a/type");
}

#[test]
fn lists_at_most_eight_problems_and_truncates_values() {
    let schema = ArgumentSchema::compile(&json!({"additionalProperties": {"type": "integer"}})).unwrap();
    let many: Value = (0..50).map(|index| (format!("k{index}"), Value::from("x".repeat(5000)))).collect();
    let violations = schema.check(&many).unwrap_err();
    assert_eq!(violations.len(), MAX_VIOLATIONS);
    assert!(summarize(&violations).chars().count() < 8 * 150, "{}", summarize(&violations));
}

#[test]
fn exposes_names_and_values_for_suggestions() {
    let schema = ArgumentSchema::compile(&order_schema()).unwrap();
    assert!(schema.property_names().any(|name| name == "order_id"));
    assert_eq!(schema.enum_values("reason").len(), 2);
    assert!(schema.enum_values("limit").is_empty() && schema.enum_values("nope").is_empty());
}

#[test]
fn supports_dialects_and_exact_numbers() {
    let draft4 =
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 5, "exclusiveMaximum": true});
    assert!(ArgumentSchema::compile(&draft4).unwrap().check(&json!(5)).is_err());
    let exact = ArgumentSchema::compile(&json!({"const": 9007199254740993u64})).unwrap();
    assert!(
        exact.check(&json!(9007199254740992u64)).is_err() && exact.check(&json!(9007199254740993u64)).is_ok()
    );
    let one = ArgumentSchema::compile(&json!({"enum": [1]})).unwrap();
    assert!(one.check(&crate::json::parse("1.0").unwrap()).is_ok());
    let huge = crate::json::parse("1e1000000000").unwrap();
    assert!(ArgumentSchema::compile(&json!({"type": "integer"})).unwrap().check(&huge).is_err());
}

#[test]
fn resolves_internal_references_in_every_notation() {
    for reference in ["#/$defs/a~1b", "#name", "https://example.com/own#/$defs/a~1b"] {
        let schema = json!({
            "$id": "https://example.com/own",
            "properties": {"x": {"$ref": reference}},
            "$defs": {"a/b": {"$anchor": "name", "type": "string"}},
        });
        let schema = ArgumentSchema::compile(&schema).unwrap();
        assert!(
            schema.check(&json!({"x": "a"})).is_ok() && schema.check(&json!({"x": 1})).is_err(),
            "{reference}"
        );
    }
    let generic = json!({"$ref": "#/$defs/List%5Bint%5D", "$defs": {"List[int]": {"type": "array"}}});
    assert!(ArgumentSchema::compile(&generic).unwrap().check(&json!({})).is_err());
}

#[test]
fn supports_recursive_schemas_up_to_a_depth_limit() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
        "type": "object",
        "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}},
        "additionalProperties": false,
    }}});
    let schema = ArgumentSchema::compile(&tree).unwrap();
    let nested = |depth: usize, last: Value| (0..depth).fold(last, |inner, _| json!({"left": inner}));
    assert!(schema.check(&nested(100, json!({}))).is_ok());
    assert!(schema.check(&nested(100, json!(1))).is_err());
    assert!(schema.check(&nested(1000, json!({}))).is_err());
}

#[test]
fn rejects_unsafe_and_invalid_schemas() {
    let doubling = |levels: usize| -> Value {
        let defs: Value = (0..levels)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                (format!("d{level}"), json!({"allOf": [next, next]}))
            })
            .chain([(format!("d{levels}"), json!({"type": "object"}))])
            .collect();
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
    for (schema, expected) in [
        (json!({"$ref": "https://example.com/s.json"}), "points outside of the schema"),
        (json!({"properties": {"a": {"$ref": "other.json#/a"}}}), "points outside of the schema"),
        (json!({"$ref": "http://json-schema.org/draft-07/schema#"}), "points outside of the schema"),
        (json!({"$ref": "file:///etc/passwd"}), "points outside of the schema"),
        (json!({"$defs": {"a": {"$ref": "https://example.com/s.json"}}}), "points outside of the schema"),
        (json!({"allOf": vec![json!({"pattern": "a"}); 200]}), "patterns"),
        (json!({"$ref": "#/$defs/nope"}), "does not exist in the schema"),
        (json!({"$schema": "https://example.com/own-dialect"}), "invalid"),
        (json!({"$ref": "#"}), "refers to itself"),
        (
            json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            "refers to itself",
        ),
        (json!({"properties": {"a": {"$id": "https://example.com/a"}}}), "below the root"),
        (doubling(40), "too expensive to check"),
        (deep, "nested deeper"),
        (json!({"enum": vec![0; 30_000]}), "more than 20000 values"),
        (json!({"type": "strnig"}), "invalid"),
        (json!("object"), "invalid"),
        (json!({"pattern": "(?=a)b"}), "look-around"),
        (json!({"pattern": "(a"}), "the pattern `(a` at `/pattern` is invalid"),
        (json!({"pattern": "((a{100}){100}){100}"}), "pattern"),
    ] {
        let error = ArgumentSchema::compile(&schema).unwrap_err();
        assert!(error.message.contains(expected), "{schema}\n{error:?}");
    }
    assert!(ArgumentSchema::compile(&doubling(5)).unwrap().check(&json!({})).is_ok());
}

#[test]
fn exponential_schemas_return_quickly() {
    let node = json!({"$ref": "#/$defs/node"});
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": [
        {"properties": {"a": node}, "required": ["x"]},
        {"properties": {"a": node}, "required": ["y"]},
        {"type": "string"},
    ]}}});
    let schema = ArgumentSchema::compile(&schema).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!("end"), |inner, _| json!({"a": inner, "x": 1}));
    assert!(schema.check(&nested(5)).is_ok());
    assert!(summarize(&schema.check(&nested(100)).unwrap_err()).contains("too large or too deep"));
}

#[test]
fn the_longest_accepted_chains_fit_a_small_stack() {
    let links = 390;
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let defs: Value = (0..links)
            .map(|link| (format!("d{link}"), json!({keyword: [{"$ref": format!("#/$defs/d{}", link + 1)}]})))
            .chain([(format!("d{links}"), json!({"type": "object"}))])
            .collect();
        let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
        let run = move || {
            let schema = ArgumentSchema::compile(&schema).unwrap();
            assert!(schema.check(&json!({})).is_ok());
            assert!(summarize(&schema.check(&json!(1)).unwrap_err()).contains("must be an object"));
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof!["[a-c]{0,3}", "string", "object", "#/\\$defs/[ab]", "#", "date", "\\PC{0,9}"]
            .prop_map(Value::from),
    ];
    let key = || {
        prop_oneof![
            "type",
            "properties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "enum",
            "const",
            "required",
            "\\$ref",
            "\\$defs",
            "pattern",
            "format",
            "maximum",
            "multipleOf",
            "unevaluatedProperties",
            "additionalProperties",
            "propertyNames",
            "[ab]"
        ]
    };
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..5).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn never_panics(schema in any_json(), instance in any_json()) {
        if let Ok(schema) = ArgumentSchema::compile(&schema)
            && let Err(violations) = schema.check(&instance)
        {
            prop_assert!(!violations.is_empty() && violations.len() <= MAX_VIOLATIONS);
            schema.suggest(&instance);
        }
    }
}
