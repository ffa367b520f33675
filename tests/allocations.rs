//! Deciding a call allocates nothing where no policy matches, and where those that match let it through.

use allocation_counter::measure;
use callgate::{Effect, Engine, SessionState, ToolCall};
use serde_json::{Value, json};

const RULES: &str = r#"
    policies:
      - { id: everyone, match: "*", allow: {} }
      - { id: reads, match: "read*", allow: {} }
      - { id: small, match: { tool: "/^pay/", where: [ { path: $.input.amount, lte: 100 } ] }, allow: {} }
      - { id: large, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, deny: {} }
      - { id: nested, match: { tool: pay, where: [ { any: [ { path: $.input.to.name, eq: eve }, { not: { path: $.input.ok, eq: true } } ] } ] }, approval: {} }
      - { id: roles, match: { tool: pay, where: [ { path: "$.context.roles[*]", eq: guest } ] }, halt: {} }
      - { id: texts, match: { tool: pay, where: [ { path: $.input.note, starts_with: x, length: 3 } ] }, deny: {} }
      - { id: sets, match: { tool: pay, where: [ { path: $.input.note, in: [a, b] } ] }, deny: {} }
      - { id: schema, match: { tool: write, where: [ { path: $.input.amount, gt: 100 } ] }, validate: { schema: { type: object } } }
      - { id: forms, match: { tool: write, where: [ { path: $.input.amount, gt: 100 } ] }, transform: { input: [ { path: $.input.a, set: 1 } ] } }
      - { id: hides, match: "*", redact: { detect: email } }
      - { id: marks, match: "*", label: { add: [seen] } }
"#;

/// Allocations of one decision, once the tool's name is known.
fn allocations(engine: &Engine, call: &ToolCall) -> u64 {
    let session = SessionState::default();
    let mut effect = engine.decide(call, &session).effect();
    assert_eq!(effect, Effect::Run, "{call:?}");
    let info = measure(|| effect = engine.decide(call, &session).effect());
    assert_eq!(effect, Effect::Run);
    info.count_total
}

fn pay() -> ToolCall {
    let input = json!({ "amount": 7, "to": { "name": "ana" }, "ok": true, "note": "thanks" });
    ToolCall::new("c1", "pay", input).with_context(json!({ "roles": ["clerk"] }))
}

#[test]
fn nothing_is_allocated_where_policies_let_a_call_through() {
    let engine = Engine::from_text(RULES).unwrap();
    assert_eq!(allocations(&engine, &pay()), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "readFile", json!({ "path": "x" }))), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "write", json!({ "amount": 1 }))), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "list", json!({})).on_server("files")), 0);
}

#[test]
fn nothing_is_allocated_however_many_policies_could_match() {
    let demand = |number: usize| {
        let condition = match number % 2 {
            0 => json!([{ "path": "$.input.note", "eq": format!("note{number}") }]),
            _ => json!([{ "path": "$.input.amount", "gt": 1_000 + number }]),
        };
        json!({ "id": format!("p{number}"), "match": { "tool": "pay", "where": condition }, "deny": {} })
    };
    let policies: Vec<Value> = (0..1_000).map(demand).collect();
    let engine = Engine::from_text(&json!({ "policies": policies }).to_string()).unwrap();
    assert_eq!(allocations(&engine, &pay()), 0);
}

#[test]
fn what_a_decision_allocates_does_not_grow_with_the_arguments() {
    let engine = Engine::from_text(RULES).unwrap();
    let mut call = pay();
    call.input["body"] = (0..10_000).map(Value::from).collect();
    assert_eq!(allocations(&engine, &call), 0);
}

#[test]
fn the_first_call_after_rules_were_exchanged_is_no_dearer_than_those_before() {
    let engine = Engine::from_text(RULES).unwrap();
    let calls = [pay(), ToolCall::new("c1", "list", json!({})).on_server("files")];
    let session = SessionState::default();
    calls.iter().for_each(|call| drop(engine.decide(call, &session)));
    engine.replace(callgate::engine::load_text(RULES).unwrap());
    for call in &calls {
        assert_eq!(measure(|| drop(engine.decide(call, &session))).count_total, 0, "{call:?}");
    }
}
