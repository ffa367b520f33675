//! Allocations: deciding a call allocates nothing if no policy matches or all matching ones allow it, a script around its
//! execution copies none of the values that it passes on, and an engine takes little memory.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use callgate::json::{Value, json};
use callgate::{Effect, Engine, OutcomeKind, SessionState, ToolCall, ToolError, ToolExecutor, ToolResponse};

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
fn allowed_call_is_decided_without_allocations() {
    let engine = Engine::from_text(RULES).unwrap();
    assert_eq!(allocations(&engine, &pay()), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "readFile", json!({ "path": "x" }))), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "write", json!({ "amount": 1 }))), 0);
    assert_eq!(allocations(&engine, &ToolCall::new("c1", "list", json!({})).with_server("files")), 0);
}

#[test]
fn decision_allocates_nothing_however_many_policies_could_match() {
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
fn decision_of_many_matching_policies_allocates_nothing() {
    let policy = |number: usize| json!({ "id": format!("p{number}"), "match": "pay", "allow": {} });
    let policies: Vec<Value> = (0..30).map(policy).collect();
    let engine = Engine::from_text(&json!({ "policies": policies }).to_string()).unwrap();
    assert_eq!(engine.decide(&pay(), &SessionState::default()).policies().len(), 30);
    assert_eq!(allocations(&engine, &pay()), 0);
}

#[test]
fn allocations_of_a_decision_do_not_grow_with_the_arguments() {
    let engine = Engine::from_text(RULES).unwrap();
    let mut call = pay();
    call.input["body"] = (0..10_000).map(Value::from).collect();
    assert_eq!(allocations(&engine, &call), 0);
}

/// A tool that returns this immediately.
struct ConstantTool(Value);

impl ToolExecutor for ConstantTool {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(self.0.clone().into())
    }
}

/// Bytes allocated for one whole call.
fn bytes(engine: &Engine, call: &ToolCall, tool: &ConstantTool) -> u64 {
    let mut session = engine.session();
    let mut run = || {
        let own = call.clone();
        let mut outcome = None;
        let info = measure(|| {
            let mut future = pin!(session.execute(own, tool));
            if let Poll::Ready(ended) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                outcome = Some(ended.outcome);
            }
        });
        assert_eq!(outcome, Some(OutcomeKind::Executed), "{call:?}");
        info.bytes_total
    };
    run();
    run()
}

#[test]
fn script_copies_none_of_the_values_it_passes_on() {
    let large = || Value::from((0..5_000).map(|n| json!({ "row": n })).collect::<Vec<_>>());
    let without = Engine::from_text("policies: []").unwrap();
    for (script, output) in [
        ("if input.amount > 100 { throw \"large\"; } next(input)", json!(1)),
        (
            "let out = next(input, options); if context.role == \"clerk\" { out } else { 1 }",
            json!({ "rows": large() }),
        ),
        ("try { throw \"again\"; } catch { next(input); } next(input)", json!(1)),
    ] {
        let rules = json!({ "policies": [{ "id": "wrap", "around": { "script": script } }] });
        let with = Engine::from_text(&rules.to_string()).unwrap();
        let tool = ConstantTool(output);
        let call = |rows: &dyn Fn() -> Value| {
            let call = ToolCall::new("c1", "pay", json!({ "amount": 7, "rows": rows() }));
            call.with_context(json!({ "role": "clerk", "rows": rows() }))
                .with_options(json!({ "rows": rows() }))
        };
        let beyond = |call: &ToolCall| bytes(&with, call, &tool) - bytes(&without, call, &tool);
        let (few, many) = (beyond(&call(&|| json!([]))), beyond(&call(&large)));
        assert!(few < 24_000 && many == few, "{script}: {few} bytes for small, {many} for large arguments");
    }
}

#[test]
fn a_stopped_call_is_decided_without_allocations_until_its_reason_is_asked_for() {
    let rules = r#"
        policies:
          - { id: large, match: { tool: pay, where: [ { path: $.input.amount, gt: 5 } ] }, deny: { message: Too much. } }
          - { id: ask, match: send, description: Ask first., approval: {} }
          - { id: stop, match: { tool: wipe, where: [ { path: $.input.all, eq: true } ] }, halt: {} }
    "#;
    let engine = Engine::from_text(rules).unwrap();
    let session = SessionState::default();
    for (call, effect, message) in [
        (pay(), Effect::Deny, "Too much."),
        (ToolCall::new("c1", "send", json!({ "to": "eve" })), Effect::Suspend, "Ask first."),
        (
            ToolCall::new("c1", "wipe", json!({ "all": true })),
            Effect::Halt,
            "`wipe` is stopped by the policy `stop`",
        ),
    ] {
        assert_eq!(engine.decide(&call, &session).reason().message, message);
        let mut found = None;
        let info = measure(|| found = Some(engine.decide(&call, &session)));
        assert_eq!((found.unwrap().effect(), info.count_total), (effect, 0), "{call:?}");
        let mut found = None;
        let info = measure(|| found = Some(engine.effect(&call, &session)));
        assert_eq!((found, info.count_total), (Some(effect), 0), "{call:?}");
    }
}

#[test]
fn a_whole_call_allocates_less_than_two_kilobytes_whatever_its_arguments() {
    let engine = Engine::from_text("policies: [{ id: all, match: '*', allow: {} }]").unwrap();
    let call = |text: &str| ToolCall::new("c1", "read", json!({ "path": "a.txt", "text": text }));
    let (small, large) = (call("a"), call(&"a".repeat(10_000)));
    let tool = ConstantTool(Value::Null);
    let (few, many) = (bytes(&engine, &small, &tool), bytes(&engine, &large, &tool));
    // The futures, the decision and the outcome of the call, without the futures of what few calls need.
    assert!(few < 2_048 && many == few, "{few} bytes for small, {many} for large arguments");
}

#[test]
fn an_engine_takes_little_memory_for_each_policy() {
    // Many policies read the same arguments, as in rules that people write.
    let policy = |number: usize| {
        let (path, kind) = match number % 4 {
            0 => ("$.input.amount", "deny"),
            1 => ("$.input.customer.tier", "approval"),
            2 => ("$.input.region", "allow"),
            _ => ("$.input.amount", "allow"),
        };
        let tests = json!([{ "path": path, "ne": format!("value{number}") }, { "path": "$.input.retries", "gt": number }]);
        json!({ "id": format!("p{number}"), "match": { "tool": format!("tool{}", number / 16), "where": tests }, kind: {} })
    };
    let bytes = |policies: usize| {
        let rules = json!({ "policies": (0..policies).map(policy).collect::<Vec<_>>() }).to_string();
        let mut engine = None;
        measure(|| engine = Some(Engine::from_text(&rules).unwrap())).bytes_current
    };
    let each = (bytes(2_000) - bytes(1_000)) / 1_000;
    assert!(each < 1_500, "{each} bytes");
}

#[test]
fn first_call_after_a_reload_allocates_no_more_than_earlier_ones() {
    let engine = Engine::from_text(RULES).unwrap();
    let calls = [pay(), ToolCall::new("c1", "list", json!({})).with_server("files")];
    let session = SessionState::default();
    calls.iter().for_each(|call| drop(engine.decide(call, &session)));
    engine.replace(callgate::engine::load_text(RULES).unwrap());
    for call in &calls {
        assert_eq!(measure(|| drop(engine.decide(call, &session))).count_total, 0, "{call:?}");
    }
}

/// Polls a future that waits for nothing. `None` if it waits.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// The id of a call by its number.
type CallIds = fn(u64) -> String;

/// The bytes that stay allocated after 1,000 calls, once 1,000 others have been made.
fn kept_bytes(mut call: impl FnMut(u64)) -> i64 {
    (0..1_000).for_each(&mut call);
    measure(|| (1_000..2_000).for_each(&mut call)).bytes_current
}

#[test]
fn sessions_keep_nothing_of_calls_that_need_no_approval() {
    let rules = r#"
        policies:
          - { id: reads, match: read, label: { add: [seen] } }
          - { id: stay, match: delete, deny: { message: Nothing is deleted } }
          - { id: large, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, approval: {} }
    "#;
    let engine = Engine::from_text(rules).unwrap();
    let tool = ConstantTool(json!({ "done": true }));
    let ids: [(&str, CallIds); 3] = [
        ("without an id", |_| String::new()),
        ("each with its own id", |number| format!("toolu_{number:08}")),
        ("with ids that repeat", |number| format!("c{}", number % 10)),
    ];
    for (name, id) in ids {
        let calls = |number: u64| {
            ["read", "delete", "pay"].map(|tool| ToolCall::new(id(number), tool, json!({ "amount": 7 })))
        };
        let mut session = engine.session();
        let kept = kept_bytes(|number| {
            for call in calls(number) {
                ready(session.execute(call, &tool)).unwrap();
            }
        });
        assert_eq!(kept, 0, "single calls {name}");
        let mut session = engine.session();
        let kept =
            kept_bytes(|number| drop(ready(session.execute_round(calls(number).into(), &tool)).unwrap()));
        assert_eq!(kept, 0, "rounds of calls {name}");
        let session = engine.session().concurrent();
        let kept = kept_bytes(|number| {
            for call in calls(number) {
                ready(session.execute(call, &tool)).unwrap();
            }
        });
        assert_eq!(kept, 0, "calls of a concurrent session {name}");
    }
}
