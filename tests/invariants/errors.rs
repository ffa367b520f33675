//! I8: an error only ever makes an outcome stricter (fail closed).
//!
//! A value of the wrong type makes a different call than the well-typed value, so the property is: if a call is
//! stopped, no value of a wrong type in any field lets it run. "Wrong" means that no test on the field accepts the type:
//! `contains` accepts strings and arrays, `length` also objects, `[*]` and filters arrays and objects, `eq: null` and `type:`
//! every type, so those decide by type without an error. Nor do the keywords of JSON Schema fail, which accept every value
//! of another type (`maximum: 2` accepts `"500"`) unless `type` is present as well.
//!
//! `respond` is less strict than it seems: if its condition is undecided the tool runs, by design, so
//! running and answering count as equally strict. A transform that fails refuses the call; a `halt` is then
//! evaluated with the arguments as transformed so far.

use callgate::json::{Value, json};
use callgate::{Effect, SessionState, ToolCall};
use proptest::prelude::*;
use proptest::sample::select;

use super::strictness;
use super::vocabulary::{EVERYTHING, Scope, call, engine, policies, rules, unmatched};

/// Fields with values that no test on them accepts.
fn wrong_values() -> Vec<(&'static str, Vec<Value>)> {
    let many: Vec<u32> = (0..2_000).collect();
    let deep = (0..200).fold(json!(2), |inner, _| json!([inner]));
    vec![
        ("/input", vec![json!(null), json!([]), json!("{}"), json!(7)]),
        (
            "/input/amount",
            vec![json!(null), json!(true), json!("2"), json!([2]), json!({ "amount": 2 }), json!(many), deep],
        ),
        ("/input/to", vec![json!(null), json!(true), json!(7)]),
        ("/input/file", vec![json!(null), json!(7), json!(["/srv/x"]), json!({ "path": "/srv/x" })]),
        (
            "/input/url",
            vec![json!(null), json!(7), json!(["https://a.test/"]), json!({ "href": "https://a.test/" })],
        ),
        ("/input/flag", vec![json!(null), json!("true"), json!(1), json!([true])]),
        ("/input/tags", vec![json!(null), json!(7), json!(false)]),
        ("/input/tags/0", vec![json!(null), json!(7), json!(["a"]), json!({ "a": "a" })]),
        ("/input/nested", vec![json!(null), json!(7), json!("x"), json!([{ "level": 1, "name": "lead" }])]),
        ("/input/nested/level", vec![json!(null), json!("3"), json!(false), json!([3])]),
        ("/input/nested/name", vec![json!(null), json!(7), json!(["lead"])]),
        ("/context", vec![json!("lead"), json!(["lead"])]),
        ("/context/role", vec![json!(null), json!(7), json!(["lead"]), json!({ "lead": true })]),
        ("/context/roles", vec![json!(null), json!("lead"), json!(7)]),
        ("/context/roles/0", vec![json!(null), json!(7), json!(["lead"])]),
        ("/context/limit", vec![json!(null), json!("2"), json!([2])]),
    ]
}

fn corruption() -> impl Strategy<Value = (&'static str, Value)> {
    select(wrong_values()).prop_flat_map(|(place, values)| (Just(place), select(values)))
}

fn place<'c>(call: &'c mut ToolCall, pointer: &str) -> Option<&'c mut Value> {
    match pointer.strip_prefix("/input") {
        Some(rest) => call.input.pointer_mut(rest),
        None => call.context.pointer_mut(pointer.strip_prefix("/context")?),
    }
}

fn effect(rules: &str, call: &ToolCall) -> Effect {
    engine(rules).decide(call, &SessionState::default()).effect()
}

/// If a transform may fail, a halt counts like any refusal.
fn bounded(effect: Effect, rules: &str) -> u8 {
    let bound = if rules.contains("transform") { strictness(Effect::Deny) } else { u8::MAX };
    strictness(effect).min(bound)
}

proptest! {
    #[test]
    fn value_of_a_wrong_type_never_lets_a_stopped_call_run(
        (unmatched, policies, call) in (unmatched(), policies(EVERYTHING), call()),
        (pointer, wrong) in corruption(),
    ) {
        let rules = rules(unmatched, "no_match", &policies);
        let mut corrupted = call.clone();
        *place(&mut corrupted, pointer).unwrap() = wrong;
        let (before, after) = (effect(&rules, &call), effect(&rules, &corrupted));
        prop_assert!(
            bounded(after, &rules) >= bounded(before, &rules),
            "{before:?} became {after:?}\n{rules}\n{call:?}\n{corrupted:?}"
        );
    }

    #[test]
    fn failing_expression_never_lets_a_stopped_call_run(
        (unmatched, policies, call) in (unmatched(), policies(EVERYTHING), call()),
        broken in select(&["input.nosuch > 1", "input.amount", "input.to > input.amount", "at(input.tags, 99) == \"a\""][..]),
        which in 0usize..4,
    ) {
        let rules = rules(unmatched, "no_match", &policies);
        let mut broken_rules: Value = callgate::json::from_str(&rules).unwrap();
        break_expressions(&mut broken_rules, broken, &mut { which });
        let (before, after) = (effect(&rules, &call), effect(&broken_rules.to_string(), &call));
        prop_assert!(
            bounded(after, &rules) >= bounded(before, &rules),
            "{before:?} became {after:?}\n{broken_rules}\n{call:?}"
        );
    }

    /// With `absent: match`, a missing field lets nothing run either. Tests for absence
    /// (`exists: false`, and `not` and `each: none` in permitting policies) may match a missing field.
    #[test]
    fn with_absent_match_a_missing_field_never_lets_a_stopped_call_run(
        (unmatched, policies, call) in (
            unmatched(),
            policies(Scope { transforms: false, absence_decides: false, ..EVERYTHING }),
            call(),
        ),
        left_out in select(&[
            "/input/amount", "/input/to", "/input/file", "/input/url", "/input/flag", "/input/tags", "/input/nested",
            "/input/nested/level", "/input/nested/name", "/context/role", "/context/roles", "/context/limit",
        ][..]),
    ) {
        let rules = rules(unmatched, "match", &policies);
        let (parent, name) = left_out.rsplit_once('/').unwrap();
        let mut without = call.clone();
        place(&mut without, parent).unwrap().as_object_mut().unwrap().remove(name);
        let (before, after) = (effect(&rules, &call), effect(&rules, &without));
        prop_assert!(
            strictness(after) >= strictness(before),
            "{before:?} became {after:?} without {left_out}\n{rules}\n{call:?}"
        );
    }
}

/// Replaces the `which`-th expression, or the last one, by `broken`.
fn break_expressions(value: &mut Value, broken: &str, which: &mut usize) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                if key == "expr" {
                    if *which == 0 {
                        *member = broken.into();
                    }
                    *which = which.wrapping_sub(1);
                } else {
                    break_expressions(member, broken, which);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| break_expressions(item, broken, which)),
        _ => {}
    }
}

/// Exceeded work limits are errors, too.
#[test]
fn call_that_exceeds_evaluation_limits_is_denied() {
    let many: Vec<u32> = vec![0; 100_001];
    let call = ToolCall::new("c1", "pay", json!({ "big": many }));
    for condition in ["{ path: '$.input.big[*]', eq: 1 }", "{ expr: '1 in input.big.map(|x| x)' }"] {
        let deny = format!("policies: [ {{ id: p, match: {{ where: [ {condition} ] }}, deny: {{}} }} ]");
        assert_eq!(effect(&deny, &call), Effect::Deny, "{condition}");
        let condition = condition.replace("eq: 1", "eq: 0, each: any").replace("1 in", "0 in");
        let allow = format!(
            "{{ defaults: {{ unmatched: deny }}, policies: [ {{ id: p, match: {{ where: [ {condition} ] }}, allow: {{}} }} ] }}"
        );
        assert_eq!(effect(&allow, &call), Effect::Deny, "{condition}");
    }
}

/// An approval that applies only because its condition is undecided does not replace a permitting policy.
#[test]
fn undecided_approval_does_not_lift_the_default_for_unmatched_calls() {
    let rules = "{ defaults: { unmatched: deny }, policies: [ { id: ask, match: { where: [ { path: $.input.n, lt: 5 } ] }, \
                 approval: { message: 'Really?' } } ] }";
    for (n, expected) in [(json!(1), Effect::Suspend), (json!(9), Effect::Deny), (json!("1"), Effect::Deny)] {
        assert_eq!(effect(rules, &ToolCall::new("c1", "pay", json!({ "n": n }))), expected);
    }
}
