//! Interaction of the policies around a call, including refusals and failures halfway.

mod caches;
mod reloads;

use std::sync::Arc;
use std::time::Duration;

use callgate::host::{CacheLookup, Clock, ManualClock, StoreFuture};
use callgate::json::{Value, json};
use callgate::{Engine, OutcomeKind, Session, ToolCall, ToolError, engine};

use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules, run};

fn engine_at(text: &str) -> (Engine, ManualClock) {
    let clock = noon();
    (rules(text).clock(clock.clone()).build(), clock)
}

fn outcome_kinds(
    clock: &ManualClock,
    session: &mut Session,
    tool: &Tool,
    calls: &[ToolCall],
) -> Vec<&'static str> {
    run(clock, session, tool, calls).iter().map(|outcome| outcome.outcome.name()).collect()
}

#[test]
fn run_limits_count_separately_and_shadow_limits_consume_nothing() {
    let (engine, clock) = engine_at(
        "policies:
          - { id: few, match: search, rate_limit: { limit: 2, per: run } }
          - { id: many, rate_limit: { limit: 5, per: run } }
          - { id: trial, mode: shadow, match: '*', rate_limit: { limit: 1, per: run } }",
    );
    let tool = Tool::counting(&clock);
    let layer =
        engine::load_text("policies: [ { id: few, match: '*', rate_limit: { limit: 4, per: run } } ]")
            .unwrap();
    let mut session = engine.session().with_layer(layer);
    let calls: Vec<ToolCall> =
        ["search", "search", "search", "other", "other", "other"].map(|tool| call(tool, json!({}))).to_vec();
    let (yes, no) = ("executed", "denied");
    assert_eq!(
        outcome_kinds(&clock, &mut session, &tool, &calls),
        [yes, yes, no, yes, yes, no],
        "the layer allows four in total"
    );
    let mut session = engine.session();
    assert_eq!(outcome_kinds(&clock, &mut session, &tool, &calls), [yes, yes, no, yes, yes, yes]);
    assert_eq!(outcome_kinds(&clock, &mut session, &tool, &calls[3..4]), [no]);
}

#[test]
fn counts_of_a_stopped_call_are_visible_to_later_calls_of_the_round() {
    let text = |limit: &str| {
        format!(
            "policies:
              - {{ id: no, match: {{ tool: pay, where: {{ path: $.input.large, eq: true }} }}, deny: {{}} }}
              - {{ id: limit, match: pay, rate_limit: {{ limit: 1, count: attempts, {limit} }} }}"
        )
    };
    let (large, small) = (call("pay", json!({ "large": true })), call("pay", json!({})));
    for (limit, round, expected) in [
        ("per: run", vec![&large, &small], ["denied", "denied"]),
        ("per: 1h", vec![&large, &small], ["denied", "denied"]),
        ("per: run", vec![&small, &small], ["executed", "denied"]),
        ("per: run, on_exceed: halt", vec![&large, &small], ["denied", "halted"]),
        ("per: 1h, on_exceed: halt", vec![&small, &large], ["executed", "halted"]),
    ] {
        let (engine, clock) = engine_at(&text(limit));
        let tool = Tool::counting(&clock);
        let round = round.into_iter().cloned().collect();
        let outcomes = clock.block_on(engine.session().execute_round(round, &tool));
        let ends: Vec<_> = outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
        assert_eq!(ends, expected, "{limit}");
    }
    // A halt halfway stops the siblings after it, whatever was decided for them.
    let (engine, clock) = engine_at(&text("per: 1h, on_exceed: halt, key: $.input.key"));
    let tool = Tool::counting(&clock);
    let mut session = engine.session();
    clock.block_on(session.execute(large.clone(), &tool));
    let outcomes = clock.block_on(session.execute_round(vec![large, call("other", json!({}))], &tool));
    let ends: Vec<_> = outcomes.iter().map(kind_and_code).collect();
    assert_eq!(ends, [("halted", "rate_limited"), ("halted", "session_halted")]);
    assert_eq!(tool.count(), 0);
}

#[test]
fn attempt_counts_even_if_its_arguments_are_invalid() {
    let (engine, clock) = engine_at(
        "policies:
          - { id: shape, match: pay, validate: { schema: { type: object, required: [amount] } } }
          - { id: tries, match: pay, rate_limit: { limit: 3, per: run, count: attempts, on_exceed: halt } }
          - { id: runs, match: pay, rate_limit: { limit: 1, per: 1h } }",
    );
    let tool = Tool::counting(&clock);
    let calls = [json!({}), json!({}), json!({ "amount": 1 }), json!({})].map(|input| call("pay", input));
    let found = outcome_kinds(&clock, &mut engine.session(), &tool, &calls);
    assert_eq!(found, ["invalid", "invalid", "executed", "halted"]);
}

#[test]
fn refused_call_is_not_made_to_wait() {
    let (engine, clock) = engine_at(
        "policies:
          - { id: no, match: pay, deny: { code: never } }
          - { id: tries, match: '*', rate_limit: { limit: 1, per: 1h, count: attempts, on_exceed: wait, max_wait: 2h } }",
    );
    let (tool, start) = (Tool::counting(&clock), clock.now());
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("pay", json!({})); 3]);
    assert!(outcomes.iter().all(|outcome| kind_and_code(outcome) == ("denied", "never")), "{outcomes:?}");
    assert_eq!(clock.now(), start);
    // Other calls wait for the limit, even if they require approval afterwards.
    assert_eq!(
        outcome_kinds(&clock, &mut engine.session(), &tool, &[call("search", json!({}))]),
        ["executed"]
    );
    assert_eq!(clock.now().duration_since(start).as_hours(), 1);
}

/// Rules with a script around every call of `search`, and these other policies.
fn with_script(script: &str, others: &str) -> (Engine, ManualClock) {
    let script = json!(script);
    engine_at(&format!(
        "policies:\n  - {{ id: wrap, match: search, around: {{ script: {script} }} }}\n{others}"
    ))
}

/// I3: a refusal means that the tool did not run. If it ran, the outcome says so.
#[test]
fn refusal_after_execution_keeps_the_effects_of_the_call() {
    let others = "
  - { id: large, match: { tool: search, where: { path: $.input.n, gt: 9 } }, deny: { code: large } }
  - { id: stop, match: { tool: search, where: { path: $.input.n, eq: 7 } }, halt: {} }
  - { id: shape, match: search, validate: { schema: { properties: { n: { type: number } } } } }
  - { id: one, match: { tool: search, where: { path: $.input.n, eq: 5 } }, rate_limit: { limit: 1, per: run, cost: 2 } }
  - { id: mark, match: search, label: { add: [untrusted] } }";
    for (value, before, after) in [
        ("99", ("denied", "large"), ("failed", "large")),
        ("7", ("halted", "halted"), ("halted", "halted")),
        ("\"x\"", ("halted", "undecided"), ("halted", "undecided")),
        ("5", ("denied", "rate_limited"), ("failed", "rate_limited")),
    ] {
        let refused = format!("audit(#{{ noted: 1 }}); input.n = {value}; next(input)");
        for (script, expected, runs) in
            [(refused.clone(), before, 0), (format!("next(input); {refused}"), after, 1)]
        {
            let (engine, clock) = with_script(&script, others);
            let (tool, mut session) = (Tool::counting(&clock), engine.session());
            let outcome = clock.block_on(session.execute(call("search", json!({ "n": 1 })), &tool));
            assert_eq!((kind_and_code(&outcome), tool.count()), (expected, runs), "{script}");
            assert_eq!(
                json!(outcome.audit[0].fields),
                json!({ "noted": 1 }),
                "{script}: audit entries are kept"
            );
            let labels = if runs > 0 { json!(["untrusted"]) } else { json!([]) };
            assert_eq!(session.state().document()["labels"], labels, "{script}");
            assert_eq!(session.state().halt_message().is_some(), expected.0 == "halted", "{script}");
            assert_eq!(outcome.output, None);
        }
    }
}

#[test]
fn no_approval_is_requested_after_an_earlier_attempt_ran() {
    for inner in ["approve(\"Again?\"); next(input)", "input.n = 2; next(input)"] {
        let first = "if is_null(cache_get(1)) { cache_set(1, 1, \"1h\"); return next(input); }";
        let script = format!("{first} {inner}");
        let (engine, clock) = with_script(
            &script,
            "
  - { id: again, priority: 1, match: search, retry: { attempts: 2, idempotent: true } }
  - { id: ask, match: { tool: search, where: { path: $.input.n, eq: 2 } }, approval: {} }",
        );
        let tool = Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("down")))]);
        let outcome = clock.block_on(engine.session().execute(call("search", json!({ "n": 1 })), &tool));
        assert_eq!((kind_and_code(&outcome), tool.count()), (("failed", "denied"), 1), "{inner}");
        assert_eq!(outcome.approval, None);
    }
}

#[test]
fn only_a_single_current_tool_result_is_stored_around_a_script() {
    let canned = "
  - { id: c, priority: 1, match: search, cache: { ttl: 1h } }
  - { id: canned, match: { tool: search, where: { path: $.input.n, eq: 2 } }, respond: { output: 0 } }";
    let inner = "
  - { id: c, priority: 1, match: search, cache: { ttl: 1h, key: $.input.other } }
  - { id: inner, priority: -1, match: search, cache: { ttl: 1h, key: $.input.n } }";
    for (script, others, kept) in [
        ("let a = next(input); input.n = 2; let b = next(input); [a, b]", canned, false),
        ("let a = next(input); input.n = 3; let b = next(input); [a, b]", canned, true),
        ("let a = next(input); let b = next(input); [a, b]", inner, false),
    ] {
        let (engine, clock) = with_script(script, others);
        let (tool, mut session) = (Tool::counting(&clock), engine.session());
        let outcomes = run(&clock, &mut session, &tool, &vec![call("search", json!({ "n": 1 })); 2]);
        assert_eq!(outcomes[1].outcome == OutcomeKind::Cached, kept, "{script}: {outcomes:?}");
    }
}

/// I10 if only one side is redacted: a script or `recover` must not carry values to the other side.
#[test]
fn i10_value_redacted_on_one_side_does_not_leak_through_the_other() {
    let hide = |side: &str| {
        format!("  - {{ id: hide, match: '*', redact: {{ in: [{side}], patterns: ['S3CRET\\d'] }} }}\n")
    };
    let recover = "  - { id: mend, match: search, recover: { message: '{{ error }} {{ input.to }} {{ suggestion }}' } }\n";
    for (script, side, others, fails) in [
        ("next(input)", "input", recover, true),
        ("throw #{ message: `no ${input.to}`, kind: input.to };", "input", "", false),
        ("input.map[input.to]", "input", "", false),
        ("throw #{ message: input.to, kind: input.to };", "output", "", false),
        ("approve(`Really ${input.to}?`)", "output", "", false),
        ("approve(`Really ${input.to}?`)", "input", "", false),
        (
            "audit(#{ to: input.to }); input.five = true; next(input)",
            "output",
            "  - { id: five, match: { where: { path: $.input.five, eq: true } }, deny: {} }\n",
            false,
        ),
    ] {
        let (engine, clock) = with_script(script, &(hide(side) + others));
        let works = Tool::counting(&clock);
        let tool = match fails {
            true => Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("unknown S3CRET1")))]),
            false => works.clone(),
        };
        let mut session = engine.session();
        if fails {
            clock.block_on(session.execute(call("search", json!({ "to": "S3CRET2", "map": {} })), &works));
        }
        let asked = call("search", json!({ "to": "S3CRET1", "map": {} }));
        let mut outcome = clock.block_on(session.execute(asked, &tool));
        if side == "output" {
            // The arguments themselves are not redacted here.
            outcome.input = Value::Null;
            if let Some(approval) = &mut outcome.approval {
                approval.input = Value::Null;
            }
        }
        let told = callgate::json::to_string(&outcome).unwrap();
        assert!(!told.contains("S3CRET"), "{script}, {side}: {told}");
    }
}

/// Yields to other tasks at each cache lookup.
struct Slow;

impl Alteration for Slow {
    fn cache_get<'a>(&'a self, good: StoreFuture<'a, CacheLookup>) -> StoreFuture<'a, CacheLookup> {
        Box::pin(async move {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            good.await
        })
    }
}

#[tokio::test]
async fn caches_nested_in_opposite_order_do_not_deadlock() {
    let text = |first: i32, second: i32| {
        format!(
            "policies:
              - {{ id: a, priority: {first}, match: search, cache: {{ ttl: 1h }} }}
              - {{ id: b, priority: {second}, match: search, cache: {{ ttl: 1h }} }}"
        )
    };
    let engine = rules(&text(1, 0)).store(Arc::new(Altered::by(Slow))).build();
    let tool = Tool::counting(&noon());
    let (mut one, mut other) = (engine.session(), engine.session());
    let both = async {
        let first = one.execute(call("search", json!({})), &tool);
        let second = async {
            engine.replace(engine::load_text(&text(0, 1)).unwrap());
            other.execute(call("search", json!({})), &tool).await
        };
        tokio::join!(first, second)
    };
    let patience = async {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        (first, second) = both => {
            assert!(first.output.is_some() && second.output.is_some());
        }
        () = patience => panic!("the calls deadlock"),
    }
}

/// The retry time is that of the limit that takes longest to refill.
#[test]
fn refused_call_reports_the_longest_retry_time_of_several_limits() {
    let (engine, clock) = engine_at(
        "policies:
          - { id: short, match: search, rate_limit: { limit: 1, per: 10s } }
          - { id: long, match: search, rate_limit: { limit: 1, per: 60s } }
          - { id: shorter, match: search, rate_limit: { limit: 1, per: 5s } }",
    );
    let tool = Tool::counting(&clock);
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    assert_eq!(outcomes[1].retry_after_ms, Some(60_000));
}

/// A call with arguments from a script is counted by limits and wrapped by the policies inside the script only.
#[test]
fn call_by_a_script_is_limited_and_wrapped_by_inner_policies_only() {
    let (engine, clock) = with_script(
        "input.n = 2; next(input)",
        "  - { id: limit, match: { tool: search, where: { path: $.input.n, eq: 2 } }, rate_limit: { limit: 2, per: 1h } }
  - { id: outside, priority: 1, match: search, retry: { attempts: 2, idempotent: true, on: down } }
  - { id: inside, match: search, retry: { attempts: 3, idempotent: true, on: slow } }",
    );
    let error = |kind: &str| (Duration::ZERO, Err(ToolError::new("no").with_kind(kind)));
    let tool = Tool::scripted(&clock, [error("slow"), error("slow"), error("down")]);
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({ "n": 1 })); 2]);
    assert_eq!(outcomes[0].outcome, OutcomeKind::Failed);
    assert_eq!(outcomes[0].attempts, Some(4), "three by the inner policy, and one more by the outer");
    assert_eq!(kind_and_code(&outcomes[1]), ("denied", "rate_limited"));
    assert_eq!(tool.count(), 4);
}
