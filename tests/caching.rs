//! `cache`: what is stored, for whom, for how long, and what invalidates it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callgate::host::{Clock, ManualClock};
use callgate::json::{Value, json};
use callgate::{Engine, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse};
use proptest::prelude::*;
use tokio::sync::Notify;

use crate::fixtures::{Tool, call, kind_and_code, noon, policy, rules, run};

const CACHED: (&str, &str) = ("cached", "cached");

fn outcomes(engine: &Engine, clock: &ManualClock, tool: &Tool, calls: &[ToolCall]) -> Vec<&'static str> {
    calls
        .iter()
        .map(|call| clock.block_on(engine.session().execute(call.clone(), tool)).outcome.name())
        .collect()
}

#[test]
fn ttl_forever_lasts_until_eviction() {
    let (engine, clock) = policy("cache: { ttl: forever, max_entries: 1 }");
    let tool = Tool::counting(&clock);
    let search = |q: u32| {
        let outcome = clock.block_on(engine.session().execute(call("search", json!({ "q": q })), &tool));
        outcome.outcome.name()
    };
    assert_eq!(search(1), "executed");
    clock.advance(Duration::from_secs(1000 * 365 * 24 * 3600));
    assert_eq!((search(1), search(2), search(1)), ("cached", "executed", "executed"));
}

#[test]
fn cache_hit_is_reported_and_equals_the_result_of_the_tool() {
    let (engine, clock) = policy("cache: { ttl: 1m }");
    let tool = Tool::counting(&clock);
    let mut session = engine.session();
    let first = clock.block_on(session.execute(call("search", json!({ "a": 1, "b": [2] })), &tool));
    clock.advance(Duration::from_secs(12));
    // The order of keys and the spelling of a number make no difference.
    let second = clock.block_on(session.execute(call("search", json!({ "b": [2.0], "a": 1e0 })), &tool));
    assert_eq!((first.outcome, second.output), (OutcomeKind::Executed, first.output));
    assert_eq!(second.outcome.name(), "cached");
    assert_eq!(second.reason.code, "cached");
    assert_eq!(second.reason.policy.as_deref(), Some("p"));
    assert_eq!(second.reason.message, "the tool returned this 12s ago for the same call");
    assert_eq!(second.policies[0].verdict, callgate::call::Verdict::Answer);
    assert_eq!(tool.count(), 1);
    assert_eq!(session.state().document()["calls"], json!({ "search": 1 }), "a hit does not run the tool");
    for other in [json!({ "a": 1 }), json!({ "a": 1, "b": ["2"] }), json!({ "a": "1", "b": [2] })] {
        assert_eq!(outcomes(&engine, &clock, &tool, &[call("search", other)]), ["executed"]);
    }
    let elsewhere = call("search", json!({ "a": 1, "b": [2] })).with_server("other");
    assert_eq!(outcomes(&engine, &clock, &tool, &[elsewhere]), ["executed"]);
}

/// With a sliding TTL, a result of 5 s that is read every 4 s would never expire.
#[test]
fn ttl_counts_from_the_write_however_often_an_entry_is_read() {
    let (engine, clock) = policy("cache: { ttl: 5s }");
    let tool = Tool::counting(&clock);
    let mut ends = Vec::new();
    for _ in 0..6 {
        ends.extend(outcomes(&engine, &clock, &tool, &[call("search", json!({}))]));
        clock.advance(Duration::from_secs(2));
    }
    assert_eq!(ends, ["executed", "cached", "cached", "executed", "cached", "cached"]);
}

#[test]
fn only_real_tool_results_are_stored() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: c, match: '*', cache: { ttl: 1h } }
          - { id: answer, match: { tool: search, where: { path: $.context.demo, eq: true } }, respond: { output: demo } }
          - { id: trial, mode: shadow, match: lookup, cache: { ttl: 1h } }
          - { id: mend, match: broken, recover: { message: 'try again' } }",
    )
    .clock(clock.clone())
    .build();
    let tool = Tool::counting(&clock);
    let search = call("search", json!({}));
    let demo = search.clone().with_context(json!({ "demo": true }));
    assert_eq!(
        outcomes(&engine, &clock, &tool, &[demo.clone(), search.clone(), search, demo]),
        ["answered", "executed", "cached", "answered"]
    );
    let failing = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("down")))]);
    assert_eq!(outcomes(&engine, &clock, &failing, &vec![call("other", json!({})); 2]), ["failed", "failed"]);
    assert_eq!(
        outcomes(&engine, &clock, &failing, &vec![call("broken", json!({})); 2]),
        ["recovered", "recovered"]
    );
    struct Dry;
    impl ToolExecutor for Dry {
        async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
            Ok(ToolResponse { dry: true, ..Value::Null.into() })
        }
    }
    for _ in 0..2 {
        let outcome = clock.block_on(engine.session().execute(call("dry", json!({})), &Dry));
        assert_eq!((outcome.outcome, outcome.dry), (OutcomeKind::Executed, true));
    }
    let engine = rules("policies: [ { id: trial, mode: shadow, match: '*', cache: { ttl: 1h } } ]")
        .clock(clock.clone())
        .build();
    assert_eq!(
        outcomes(&engine, &clock, &tool, &vec![call("search", json!({})); 2]),
        ["executed", "executed"]
    );
}

#[test]
fn gate_runs_before_a_hit_and_settle_after_it() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: c, match: search, cache: { ttl: 1h, scope: shared } }
          - { id: no, match: { tool: search, where: { path: $.context.guest, eq: true } }, deny: {} }
          - { id: trim, match: search, transform: { input: [ { path: $.input.q, trim: true } ], output: [ { path: $.output.secret, remove: true } ] } }
          - { id: hide, match: search, redact: { in: [output], detect: [email] } }
          - { id: seen, match: search, label: { add: [found] } }
          - { id: fact, match: search, fact: { name: result, value: $.output } }",
    )
    .clock(clock.clone())
    .build();
    let gives = json!({ "secret": 1, "mail": "ana@example.com" });
    let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(gives))]);
    let input = |q: &str| call("search", json!({ "q": q }));
    let guest = input("x").with_context(json!({ "guest": true }));
    assert_eq!(outcomes(&engine, &clock, &tool, &[input(" x"), guest]), ["executed", "denied"]);
    let mut session = engine.session();
    let hit = clock.block_on(session.execute(input("x  "), &tool));
    assert_eq!(kind_and_code(&hit), CACHED, "the key is computed from the final arguments");
    assert_eq!(hit.output, Some(json!({ "mail": "[email]" })));
    assert_eq!(session.state().document()["labels"], json!(["found"]));
    assert_eq!(session.state().document()["facts"]["result"], json!({ "mail": "[email]" }));
}

#[test]
fn scope_determines_who_shares_a_result() {
    let ana = json!({ "tenant": "t1", "principal": "ana" });
    let bob = json!({ "tenant": "t1", "principal": "bob" });
    let other_ana = json!({ "tenant": "t2", "principal": "ana" });
    let without_tenant = json!({ "principal": "ana" });
    let nobody = json!(null);
    let contexts = [&ana, &ana, &bob, &other_ana, &without_tenant, &without_tenant, &nobody, &nobody];
    let (hit, miss) = ("cached", "executed");
    for (scope, expected) in [
        ("", [miss, hit, miss, miss, miss, hit, miss, hit]),
        (", scope: principal", [miss, hit, miss, miss, miss, hit, miss, miss]),
        (", scope: tenant", [miss, hit, hit, miss, miss, miss, miss, miss]),
        (", scope: session", [miss, miss, miss, miss, miss, miss, miss, miss]),
        (", scope: shared", [miss, hit, hit, hit, hit, hit, hit, hit]),
    ] {
        let (engine, clock) = policy(&format!("cache: {{ ttl: 1h{scope} }}"));
        let tool = Tool::counting(&clock);
        let calls = contexts.map(|context| call("search", json!({})).with_context(context.clone()));
        assert_eq!(outcomes(&engine, &clock, &tool, &calls), expected, "scope {scope}");
        if scope.contains("session") {
            let ends = run(&clock, &mut engine.session().with_name("s"), &tool, &calls[..3]);
            assert!(ends[1..].iter().all(|outcome| kind_and_code(outcome) == CACHED));
            let ends = run(&clock, &mut engine.session().with_name("s"), &tool, &calls[..1]);
            assert_eq!(ends[0].outcome.name(), "executed", "a session is one run, whatever its name");
        }
    }
}

#[test]
fn key_determines_which_calls_are_equal() {
    let (engine, clock) = policy("cache: { ttl: 1h, key: [$.input.query, '$.input.tags[*]'] }");
    let tool = Tool::counting(&clock);
    let calls = [
        json!({ "query": "x", "page": 1 }),
        json!({ "query": "x", "page": 2 }),
        json!({ "query": "x", "tags": ["a", "b"] }),
        json!({ "query": "x", "tags": ["ab"] }),
        json!({ "query": null }),
        json!({}),
        // A string has no members: such a call bypasses the cache.
        json!({ "query": "x", "tags": "a" }),
        json!({ "query": "x", "tags": "a" }),
    ]
    .map(|input| call("search", input));
    let (hit, miss) = ("cached", "executed");
    assert_eq!(outcomes(&engine, &clock, &tool, &calls), [miss, hit, miss, miss, miss, miss, miss, miss]);
}

#[test]
fn expression_can_compute_the_key() {
    let (engine, clock) = policy("cache: { ttl: 1h, key: { expr: 'to_lower(trim(input.query))' } }");
    let tool = Tool::counting(&clock);
    let calls = [
        json!({ "query": "Rust" }),
        json!({ "query": " rust ", "page": 2 }),
        json!({ "query": "rhai" }),
        json!({ "query": 5 }),
        json!({ "query": 5 }),
    ]
    .map(|input| call("search", input));
    let (hit, miss) = ("cached", "executed");
    assert_eq!(outcomes(&engine, &clock, &tool, &calls), [miss, hit, miss, miss, miss]);
}

#[test]
fn size_is_bounded_and_the_least_recently_used_entry_is_evicted() {
    for (max_entries, expected) in [
        (1, ["executed", "executed", "executed", "executed", "executed", "executed"]),
        (2, ["executed", "executed", "cached", "executed", "cached", "executed"]),
        (3, ["executed", "executed", "cached", "executed", "cached", "cached"]),
    ] {
        let (engine, clock) = policy(&format!("cache: {{ ttl: 1h, max_entries: {max_entries} }}"));
        let tool = Tool::counting(&clock);
        let calls = ["a", "b", "a", "c", "a", "b"].map(|q| call("search", json!({ "q": q })));
        assert_eq!(outcomes(&engine, &clock, &tool, &calls), expected, "{max_entries}");
    }
}

#[test]
fn tool_that_may_change_data_invalidates_entries_even_on_failure() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: c, match: get_customer, cache: { ttl: 1h, invalidate_on: ['update_*', delete_customer] } }
          - { id: slow, match: update_customer, timeout: 1s }
          - { id: no, match: delete_customer, deny: {} }",
    )
    .clock(clock.clone())
    .build();
    let tool = Tool::counting(&clock);
    let get = || call("get_customer", json!({}));
    let failing = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("half done")))]);
    let hanging = Tool::scripted(&clock, [(Duration::from_secs(60), Ok(json!({})))]);
    for (name, changing, change, after) in [
        ("another tool", &tool, call("search", json!({})), "cached"),
        ("a change", &tool, call("update_order", json!({})), "executed"),
        ("a change that fails", &failing, call("update_order", json!({})), "executed"),
        ("a change that times out", &hanging, call("update_customer", json!({})), "executed"),
        ("a change that is denied", &tool, call("delete_customer", json!({})), "cached"),
    ] {
        outcomes(&engine, &clock, &tool, &[get()]);
        outcomes(&engine, &clock, changing, &[change]);
        assert_eq!(outcomes(&engine, &clock, &tool, &[get()]), [after], "{name}");
    }
}

/// Each call blocks until the test releases it.
#[derive(Clone, Default)]
struct BlockedTool {
    started: Arc<AtomicUsize>,
    go: Arc<Notify>,
}

impl ToolExecutor for BlockedTool {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        if call.input.get("at_once").is_none() {
            self.go.notified().await;
        }
        match call.input.get("fails") {
            Some(_) => Err(ToolError::new("down")),
            None => Ok(json!(number).into()),
        }
    }
}

async fn let_tasks_run() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn concurrent_misses_are_a_single_flight() {
    let engine = rules("policies: [ { id: c, match: search, cache: { ttl: 1h } } ]").build();
    let held = BlockedTool::default();
    let spawn = |input: Value| {
        let (engine, held) = (engine.clone(), held.clone());
        tokio::spawn(async move { engine.session().execute(call("search", input), &held).await })
    };
    let tasks: Vec<_> = (0..20).map(|_| spawn(json!({}))).collect();
    let_tasks_run().await;
    assert_eq!(held.started.load(Ordering::SeqCst), 1);
    let other = spawn(json!({ "q": "another key", "at_once": true })).await.unwrap();
    assert_eq!(other.outcome, OutcomeKind::Executed, "other keys do not wait");
    held.go.notify_waiters();
    let mut ends = Vec::new();
    for task in tasks {
        let outcome = task.await.unwrap();
        assert_eq!(outcome.output, Some(json!(1)));
        ends.push(outcome.outcome);
    }
    assert_eq!(ends.iter().filter(|end| **end == OutcomeKind::Executed).count(), 1);
    assert_eq!(ends.iter().filter(|end| **end == OutcomeKind::Cached).count(), 19);
}

#[tokio::test]
async fn when_a_single_flight_fails_the_waiting_calls_run_themselves() {
    for gives_up in [false, true] {
        let engine = rules("policies: [ { id: c, match: search, cache: { ttl: 1h } } ]").build();
        let held = BlockedTool::default();
        let spawn = || {
            let (engine, held) = (engine.clone(), held.clone());
            tokio::spawn(async move {
                engine.session().execute(call("search", json!({ "fails": true })), &held).await
            })
        };
        let first = spawn();
        let_tasks_run().await;
        let others: Vec<_> = (0..5).map(|_| spawn()).collect();
        let_tasks_run().await;
        assert_eq!(held.started.load(Ordering::SeqCst), 1);
        if gives_up {
            first.abort();
        } else {
            held.go.notify_waiters();
        }
        let_tasks_run().await;
        assert_eq!(held.started.load(Ordering::SeqCst), 6, "no call waits a second time");
        held.go.notify_waiters();
        for other in others {
            assert_eq!(other.await.unwrap().outcome, OutcomeKind::Failed);
        }
    }
}

#[tokio::test]
async fn result_read_before_a_change_is_not_stored_after_it() {
    let engine = rules("policies: [ { id: c, match: get, cache: { ttl: 1h, invalidate_on: set } } ]").build();
    let held = BlockedTool::default();
    let reading = {
        let (engine, held) = (engine.clone(), held.clone());
        tokio::spawn(async move { engine.session().execute(call("get", json!({})), &held).await })
    };
    let_tasks_run().await;
    engine.session().execute(call("set", json!({ "at_once": true })), &held).await;
    held.go.notify_waiters();
    assert_eq!(reading.await.unwrap().outcome, OutcomeKind::Executed);
    let again = {
        let (engine, held) = (engine.clone(), held.clone());
        tokio::spawn(async move { engine.session().execute(call("get", json!({})), &held).await })
    };
    let_tasks_run().await;
    held.go.notify_waiters();
    assert_eq!(again.await.unwrap().outcome, OutcomeKind::Executed, "the tool is called again");
}

#[test]
fn entries_survive_a_reload_unless_their_key_or_scope_changed() {
    let text = |cache: &str| format!("policies: [ {{ id: c, match: search, cache: {{ {cache} }} }} ]");
    let clock = noon();
    let engine = rules(&text("ttl: 1h")).clock(clock.clone()).build();
    let tool = Tool::counting(&clock);
    let one = |cache: &str| {
        engine.replace(callgate::engine::load_text(&text(cache)).unwrap());
        outcomes(&engine, &clock, &tool, &[call("search", json!({ "q": 1 }))])[0]
    };
    assert_eq!(one("ttl: 1h"), "executed");
    assert_eq!(one("ttl: 2h, max_entries: 7"), "cached");
    assert_eq!(one("ttl: 2h, key: $.input.q"), "executed");
    assert_eq!(one("ttl: 2h, scope: shared"), "executed");
    assert_eq!(one("ttl: 1h"), "cached");
}

proptest! {
    /// Against a model that stores everything: a hit equals the last result of the tool for the same call, is not older than the
    /// TTL, and does not precede a change.
    #[test]
    fn cache_is_never_stale(steps in prop::collection::vec((0u8..8, 0u64..40), 1..60)) {
        let (ttl, clock) = (60, noon());
        let engine = rules("policies: [ { id: c, match: get, cache: { ttl: 60s, max_entries: 3, invalidate_on: set } } ]")
            .clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        let mut given: Vec<(u8, i64, Value)> = Vec::new();
        let mut changed = i64::MIN;
        for (what, pause) in steps {
            clock.advance(Duration::from_secs(pause));
            let now = clock.now().as_second();
            if what == 7 {
                clock.block_on(engine.session().execute(call("set", json!({})), &tool));
                (changed, given) = (now, Vec::new());
                continue;
            }
            let outcome = clock.block_on(engine.session().execute(call("get", json!({ "q": what })), &tool));
            let output = outcome.output.unwrap();
            let last = given.iter().rev().find(|(q, ..)| *q == what);
            match outcome.outcome {
                OutcomeKind::Executed => given.push((what, now, output)),
                _ => {
                    let (_, at, gave) = last.expect("a hit without an earlier result");
                    prop_assert_eq!(&output, gave);
                    prop_assert!(now - at < ttl && *at >= changed);
                }
            }
        }
    }
}

/// A key is read when the call runs: what depends on the time is not shared by calls at other times.
#[test]
fn key_that_depends_on_the_time_is_never_shared_across_it() {
    for key in ["now", "'now > time(\"2026-01-01T00:00:00Z\")'", "late", "[$.now]"] {
        let text = format!(
            "let: {{ late: 'now > time(\"2026-01-01T00:00:00Z\") + duration(\"1h\")' }}\n\
             policies: [{{ id: p, match: search, cache: {{ ttl: forever, key: {key} }} }}]"
        );
        let clock = noon();
        let rules = callgate::load_text(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let engine = Engine::builder(rules).clock(clock.clone()).build();
        let tool = Tool::counting(&clock);
        assert_eq!(outcomes(&engine, &clock, &tool, &[call("search", json!({}))]), ["executed"], "{key}");
        clock.advance(Duration::from_secs(3 * 365 * 24 * 3600));
        let later = outcomes(&engine, &clock, &tool, &[call("search", json!({}))]);
        assert_eq!(later, ["executed"], "{key}");
    }
}
