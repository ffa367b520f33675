//! `retry` and `timeout`: when a tool is called again, when a call is cancelled, and how policies nest.

use std::time::Duration;

use callgate::host::{Clock, ManualClock};
use callgate::json::{Value, json};
use callgate::{Engine, OutcomeKind, ToolDescriptor, ToolError};

use crate::fixtures::{Tool, call, kind_and_code, noon, policy, rules};

fn failing(kinds: &[&str]) -> Vec<(Duration, Result<Value, ToolError>)> {
    let error = |kind: &&str| match *kind {
        "ok" => (Duration::ZERO, Ok(json!("done"))),
        kind => (Duration::ZERO, Err(ToolError::new(format!("status {kind}")).with_kind(kind))),
    };
    kinds.iter().map(error).collect()
}

/// The outcome of a call, the number of tool calls, and the time on the clock.
fn end(engine: &Engine, clock: &ManualClock, tool: &Tool) -> (&'static str, usize, Duration) {
    let start = clock.now();
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), tool));
    let attempts = usize::try_from(outcome.attempts.unwrap_or(1)).unwrap();
    assert_eq!(attempts, tool.count().max(1), "the outcome counts every attempt");
    (outcome.outcome.name(), tool.count(), Duration::try_from(clock.now().duration_since(start)).unwrap())
}

#[test]
fn failing_tool_is_retried_with_growing_delays() {
    let backoff = "backoff: { initial: 100ms, factor: 3, max: 2s, jitter: false }";
    let ms = Duration::from_millis;
    for (script, attempts, expected) in [
        (&["ok"][..], 3, ("executed", 1, ms(0))),
        (&["500", "ok"], 3, ("executed", 2, ms(100))),
        (&["500", "503", "ok"], 3, ("executed", 3, ms(400))),
        (&["500"], 3, ("failed", 3, ms(400))),
        (&["500"], 6, ("failed", 6, ms(100 + 300 + 900 + 2000 + 2000))),
    ] {
        let (engine, clock) =
            policy(&format!("retry: {{ attempts: {attempts}, idempotent: true, {backoff} }}"));
        let tool = Tool::scripted(&clock, failing(script));
        assert_eq!(end(&engine, &clock, &tool), expected, "{script:?}");
    }
}

#[test]
fn jitter_only_shortens_the_delays() {
    let mut pauses = Vec::new();
    for seed in 0..50 {
        let clock = noon();
        let engine = rules("policies: [ { id: p, match: search, retry: { attempts: 2, idempotent: true, backoff: { initial: 1s } } } ]")
            .clock(clock.clone())
            .seed(seed)
            .build();
        let tool = Tool::scripted(&clock, failing(&["500", "ok"]));
        pauses.push(end(&engine, &clock, &tool).2.as_millis());
    }
    assert!(pauses.iter().all(|pause| (500..=1000).contains(pause)), "{pauses:?}");
    pauses.sort();
    pauses.dedup();
    assert!(pauses.len() > 30, "{pauses:?}");
}

#[test]
fn only_matching_errors_are_retried() {
    for (on, kind, calls) in [
        ("timeout", "timeout", 2),
        ("timeout", "500", 1),
        ("[timeout, '/5\\d\\d/']", "503", 2),
        ("'status 4*'", "429", 2),
        ("'/5\\d\\d/'", "404", 1),
    ] {
        let (engine, clock) = policy(&format!("retry: {{ attempts: 2, idempotent: true, on: {on} }}"));
        let tool = Tool::scripted(&clock, failing(&[kind]));
        assert_eq!(end(&engine, &clock, &tool).1, calls, "{on} and {kind}");
    }
}

#[test]
fn only_idempotent_tools_are_retried() {
    for (policy, annotations, calls) in [
        ("", json!(null), 1),
        ("", json!({ "idempotentHint": true }), 2),
        ("", json!({ "readOnlyHint": true }), 2),
        ("", json!({ "readOnlyHint": false, "destructiveHint": true }), 1),
        ("", json!({ "idempotentHint": "true" }), 1),
        (", idempotent: true", json!(null), 2),
        (", idempotent: false", json!({ "readOnlyHint": true }), 1),
    ] {
        let clock = noon();
        let descriptor: ToolDescriptor =
            callgate::json::from_value(json!({ "name": "search", "annotations": annotations })).unwrap();
        let text = format!("policies: [ {{ id: p, match: search, retry: {{ attempts: 2{policy} }} }} ]");
        let engine = rules(&text).tools([descriptor]).clock(clock.clone()).build();
        let tool = Tool::scripted(&clock, failing(&["500"]));
        assert_eq!(end(&engine, &clock, &tool).1, calls, "{policy} {annotations}");
    }
}

#[test]
fn undecided_condition_retries_nothing_and_keeps_a_timeout() {
    let where_ = "where: { path: $.input.n, gt: 1 }";
    let (clock, input) = (noon(), json!({ "n": "2" }));
    let text = format!(
        "policies:
          - {{ id: again, match: {{ tool: search, {where_} }}, retry: {{ attempts: 3, idempotent: true }} }}
          - {{ id: late, match: {{ tool: search, {where_} }}, timeout: 1s }}"
    );
    let engine = rules(&text).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, [(Duration::from_secs(5), Ok(json!(1)))]);
    let outcome = clock.block_on(engine.session().execute(call("search", input), &tool));
    assert_eq!(kind_and_code(&outcome), ("failed", "timeout"));
    assert_eq!(tool.count(), 1);
}

#[test]
fn slow_tool_times_out_and_the_model_can_read_why() {
    let (engine, clock) = policy("timeout: 30s");
    let start = clock.now();
    let slow = Tool::scripted(&clock, [(Duration::from_secs(600), Ok(json!(1)))]);
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &slow));
    assert_eq!(kind_and_code(&outcome), ("failed", "timeout"));
    assert_eq!(outcome.reason.policy.as_deref(), Some("p"));
    assert_eq!(
        outcome.error.as_deref(),
        Some("`search` took longer than 30s and was given up; it may still have taken effect")
    );
    assert_eq!(clock.now().duration_since(start).as_secs(), 30);
    let quick = Tool::scripted(&clock, [(Duration::from_secs(29), Ok(json!(1)))]);
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &quick));
    assert_eq!(outcome.outcome, OutcomeKind::Executed);
}

/// At equal priority, from the outside: cache, then retry, then timeout; priority changes that.
#[test]
fn policies_nest_by_priority_and_then_by_kind() {
    let (slow, done) = (Duration::from_secs(20), Duration::from_secs(1));
    let script = || vec![(slow, Ok(json!(1))), (slow, Ok(json!(2))), (done, Ok(json!(3)))];
    let text = |first: &str, second: &str| {
        format!(
            "policies:
              - {{ id: t, match: search, {first} timeout: 10s }}
              - {{ id: r, match: search, {second} retry: {{ attempts: 3, idempotent: true, on: timeout, backoff: {{ initial: 1s, jitter: false }} }} }}
              - {{ id: c, match: search, cache: {{ ttl: 1h }} }}"
        )
    };
    let clock = noon();
    let engine = rules(&text("", "")).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, script());
    let start = clock.now();
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
    assert_eq!((outcome.outcome, outcome.output.clone()), (OutcomeKind::Executed, Some(json!(3))));
    assert_eq!(
        clock.now().duration_since(start).as_secs(),
        10 + 1 + 10 + 2 + 1,
        "each attempt has its own timeout"
    );
    let order: Vec<&str> = outcome.policies.iter().map(|policy| policy.id.as_str()).collect();
    assert_eq!(order, ["c", "r", "t"]);
    let hit = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
    assert_eq!(hit.outcome, OutcomeKind::Cached);

    let engine = rules(&text("priority: 5,", "")).clock(clock.clone()).build();
    let tool = Tool::scripted(&clock, script());
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
    assert_eq!(kind_and_code(&outcome), ("failed", "timeout"));
    assert_eq!(tool.count(), 1, "the timeout wraps the retry and ends all of it");
}

#[test]
fn timeout_can_be_recovered() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: t, match: search, timeout: 5s }
          - { id: r, match: search, recover: { on: timeout, message: 'Too slow. Ask for less.' } }",
    )
    .clock(clock.clone())
    .build();
    let tool = Tool::scripted(&clock, [(Duration::from_secs(60), Ok(json!(1)))]);
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
    assert_eq!(
        (outcome.outcome, outcome.output),
        (OutcomeKind::Recovered, Some(json!("Too slow. Ask for less.")))
    );
}

#[test]
fn panicking_tool_counts_as_failed() {
    struct Panicking;
    impl callgate::ToolExecutor for Panicking {
        async fn execute(&self, _: &callgate::ToolCall) -> Result<callgate::ToolResponse, ToolError> {
            panic!("a mistake in the tool")
        }
    }
    let (engine, clock) = policy("retry: { attempts: 2, on: timeout, idempotent: true }");
    let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &Panicking));
    assert_eq!(kind_and_code(&outcome), ("failed", "tool_error"));
    assert_eq!(outcome.error.as_deref(), Some("the tool panicked"));
}
