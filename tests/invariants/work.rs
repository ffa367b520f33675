//! I8: one call uses bounded work, whatever its policies; beyond the bound it fails closed, with a stable code.

use callgate::json::{Value, json};
use callgate::work_limit::{CALL_UNITS, DECISION_UNITS, units_used_on_thread};
use callgate::{Effect, Engine, Outcome, OutcomeKind, SessionState, ToolCall};
use proptest::prelude::*;

use super::{Witness, execute};

/// Policies that are expensive for a call of [`large`].
const COSTLY: &[&str] = &[
    "match: { tool: '*', where: { expr: 'input.list.some(|a| input.list.some(|b| a == b + \"x\"))' } }\n    deny: {}",
    "match: { tool: '*', where: { path: '$.input..[?@ == $.context.none]' , exists: true } }\n    deny: {}",
    "match: { tool: '*', where: { path: '$.input.list[*]', in: { path: '$.input.list[?@ != \"\"]' }, each: none } }\n    deny: {}",
    "match: { tool: '*', where: { path: $.input.text, matches: '(a?){40}b' } }\n    deny: {}",
    "match: '*'\n    validate: { schema: { type: object, properties: { list: { items: { anyOf: [ { type: number }, { maxLength: 3 }, { type: string } ] } } } } }",
    "match: '*'\n    redact: { detect: [email, payment_card, phone, iban, ip_address, high_entropy] }",
    "match: '*'\n    transform: { input: [ { path: $.input.text, replace: { pattern: 'a(a*)', with: '${1}b' } } ] }",
    "match: '*'\n    fact: { name: f, key: $.input.none, value: $.input.list }",
    "match: '*'\n    around: { script: 'let n = 0; while n < 60 { n += 1; for x in input.list { if x == \"none\" { throw x; } } now(); } next(input)' }",
    "match: '*'\n    around: { script: 'let out = next(input); for x in input.list { for y in input.list { if x == y + \"x\" { throw x; } } } out' }",
    "match: '*'\n    recover: { message: '{{ input.text }} {{ input.list }} {{ input.text }}' }",
    "match: '*'\n    audit: { fields: [ $.input.text, $.input.list ] }",
];

fn engine(policies: &[&str]) -> Engine {
    let listed: String =
        policies.iter().enumerate().map(|(id, policy)| format!("  - id: p{id}\n    {policy}\n")).collect();
    Engine::from_text(&format!("policies:\n{listed}")).unwrap_or_else(|error| panic!("{error}\n{listed}"))
}

fn large(items: usize, bytes: usize) -> ToolCall {
    let list: Vec<String> = (0..items).map(|n| format!("item {n}")).collect();
    ToolCall::new("c1", "t", json!({ "list": list, "text": "a".repeat(bytes) }))
}

/// The outcome of a call, the number of tool runs, and the work units used.
fn run(engine: &Engine, call: ToolCall) -> (Outcome, usize, u64) {
    let tool = Witness::default();
    let before = units_used_on_thread();
    let outcome = execute(&mut engine.session(), call, &tool);
    (outcome, tool.seen().len(), units_used_on_thread() - before)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn i8_no_call_exceeds_its_work_limit(
        policies in prop::collection::vec(prop::sample::select(COSTLY), 1..12),
        items in prop::sample::select(vec![3usize, 200, 1500]),
        bytes in prop::sample::select(vec![10usize, 20_000, 400_000]),
    ) {
        let engine = engine(&policies);
        let (outcome, ran, used) = run(&engine, large(items, bytes));
        // It is decided more than once before it runs: on its own, and as part of its round.
        prop_assert!(used <= CALL_UNITS + 2 * DECISION_UNITS, "{used} units: {outcome:?}");
        if ran == 0 {
            prop_assert_ne!(outcome.outcome, OutcomeKind::Executed);
        }
        // A second run uses exactly the same number of units.
        let (again, _, used_again) = run(&engine, large(items, bytes));
        prop_assert_eq!((again.outcome, again.reason.code, used_again), (outcome.outcome, outcome.reason.code, used));
    }
}

#[test]
fn i8_decision_that_exceeds_its_work_limit_denies() {
    // None of them matches, as far as it is evaluated; none alone exceeds the limit.
    let search = "match: { tool: '*', where: { path: $.input.text, matches: 'b$' } }\n    deny: {}";
    let few = engine(&[search; 5]);
    let call = large(1, 400_000);
    let decision = few.decide(&call, &SessionState::default());
    assert_eq!(decision.effect(), Effect::Run);
    assert!((2_000_000..DECISION_UNITS).contains(&decision.work()), "{}", decision.work());
    let many = engine(&[search; 40]);
    let decision = many.decide(&call, &SessionState::default());
    assert_eq!((decision.effect(), decision.reason().code.as_str()), (Effect::Deny, "work_exceeded"));
    assert!(decision.work() <= DECISION_UNITS);
    let (outcome, ran, _) = run(&many, call);
    assert_eq!(
        (outcome.outcome, outcome.reason.code.as_str(), ran),
        (OutcomeKind::Denied, "work_exceeded", 0)
    );
}

#[test]
fn i8_permitting_policy_does_not_permit_when_work_is_exceeded() {
    let search = "match: { tool: '*', where: { path: $.input.text, matches: 'b$' } }\n    deny: {}";
    let allow = "match: { tool: '*', where: { expr: '!input.text.contains(\"b\")' } }\n    allow: {}";
    let policies: Vec<&str> = [allow].into_iter().chain([search; 40]).collect();
    let call = large(1, 400_000);
    assert_eq!(engine(&policies).decide(&call, &SessionState::default()).effect(), Effect::Deny);
}

#[test]
fn steps_of_a_script_are_bounded_over_all_its_replays() {
    let script = |turns: usize, effects: usize| {
        format!(
            "match: '*'\n    around: {{ script: 'let out = next(input); let k = 0; while k < {effects} {{ k += 1; let n = 0; while n < {turns} {{ n += 1; }} now(); }} out' }}"
        )
    };
    let (outcome, ran, _) = run(&engine(&[&script(200, 20)]), large(1, 1));
    assert_eq!((outcome.outcome, ran), (OutcomeKind::Executed, 1), "{:?}", outcome.reason);
    // Each replay alone stays below the limit.
    let (outcome, ran, used) = run(&engine(&[&script(1000, 60)]), large(1, 1));
    assert_eq!((outcome.outcome, ran), (OutcomeKind::Indeterminate, 1), "{:?}", outcome.reason);
    assert_eq!(outcome.reason.code, "script_error");
    assert!(used < 3_000_000, "{used}");
}

#[test]
fn scripts_that_exhaust_the_work_limit_of_a_call_end_it() {
    // Each is far below its own limit.
    let script = "match: '*'\n    around: { script: 'let n = 0; while n < 35000 { n += 1; } next(input)' }";
    let (outcome, ran, _) = run(&engine(&[script; 3]), large(1, 1));
    assert_eq!((outcome.outcome, ran), (OutcomeKind::Executed, 1), "{:?}", outcome.reason);
    let (outcome, ran, used) = run(&engine(&[script; 45]), large(1, 1));
    assert_eq!(
        (outcome.outcome, outcome.reason.code.as_str(), ran),
        (OutcomeKind::Failed, "work_exceeded", 0)
    );
    assert!(used <= CALL_UNITS + DECISION_UNITS, "{used}");
}

#[test]
fn script_that_exceeds_work_after_an_effect_is_indeterminate() {
    let script = "match: '*'\n    around: { script: 'let out = next(input); let n = 0; while n < 35000 { n += 1; } out' }";
    let (outcome, ran, _) = run(&engine(&[script; 3]), large(1, 1));
    assert_eq!((outcome.outcome, ran), (OutcomeKind::Executed, 1), "{:?}", outcome.reason);
    let (outcome, ran, used) = run(&engine(&[script; 45]), large(1, 1));
    assert_eq!(
        (outcome.outcome, outcome.reason.code.as_str(), ran),
        (OutcomeKind::Indeterminate, "work_exceeded", 1)
    );
    assert!(used <= CALL_UNITS + DECISION_UNITS, "{used}");
}

#[test]
fn cost_of_a_string_function_grows_with_the_length_of_the_string() {
    let look = "match: { tool: '*', where: { expr: 'input.list.all(|item| !input.text.contains(item))' } }\n    deny: {}";
    let used = |bytes| run(&engine(&[look]), large(100, bytes)).2;
    assert!(used(100_000) > 10 * used(1_000), "{} and {}", used(100_000), used(1_000));
    // The expression is undecided, and the restricting policy applies.
    let call = large(1000, 1_000_000);
    let decision = engine(&[look]).decide(&call, &SessionState::default());
    assert_eq!(decision.effect(), Effect::Deny);
}

#[test]
fn i10_result_that_was_not_searched_is_withheld() {
    let redact = "match: '*'\n    redact: { in: [output], detect: [email, phone, iban, payment_card, ip_address, jwt] }";
    let policies = [redact; 12];
    let (outcome, ran, used) = run(&engine(&policies), large(1, 3_000_000));
    assert_eq!(
        (outcome.outcome, outcome.reason.code.as_str(), ran),
        (OutcomeKind::Failed, "work_exceeded", 1)
    );
    assert_eq!(outcome.output.unwrap_or(Value::Null), Value::Null);
    assert!(used <= CALL_UNITS + 2 * DECISION_UNITS, "{used}");
}

/// A set costs work for each byte that is copied, and never more than a set may have: a hostile result makes the fact unknown.
#[test]
fn i8_large_values_for_a_set_cost_work_and_leave_the_fact_unknown() {
    let rules = "match: '*'\n    fact: { name: seen, for_each: $.input.list, collect: $.input.text, max: 100000, on_full: drop_oldest }";
    let engine = engine(&[rules]);
    let mut session = engine.session();
    let tool = Witness::default();
    let before = units_used_on_thread();
    let outcome = execute(&mut session, large(1500, 400_000), &tool);
    let used = units_used_on_thread() - before;
    assert!((CALL_UNITS / 2..=CALL_UNITS + 2 * DECISION_UNITS).contains(&used), "{used}");
    assert_eq!((outcome.outcome, &*outcome.reason.code), (OutcomeKind::Failed, "work_exceeded"));
    assert_eq!(session.state().unknown_parts(), ["facts.seen"]);
    // The digests of a set are kept: adding to a large set costs only what is added.
    let set: Vec<String> = (0..50_000).map(|number| format!("value {number}")).collect();
    let mut state = SessionState::default();
    state.set_fact("seen", None, json!(set));
    *session.state_mut() = SessionState::from_json(state.to_json()).unwrap();
    let costs = [3, 4].map(|items| {
        let before = units_used_on_thread();
        execute(&mut session, large(items, 10), &tool);
        units_used_on_thread() - before
    });
    assert!(costs[0] > 100_000 && costs[1] < 10_000, "{costs:?}");
}
