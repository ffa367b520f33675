//! What is compared: each case has active rules, candidate rules, calls, and the differences.

use std::fmt::Write as _;

use callgate::json::{Value, json};
use callgate::message::{Dialect, History, approval_response};
use callgate::{Engine, Keys, OutcomeKind, ToolCall, load_text};
use proptest::prelude::*;
use serde_json::Value as Json;

use super::{CountedEcho, Differences, candidate};

/// Runs each case of a file, and appends what was found to a report.
#[tokio::test]
async fn decisions_arguments_and_results_are_compared() {
    let cases: Json = serde_yaml::from_str(include_str!("differences.yaml")).unwrap();
    let mut report = String::new();
    for case in cases.as_array().unwrap() {
        let text = |name: &str| case[name].as_str().unwrap_or("[]");
        let rules = |name: &str| format!("policies:\n  {}", text(name).replace('\n', "\n  "));
        let (candidate, seen) = (candidate(&rules("candidate")), Differences::default());
        let engine = Engine::builder(load_text(&rules("active")).unwrap());
        let engine = engine.candidate(&candidate).observer(seen.clone()).build();
        let mut session = engine.session();
        for (index, round) in case["rounds"].as_array().unwrap().iter().enumerate() {
            let calls = round.as_array().unwrap().iter().enumerate().map(|(place, call)| {
                let input: Value = callgate::json::parse(&call[1].to_string()).unwrap();
                ToolCall::new(format!("c{}.{}", index + 1, place + 1), call[0].as_str().unwrap(), input)
            });
            session.execute_round(calls.collect(), &CountedEcho::default()).await;
        }
        candidate.finish();
        writeln!(report, "{}\n  {}", text("name"), seen.take()[1..].join("\n  ")).unwrap();
    }
    insta::with_settings!({ snapshot_path => "../../snapshots/candidate", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("differences", report);
    });
}

#[tokio::test]
async fn an_approval_that_was_given_counts_for_a_candidate_that_requires_one() {
    let asks = "[ { id: ask, match: pay, approval: {} } ]";
    for (candidate_rules, expected) in [
        ("[ { id: ask-too, match: pay, approval: {} } ]", vec![]),
        ("[]", vec!["c1 looser suspend→run /unmatched"]),
        ("[ { id: no-pay, match: pay, deny: {} } ]", vec!["c1 stricter suspend→deny no-pay/denied"]),
    ] {
        let (candidate, seen) = (candidate(&format!("policies: {candidate_rules}")), Differences::default());
        let engine = Engine::builder(load_text(&format!("policies: {asks}")).unwrap())
            .keys(Keys::parse(&"5a".repeat(32)).unwrap())
            .candidate(&candidate)
            .observer(seen.clone())
            .build();
        let tools = CountedEcho::default();
        let messages = json!([
            { "role": "user", "content": "pay" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "pay", "arguments": "{}" } } ] } ]);
        let mut history = History::read(Dialect::OpenaiChat, &messages).unwrap();
        let mut session = engine.session().with_name("chat");
        assert!(session.run_round(&mut history, &tools).await.unwrap().is_suspended());
        // Asked again, without an answer.
        session.resume(&mut history, &tools).await.unwrap();
        let request = history.find_approval_requests()[0].clone();
        history.append_approval_response(approval_response(request.approval_id, true)).unwrap();
        let round = session.resume(&mut history, &tools).await.unwrap();
        assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed);
        candidate.finish();
        assert_eq!(seen.take()[1..], expected, "{candidate_rules}");
        assert_eq!(tools.calls(), ["pay {}"]);
    }
}

const RULES: &str = r#"
policies:
  - { id: no-rm, match: { tool: b, where: { path: $.input.n, eq: 0 } }, deny: {} }
  - { id: three, match: a, rate_limit: { limit: 3, per: run } }
  - { id: two-an-hour, match: c, rate_limit: { limit: 2, per: 1h } }
  - { id: seen, match: a, fact: { name: last, value: $.output.n } }
  - { id: taint, match: { tool: c, where: { path: $.input.n, eq: 1 } }, label: { add: [tainted] } }
  - { id: after-taint, match: { tool: b, where: { path: "$.session.labels[*]", eq: tainted } }, approval: {} }
  - { id: same-again, match: { tool: b, where: { path: $.session.facts.last, eq: 2 } }, deny: {} }
  - { id: first-only, match: { tool: c, where: { path: $.session.round.index, gt: 1 } }, deny: {} }
  - { id: stop, match: { tool: d, where: { path: $.input.n, eq: 3 } }, halt: {} }
  - { id: bump, match: d, transform: { input: [ { path: $.input.m, set: 1 } ] } }
"#;

fn rounds() -> impl Strategy<Value = Vec<Vec<(usize, u8)>>> {
    prop::collection::vec(prop::collection::vec((0..4_usize, 0..4_u8), 1..4), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Facts, labels, limits, rounds and halts: a candidate with the active rules decides every call as they do.
    #[test]
    fn a_candidate_that_equals_the_active_rules_never_differs(sessions in prop::collection::vec(rounds(), 1..3)) {
        let (candidate, seen) = (candidate(RULES), Differences::default());
        let engine = Engine::builder(load_text(RULES).unwrap()).candidate(&candidate).observer(seen.clone());
        let engine = engine.build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut count = 0;
        for rounds in sessions {
            let mut session = engine.session();
            for round in rounds {
                let calls = round.into_iter().map(|(tool, n)| {
                    count += 1;
                    ToolCall::new(format!("c{count}"), ["a", "b", "c", "d"][tool], json!({ "n": n }))
                });
                runtime.block_on(session.execute_round(calls.collect(), &CountedEcho::default()));
            }
        }
        candidate.finish();
        prop_assert_eq!(&seen.take()[1..], &[] as &[String]);
        let summary = candidate.summary();
        prop_assert_eq!(summary.compared + summary.not_compared, count);
        prop_assert_eq!(summary.not_compared, 0);
    }
}
