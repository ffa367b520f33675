//! `rate_limit` and `concurrency`: what is counted, for whom, and the outcome of a call that exceeds a limit.

mod approvals;
mod concurrency;
mod real_costs;
mod stores;

use std::time::Duration;

use callgate::host::{Clock, ManualClock};
use callgate::json::{Value, json};
use callgate::{Effect, Engine, OutcomeKind, SessionState};

use crate::fixtures::{Tool, call, kind_and_code, noon, policy, rules, run};

const EXECUTED: (&str, &str) = ("executed", "unmatched");
const LIMITED: (&str, &str) = ("denied", "rate_limited");

/// Makes calls after these numbers of seconds and returns their outcomes.
fn outcome_kinds(engine: &Engine, clock: &ManualClock, seconds: &[u64], input: &Value) -> Vec<&'static str> {
    let (tool, mut session) = (Tool::counting(clock), engine.session());
    let start = clock.now();
    let at = |offset: u64| start.checked_add(Duration::from_secs(offset)).unwrap();
    seconds
        .iter()
        .map(|offset| {
            clock.set(at(*offset));
            clock.block_on(session.execute(call("search", input.clone()), &tool)).outcome.name()
        })
        .collect()
}

#[test]
fn each_algorithm_allows_what_it_specifies() {
    let times = [0, 1, 2, 29, 30, 45, 59, 60, 61, 62, 90, 120];
    for (algorithm, admitted) in [
        // Three at once; one is refilled every 20 s.
        ("gcra", [true, true, true, true, false, true, false, true, false, false, true, true]),
        // Noon is the start of a window.
        ("fixed_window", [true, true, true, false, false, false, false, true, true, true, false, true]),
        ("sliding_window", [true, true, true, false, false, false, false, true, true, true, false, true]),
    ] {
        let (engine, clock) = policy(&format!("rate_limit: {{ limit: 3, per: 1m, algorithm: {algorithm} }}"));
        let expected = admitted.map(|admitted| if admitted { "executed" } else { "denied" });
        assert_eq!(outcome_kinds(&engine, &clock, &times, &json!({})), expected, "{algorithm}");
    }
    let (engine, clock) = policy("rate_limit: { limit: 6, per: 1m, burst: 1 }");
    assert_eq!(
        outcome_kinds(&engine, &clock, &[0, 1, 9, 10, 30, 31], &json!({})),
        ["executed", "denied", "denied", "executed", "executed", "denied"]
    );
}

#[test]
fn refused_call_succeeds_after_the_reported_retry_time() {
    for algorithm in ["gcra", "fixed_window", "sliding_window"] {
        let (engine, clock) = policy(&format!("rate_limit: {{ limit: 2, per: 1m, algorithm: {algorithm} }}"));
        let (tool, mut session) = (Tool::counting(&clock), engine.session());
        clock.advance(Duration::from_secs(7));
        let outcomes = run(&clock, &mut session, &tool, &vec![call("search", json!({})); 3]);
        let refused = &outcomes[2];
        assert_eq!(kind_and_code(refused), LIMITED);
        assert_eq!(refused.reason.policy.as_deref(), Some("p"));
        let after = refused.retry_after_ms.unwrap();
        assert!(
            refused.reason.message.starts_with("`p` allows `search` 2 per 1m; retry in "),
            "{}",
            refused.reason.message
        );
        clock.advance(Duration::from_millis(after - 1));
        assert_eq!(
            kind_and_code(&run(&clock, &mut session, &tool, &[call("search", json!({}))])[0]),
            LIMITED
        );
        clock.advance(Duration::from_millis(1));
        assert_eq!(
            kind_and_code(&run(&clock, &mut session, &tool, &[call("search", json!({}))])[0]),
            EXECUTED
        );
    }
}

#[test]
fn each_key_has_its_own_count_shared_by_all_sessions() {
    let (engine, clock) = policy("rate_limit: { limit: 1, per: 1m, key: [$.context.principal, $.input.to] }");
    let tool = Tool::counting(&clock);
    let ana = |to: Value| call("send", json!({ "to": to })).with_context(json!({ "principal": "ana" }));
    let nobody = |to: Value| call("send", json!({ "to": to }));
    for (number, (call, expected)) in [
        (ana(json!("x")), EXECUTED),
        (ana(json!("y")), EXECUTED),
        (ana(json!("x")), LIMITED),
        (ana(json!(1)), EXECUTED),
        (ana(json!("1")), EXECUTED),
        (ana(json!(1.0)), LIMITED),
        (nobody(json!("x")), EXECUTED),
        (nobody(json!("x")), LIMITED),
        (ana(json!(["x", "y"])), EXECUTED),
    ]
    .into_iter()
    .enumerate()
    {
        let outcome = clock.block_on(engine.session().execute(call, &tool));
        assert_eq!(kind_and_code(&outcome), expected, "call {number}");
    }
}

#[test]
fn cost_is_counted_exactly_and_an_invalid_cost_is_denied() {
    let (engine, clock) =
        policy("rate_limit: { limit: 100, per: 1d, algorithm: fixed_window, cost: $.input.amount }");
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    for (amount, expected) in [
        (json!(49.99), EXECUTED),
        (json!(100.01), LIMITED),
        (json!(50.01), EXECUTED),
        (json!(0), EXECUTED),
        (json!(0.000001), LIMITED),
        (json!(-50), ("denied", "undecided")),
        (json!("5"), ("denied", "undecided")),
        (json!(null), ("denied", "undecided")),
    ] {
        let outcome = clock.block_on(session.execute(call("refund", json!({ "amount": amount })), &tool));
        assert_eq!(kind_and_code(&outcome), expected, "{amount}");
        assert_eq!(
            outcome.retry_after_ms.is_none(),
            expected != LIMITED || amount == json!(100.01),
            "{amount}"
        );
    }
    assert_eq!(tool.count(), 3);
}

/// Rule 3 of how policies compose.
#[test]
fn call_stopped_by_a_stricter_policy_is_not_counted_unless_attempts_count() {
    let stop = "{ id: no, match: { tool: pay, where: { path: $.input.large, eq: true } }, deny: {} },
                { id: ask, match: { tool: pay, where: { path: $.input.odd, eq: true } }, approval: {} },";
    let calls = [json!({ "large": true }), json!({ "odd": true }), json!({}), json!({}), json!({})];
    for (count, expected) in [
        ("executions", ["denied", "suspended", "executed", "executed", "rate_limited"]),
        ("attempts", ["denied", "suspended", "rate_limited", "rate_limited", "rate_limited"]),
    ] {
        let clock = noon();
        let text = format!(
            "policies: [ {stop} {{ id: limit, match: pay, rate_limit: {{ limit: 2, per: 1m, count: {count} }} }} ]"
        );
        let engine = rules(&text).clock(clock.clone()).build();
        let (tool, mut session) = (Tool::counting(&clock), engine.session());
        let calls = calls.clone().map(|input| call("pay", input));
        let outcomes = run(&clock, &mut session, &tool, &calls);
        let ends: Vec<&str> = outcomes
            .iter()
            .map(|outcome| match outcome.reason.code.as_str() {
                code @ "rate_limited" => code,
                _ => outcome.outcome.name(),
            })
            .collect();
        assert_eq!(ends, expected, "{count}");
    }
}

#[test]
fn several_limits_are_acquired_all_or_none() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: each, match: search, rate_limit: { limit: 2, per: 1m, key: $.input.who } }
          - { id: all, match: search, rate_limit: { limit: 3, per: 1m } }",
    )
    .clock(clock.clone())
    .build();
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let calls = ["a", "a", "a", "a", "b", "b", "c"].map(|who| call("search", json!({ "who": who })));
    let by: Vec<_> =
        run(&clock, &mut session, &tool, &calls).into_iter().map(|outcome| outcome.reason.policy).collect();
    // If the refused calls of `a` had counted, nothing would be left for `b`.
    let (each, all) = (Some("each".to_owned()), Some("all".to_owned()));
    assert_eq!(by, [None, None, each.clone(), each, None, all.clone(), all]);
    assert_eq!(tool.count(), 3);
}

#[test]
fn halt_is_stricter_than_deny_and_names_its_policy() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: slow, match: search, rate_limit: { limit: 1, per: 1m } }
          - { id: runaway, match: search, rate_limit: { limit: 1, per: 1m, on_exceed: halt, message: 'Stop.' } }",
    )
    .clock(clock.clone())
    .build();
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let calls = vec![call("search", json!({})); 3];
    let outcomes = run(&clock, &mut session, &tool, &calls);
    let ends: Vec<_> = outcomes.iter().map(kind_and_code).collect();
    assert_eq!(ends, [EXECUTED, ("halted", "rate_limited"), ("halted", "session_halted")]);
    assert_eq!(outcomes[1].reason.message, "Stop.");
    let verdicts: Vec<_> = outcomes[1].policies.iter().map(|policy| policy.verdict).collect();
    assert_eq!(verdicts, [callgate::call::Verdict::Deny, callgate::call::Verdict::Halt]);
}

#[test]
fn wait_ends_in_time_or_does_not_start() {
    let (engine, clock) = policy("rate_limit: { limit: 1, per: 10s, on_exceed: wait, max_wait: 15s }");
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let start = clock.now();
    let outcomes = run(&clock, &mut session, &tool, &vec![call("search", json!({})); 3]);
    assert!(outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Executed));
    assert_eq!(clock.now().duration_since(start).as_secs(), 20, "each waited for its turn");
    let (engine, clock) = policy("rate_limit: { limit: 1, per: 10s, on_exceed: wait, max_wait: 9s }");
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let outcomes = run(&clock, &mut session, &tool, &vec![call("search", json!({})); 2]);
    assert_eq!(kind_and_code(&outcomes[1]), LIMITED);
    assert_eq!(clock.now(), start, "a wait that cannot succeed in time does not start");
}

#[test]
fn runs_and_conversations_have_separate_counts() {
    let text =
        |per| format!("policies: [ {{ id: p, match: search, rate_limit: {{ limit: 2, per: {per} }} }} ]");
    let clock = noon();
    let engine = rules(&text("run")).clock(clock.clone()).build();
    let tool = Tool::counting(&clock);
    for _ in 0..2 {
        let mut session = engine.session();
        let calls = vec![call("search", json!({})); 3];
        let ends: Vec<_> =
            run(&clock, &mut session, &tool, &calls).iter().map(kind_and_code).map(|(end, _)| end).collect();
        assert_eq!(ends, ["executed", "executed", "denied"]);
        clock.advance(Duration::from_secs(1_000_000));
        let later = engine.decide(&calls[0], session.state());
        assert_eq!(later.effect(), Effect::Deny, "session counts need no store");
    }
    let engine = rules(&text("conversation")).clock(clock.clone()).build();
    let in_conversation = |name: Value| {
        let mut session = engine.session();
        session.state_mut().set_run_info("conversationId", name);
        kind_and_code(&clock.block_on(session.execute(call("search", json!({})), &tool)).clone()).0
    };
    let names = [json!("a"), json!("a"), json!("b"), json!("a"), json!(null)];
    assert_eq!(names.map(in_conversation), ["executed", "executed", "executed", "denied", "denied"]);
}

/// The round is decided as a whole, and each call again before it starts.
#[test]
fn once_per_run_allows_one_of_five_parallel_calls() {
    for limit in ["rate_limit: { limit: 1, per: run }", "rate_limit: { limit: 1, per: 1h }"] {
        let (engine, clock) = policy(limit);
        let (tool, mut session) = (Tool::counting(&clock), engine.session());
        let round = vec![call("pay", json!({})); 5];
        let outcomes = clock.block_on(session.execute_round(round, &tool));
        let executed = outcomes.iter().filter(|outcome| outcome.outcome == OutcomeKind::Executed);
        assert_eq!((executed.count(), tool.count()), (1, 1), "{limit}");
    }
}

#[test]
fn shadow_limit_counts_separately_and_refuses_nothing() {
    let clock = noon();
    let engine = rules(
        "policies:
          - { id: trial, mode: shadow, match: search, rate_limit: { limit: 1, per: 1m } }
          - { id: real, match: search, rate_limit: { limit: 2, per: 1m } }",
    )
    .clock(clock.clone())
    .build();
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let outcomes = run(&clock, &mut session, &tool, &vec![call("search", json!({})); 3]);
    let verdicts = |number: usize| -> Vec<String> {
        outcomes[number].policies.iter().map(|policy| format!("{} {:?}", policy.id, policy.verdict)).collect()
    };
    assert_eq!(verdicts(0), ["trial Pass", "real Pass"]);
    assert_eq!(verdicts(1), ["trial Deny", "real Pass"]);
    assert_eq!(outcomes[1].outcome, OutcomeKind::Executed);
    assert_eq!(outcomes[2].reason.policy.as_deref(), Some("real"));
}

#[test]
fn decide_lists_required_store_queries_and_runs_none() {
    let (engine, _) = policy("rate_limit: { limit: 1, per: 1h }");
    let call = call("search", json!({}));
    for _ in 0..3 {
        let decision = engine.decide(&call, &SessionState::default());
        assert_eq!(decision.effect(), Effect::Run);
        assert_eq!(decision.pending().collect::<Vec<_>>(), ["p"]);
    }
}

#[test]
fn undecided_condition_counts_and_a_limit_lifts_no_default() {
    let clock = noon();
    let engine = rules(
        "policies: [ { id: p, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, rate_limit: { limit: 1, per: 1h } } ]",
    )
    .clock(clock.clone())
    .build();
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let calls = [json!(5), json!("500"), json!("500"), json!(5)]
        .map(|amount| call("pay", json!({ "amount": amount })));
    let ends: Vec<_> =
        run(&clock, &mut session, &tool, &calls).iter().map(kind_and_code).map(|(end, _)| end).collect();
    assert_eq!(ends, ["executed", "executed", "denied", "executed"]);
    let engine = rules("{ defaults: { unmatched: deny }, policies: [ { id: p, match: pay, rate_limit: { limit: 1, per: 1h } } ] }").build();
    assert_eq!(engine.decide(&calls[0], &SessionState::default()).effect(), Effect::Deny);
}

#[test]
fn counts_survive_a_reload_unless_what_they_count_changed() {
    let text = |limit: &str| format!("policies: [ {{ id: p, match: search, rate_limit: {{ {limit} }} }} ]");
    let clock = noon();
    let engine = rules(&text("limit: 3, per: 1h")).clock(clock.clone()).build();
    let (tool, mut session) = (Tool::counting(&clock), engine.session());
    let mut one = |limit: &str| {
        engine.replace(callgate::engine::load_text(&text(limit)).unwrap());
        clock.block_on(session.execute(call("search", json!({ "q": 1 })), &tool)).outcome.name()
    };
    assert_eq!([one("limit: 3, per: 1h"), one("limit: 3, per: 1h")], ["executed", "executed"]);
    assert_eq!(one("limit: 2, per: 1h, message: no"), "denied", "the numbers changed, not the count");
    assert_eq!(one("limit: 4, per: 1h"), "executed");
    assert_eq!(one("limit: 2, per: 1h, key: $.input.q"), "executed", "another key: a new count");
    assert_eq!(one("limit: 2, per: 1h, key: $.input.q, algorithm: fixed_window"), "executed");
}
