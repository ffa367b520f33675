//! The effect of a call whose arguments are still text is that of the call with the parsed arguments, although values that no policy reads are
//! not kept: for names that are hard to tell apart, policies that read more than members, and texts that are not valid JSON.

use callgate::json::{self, Value, json};
use callgate::{SessionState, ToolCall};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{EVERYTHING, engine, policies, rules, unmatched};

/// A policy that reads arguments in one of many ways.
fn reading() -> impl Strategy<Value = Value> {
    let condition = select(vec![
        json!({ "path": "$.input.a", "eq": 1 }),
        json!({ "path": "$.input.a", "eq": "x", "absent": "match" }),
        json!({ "path": "$.input.b", "gt": 0 }),
        json!({ "path": "$.input.b", "exists": false }),
        json!({ "path": "$.input.c.a", "starts_with": "x" }),
        json!({ "path": "$.input.c", "length": { "gte": 1 } }),
        json!({ "path": "$.input.list[0]", "ne": 1 }),
        json!({ "path": "$.input.list[*].a", "eq": 1, "each": "any" }),
        json!({ "path": "$.input.*", "eq": "x", "each": "any" }),
        json!({ "path": "$.input..a", "eq": 1, "each": "any" }),
        json!({ "path": "$.input", "length": { "lte": 2 } }),
        json!({ "path": "$.context.a", "eq": 1 }),
        json!({ "any": [{ "path": "$.input.d", "eq": 1 }] }),
        json!({ "not": { "path": "$.input.d", "eq": 1 } }),
        json!({ "expr": "input.a == 1" }),
    ]);
    let kind = select(&["deny", "allow", "approval", "halt"][..]);
    let mode = select(&["enforce", "enforce", "enforce", "shadow", "off"][..]);
    (vec(condition, 1..3), kind, mode).prop_map(
        |(conditions, kind, mode)| json!({ "match": { "where": conditions }, "mode": mode, kind: {} }),
    )
}

/// The text of a member's name: names that policies read, names that could be taken for these, and one name written in two ways.
fn name() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "a",
            "b",
            "c",
            "d",
            "list",
            "z",
            "A",
            "a_",
            "\\u0061",
            "\u{ff41}",
            "\u{e4}",
            "",
            "List",
            "long name of a member",
        ][..],
    )
}

/// JSON, or nearly.
fn text() -> impl Strategy<Value = String> {
    let scalar = select(
        &[
            "1",
            "1.0",
            "0",
            "-1",
            "123456789012345678901",
            "\"x\"",
            "\"\\u0078\"",
            "\"\u{e4}\"",
            "null",
            "true",
            "\"\"",
        ][..],
    );
    let invalid = select(
        &["01", "1.", "tru", "\"\\ud800\"", "\"\n\"", "{\"x\":1,\"x\":2}", "[1,]", "\"", "{1:2}", "[[}"][..],
    );
    let leaf = prop_oneof![60 => scalar, 1 => invalid].prop_map(str::to_owned);
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        let items = vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", ")));
        prop_oneof![1 => items, 2 => object(inner)]
    });
    prop_oneof![
        20 => object(value.clone()),
        1 => value,
        1 => object(Just("1".to_owned()).boxed()).prop_map(|text| text + " x"),
        1 => (1usize..200).prop_map(|depth| format!("{{\"z\": {}1{}}}", "[".repeat(depth), "]".repeat(depth))),
    ]
}

/// Names repeat about once in ten objects.
fn object(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    let members = vec((name(), value), 0..12);
    (members, 0..4)
        .prop_map(|(members, repeats)| {
            let mut names = Vec::new();
            let members = members.into_iter().filter_map(|(name, value)| {
                let is_new = !names.contains(&name) || (repeats == 0 && names.len() == 4);
                names.push(name);
                is_new.then(|| format!("\"{name}\" : {value}"))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn arguments_have_the_same_effect_as_text(
        unmatched in unmatched(),
        absent in select(&["match", "no_match"][..]),
        reading in vec(reading(), 0..4),
        others in prop_oneof![4 => Just(Vec::new()), 1 => policies(EVERYTHING)],
        texts in vec(text(), 1..8),
        context in select(vec![Value::Null, json!({ "a": 1 })]),
    ) {
        let policies: Vec<Value> = reading.into_iter().chain(others).collect();
        let engine = engine(&rules(unmatched, absent, &policies));
        let session = SessionState::default();
        for text in &texts {
            let call = |input| ToolCall::new("c1", "pay", input).with_context(context.clone());
            let parsed = json::parse(text).map(|input| engine.decide(&call(input), &session).effect());
            prop_assert_eq!(engine.effect_of_text(call(Value::Null), text, &session), parsed, "{}", text);
        }
    }
}

#[test]
fn values_that_no_policy_reads_are_still_checked() {
    let engine = engine(&rules(
        "allow",
        "no_match",
        &[json!({ "match": { "where": [{ "path": "$.input.a", "eq": 1 }] }, "deny": {} })],
    ));
    let effect =
        |text| engine.effect_of_text(ToolCall::new("c1", "pay", Value::Null), text, &SessionState::default());
    for (text, error) in [
        (r#"{"a": 1, "z": {"b": 1, "b": 2}}"#, "duplicate key `b` at line 1 column 24"),
        (r#"{"a": 1, "z": [01]}"#, "invalid number at line 1 column 16"),
        (r#"{"a": 1, "z": "\ud800"}"#, "lone surrogate in a string at line 1 column 16"),
        (r#"{"a": 1, "z": 2, "z": 3}"#, "duplicate key `z` at line 1 column 18"),
    ] {
        assert_eq!(effect(text).map_err(|error| error.to_string()), Err(error.to_owned()), "{text}");
    }
}
