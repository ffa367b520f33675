//! Composition of policies: the strictest outcome wins in any order; layers only restrict; shadow policies change nothing; and
//! policies that the index skips would not have matched.

use callgate::json::{Value, json};
use callgate::message::{Dialect, History, approval_response};
use callgate::{OutcomeKind, Phase, SessionState, ToolCall, engine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::vocabulary::{EVERYTHING, Scope, call, engine, policies, restricting, rules, unmatched};
use super::{Witness, block_on, execute, normalized_outcome, strictness, strictness_of};

const WITHOUT_TRANSFORMS: Scope = Scope { transforms: false, ..EVERYTHING };

/// A scalar or another value, about half of the time equal to another one.
fn scalar() -> impl Strategy<Value = Value> {
    select(vec![
        json!(0),
        json!(1),
        json!(2),
        json!(1.0),
        json!(1e0),
        json!("1"),
        json!("a"),
        json!("b"),
        json!(""),
        json!(true),
        json!(false),
        json!(null),
        json!([1]),
        json!({ "a": 1 }),
        json!(9007199254740993u64),
        json!(9007199254740992u64),
    ])
}

/// A policy that requires certain values at a path, which the index looks up.
fn demanding() -> impl Strategy<Value = Value> {
    let path = select(
        &["$.input.a", "$.input.b", "$.input.c.d", "$.context.a", "$.tool", "$.session.calls.pay"][..],
    );
    let ordered = || select(vec![json!(1), json!(1.5), json!("a"), json!(9007199254740992u64)]);
    let text = || select(&["", "a", "ab", "1"][..]);
    let demand = prop_oneof![
        3 => scalar().prop_map(|value| ("eq", value)),
        1 => scalar().prop_map(|value| ("ne", value)),
        1 => (select(&["in", "not_in"][..]), vec(scalar(), 1..4)).prop_map(|(key, values)| (key, json!(values))),
        1 => (select(&["gt", "gte", "lt", "lte"][..]), ordered()),
        1 => (select(&["starts_with", "ends_with"][..]), vec(text(), 1..3)).prop_map(|(key, texts)| (key, json!(texts))),
        1 => text().prop_map(|text| ("contains", json!(text))),
        1 => any::<bool>().prop_map(|exists| ("exists", json!(exists))),
    ];
    let kind = select(&["deny", "allow", "approval", "halt"][..]);
    let more = prop::option::of((select(&["gt", "ne"][..]), 0i64..3));
    (path, demand, kind, more, prop::option::of(select(&["match", "no_match"][..])), -1i64..2).prop_map(
        |(path, (operator, operand), kind, more, absent, priority)| {
            let mut test = json!({ "path": path, operator: operand });
            if let Some(absent) = absent {
                test["absent"] = absent.into();
            }
            let mut conditions = vec![test];
            conditions
                .extend(more.map(|(operator, operand)| json!({ "path": "$.input.b", operator: operand })));
            json!({ "match": { "where": conditions }, "priority": priority, kind: {} })
        },
    )
}

/// Policies of which enough require a string at one path for the index to look it up.
fn indexed() -> impl Strategy<Value = Vec<Value>> {
    let policy = (select(&["a", "b", "", "1"][..]), select(&["deny", "allow", "approval", "halt"][..]));
    let policy = policy.prop_map(
        |(value, kind)| json!({ "match": { "where": [{ "path": "$.input.a", "eq": value }] }, kind: {} }),
    );
    prop_oneof![1 => Just(Vec::new()), 2 => vec(policy, 24..50)]
}

fn demanded_call() -> impl Strategy<Value = ToolCall> {
    let optional = || prop::option::of(scalar());
    (optional(), optional(), optional(), optional(), select(&["pay", "a", "1"][..])).prop_map(
        |(a, b, d, role, tool)| {
            let mut input = json!({});
            for (name, value) in [("a", a), ("b", b), ("c", d.map(|d| json!({ "d": d })))] {
                if let Some(value) = value {
                    input[name] = value;
                }
            }
            let context = role.map_or(Value::Null, |role| json!({ "a": role }));
            ToolCall::new("c1", tool, input).with_context(context)
        },
    )
}

proptest! {
    /// A test inside `any` is the same test, but the index does not look it up.
    #[test]
    fn policies_skipped_by_the_index_would_not_have_matched(
        unmatched in unmatched(),
        demanding in vec(demanding(), 4..60),
        indexed in indexed(),
        calls in vec(demanded_call(), 1..6),
    ) {
        let policies: Vec<Value> = demanding.into_iter().chain(indexed).collect();
        let unindexed: Vec<Value> = policies
            .iter()
            .cloned()
            .map(|mut policy| {
                for condition in policy["match"]["where"].as_array_mut().unwrap() {
                    *condition = json!({ "any": [condition] });
                }
                policy
            })
            .collect();
        let indexed = engine(&rules(unmatched, "no_match", &policies));
        let naive = engine(&rules(unmatched, "no_match", &unindexed));
        let session = SessionState::default();
        for call in &calls {
            let effect = indexed.effect(call, &session);
            let (indexed, naive) = (indexed.decide(call, &session), naive.decide(call, &session));
            prop_assert_eq!(indexed.effect(), naive.effect());
            prop_assert_eq!(effect, naive.effect());
            prop_assert_eq!(indexed.reason(), naive.reason());
            prop_assert_eq!(indexed.policies(), naive.policies());
        }
    }

    #[test]
    fn strictest_outcome_wins_in_any_order_of_policies(
        unmatched in unmatched(),
        call in call(),
        (policies, shuffled) in policies(WITHOUT_TRANSFORMS)
            .prop_flat_map(|policies| (Just(policies.clone()), Just(policies).prop_shuffle())),
    ) {
        let session = SessionState::default();
        let effect = |policies: &[Value]| engine(&rules(unmatched, "no_match", policies)).decide(&call, &session).effect();
        prop_assert_eq!(effect(&policies), effect(&shuffled));
    }

    /// An `approval` defines who may permit the call, so it replaces `unmatched: deny`; no other restricting policy
    /// lifts anything.
    #[test]
    fn adding_a_restricting_policy_never_makes_outcomes_more_permissive(
        unmatched in unmatched(),
        (mut policies, more, call) in (policies(EVERYTHING), restricting(EVERYTHING), call()),
    ) {
        prop_assume!(unmatched != "deny" || more.get("approval").is_none());
        let session = SessionState::default();
        let effect = |policies: &[Value]| engine(&rules(unmatched, "no_match", policies)).decide(&call, &session).effect();
        let before = effect(&policies);
        policies.push(more);
        let after = effect(&policies);
        prop_assert!(strictness(after) >= strictness(before), "{:?} became {:?}", before, after);
    }

    /// A layer without transforms: transforms change the call, which every layer then evaluates. A layer may suspend a call
    /// that is refused only when scripts around its execution change it; the tool does not run then either.
    #[test]
    fn lower_layer_never_makes_outcomes_more_permissive(
        (upper, lower) in (unmatched(), unmatched()),
        (policies, layer, call) in (policies(EVERYTHING), policies(WITHOUT_TRANSFORMS), call()),
    ) {
        let bundle = engine(&rules(upper, "no_match", &policies));
        let layer = engine::load_text(&rules(lower, "no_match", &layer)).unwrap();
        let without = execute(&mut bundle.session(), call.clone(), &Witness::default());
        let tool = Witness::default();
        let with = execute(&mut bundle.session().with_layer(layer), call, &tool);
        let refused_in_execution = without.policies.iter().any(|policy| policy.phase == Phase::Execute);
        let suspended_before = refused_in_execution && with.outcome == OutcomeKind::Suspended && tool.0.lock().unwrap().is_empty();
        let is_stricter = strictness_of(&with) >= strictness_of(&without);
        prop_assert!(is_stricter || suspended_before, "{:?} became {:?}", without, with);
    }

    #[test]
    fn shadow_and_disabled_policies_change_only_the_trace(
        unmatched in unmatched(),
        (policies, watching) in (policies(EVERYTHING), policies(EVERYTHING)),
        calls in vec(call(), 1..4),
        mode in select(&["shadow", "off"][..]),
    ) {
        let mut both: Vec<Value> = Vec::new();
        for (place, mut policy) in watching.into_iter().enumerate() {
            policy["mode"] = mode.into();
            policy["id"] = format!("watching{place}").into();
            both.push(policy);
        }
        let count = both.len();
        for (place, mut policy) in policies.iter().cloned().enumerate() {
            policy["id"] = format!("p{place}").into();
            both.push(policy);
        }
        // Shadow policies are mixed with the others.
        both.rotate_left(count / 2);
        let mut plain = engine(&rules(unmatched, "no_match", &policies)).session();
        let mut watched = engine(&rules(unmatched, "no_match", &both)).session();
        for call in calls {
            let plain_outcome = execute(&mut plain, call.clone(), &Witness::default());
            let watched_outcome = execute(&mut watched, call, &Witness::default());
            prop_assert_eq!(normalized_outcome(&plain_outcome), normalized_outcome(&watched_outcome));
            if mode == "off" {
                prop_assert_eq!(plain_outcome.policies, watched_outcome.policies);
            }
        }
        // Shadow counts of a run are separate.
        prop_assert_eq!(plain.state().document(), watched.state().document());
        prop_assert_eq!(plain.state().unknown_parts(), watched.state().unknown_parts());
        prop_assert_eq!(plain.state().halt_message(), watched.state().halt_message());
    }
}

/// The script changes the call that a lower layer suspended, and the bundle refuses the changed call also after the approval.
#[test]
fn approved_call_is_refused_by_the_scripts_around_its_execution() {
    let small = json!({ "properties": { "amount": { "maximum": 2 } } });
    let bundle = engine(&rules(
        "allow",
        "no_match",
        &[
            json!({ "match": { "tool": "*" }, "validate": { "schema": small } }),
            json!({ "match": { "tool": "*" }, "around": { "script": "input.amount += 1; next(input)" } }),
        ],
    ));
    let asks = json!({ "match": { "tool": "*" }, "approval": { "message": "Really?" } });
    let layer = engine::load_text(&rules("allow", "no_match", &[asks])).unwrap();
    let call = json!({ "id": "c1", "type": "function",
        "function": { "name": "pay", "arguments": "{\"amount\":2}" } });
    let messages = json!([{ "role": "assistant", "content": null, "tool_calls": [call] }]);
    let mut history = History::read(Dialect::OpenaiChat, &messages).unwrap();
    let session = || bundle.session().with_name("s").with_layer(layer.clone());
    let tool = Witness::default();
    assert!(block_on(session().run_round(&mut history, &tool)).unwrap().is_suspended());
    let request = history.find_approval_requests()[0].clone();
    history.append_approval_response(approval_response(request.approval_id, true)).unwrap();
    let round = block_on(session().resume(&mut history, &tool)).unwrap();
    assert_eq!(round.outcomes[0].outcome, OutcomeKind::Invalid);
    assert!(tool.0.lock().unwrap().is_empty());
}
