//! `callgate backtest`: recorded calls under other rules, compared with what was recorded.

use std::fmt::Write as _;
use std::fs;

use callgate::json::{self, Value, json};

use super::{TestDir, settings};

/// Rules whose decisions depend on the calls before: facts, labels, limits of sessions and across them, budgets, halts, rounds, caches.
const STATEFUL: &str = r#"
policies:
  - { id: read-secret, match: { tool: read, where: { path: $.input.path, eq: secret } }, label: { add: [secret] } }
  - { id: no-leaks, match: { tool: mail, where: { path: "$.session.labels[*]", eq: secret } }, deny: {} }
  - { id: last-price, match: quote, fact: { name: price, value: $.result.price } }
  - { id: as-quoted, match: { tool: pay, where: { path: $.session.facts.price, exists: false } }, deny: {} }
  - { id: ask-above, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, approval: {} }
  - { id: few-mails, match: mail, rate_limit: { limit: 40, per: 1h, key: $.context.principal } }
  - { id: few-reads, match: read, rate_limit: { limit: 3, per: session } }
  - { id: stop, match: { tool: rm, where: { path: $.input.path, eq: / } }, halt: {} }
  - { id: keep, match: quote, cache: { ttl: 1h } }
  - { id: pong, match: ping, respond: { output: pong } }
  - { id: first-alone, match: { tool: lone, where: { expr: session.round.size, gt: 1 } }, deny: {} }
"#;

fn tool_input(random: &mut fastrand::Rng) -> (&'static str, Value) {
    match random.u8(0..8) {
        0 => ("read", json!({ "path": if random.u8(0..4) == 0 { "secret" } else { "notes" } })),
        1 => ("mail", json!({ "to": random.u8(0..4) })),
        2 => ("quote", json!({ "of": random.u8(0..4) })),
        3 | 4 => ("pay", json!({ "amount": random.u8(0..200) })),
        5 => ("rm", json!({ "path": if random.u8(0..6) == 0 { "/" } else { "/tmp" } })),
        6 => ("lone", json!({})),
        _ => ("ping", json!({})),
    }
}

/// Interleaved sessions, with rounds and failing tools.
fn random_calls(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut lines = String::new();
    for number in 0..400 {
        let (tool, input) = tool_input(&mut random);
        let session = random.u8(0..40);
        let recorded = match random.u8(0..10) {
            0 => json!({ "error": "down" }),
            _ => json!({ "output": { "price": number } }),
        };
        let mut call = json!({
            "tool": tool, "input": input, "session": format!("s{session}"), "recorded": recorded,
            "context": { "principal": format!("p{}", session % 3) },
        });
        let size = if random.u8(0..4) == 0 { 2 } else { 1 };
        for index in 0..size {
            call["id"] = format!("c{number}_{index}").into();
            if size > 1 {
                call["round"] = number.into();
            }
            writeln!(lines, "{call}").unwrap();
        }
    }
    lines
}

/// A directory with rules, calls, and the decision log of a run of them.
fn recorded(rules: &str, calls: &str) -> TestDir {
    let dir = TestDir::new(&[("rules.yaml", rules), ("calls.jsonl", calls)]);
    let run =
        ["run", "--policies", "rules.yaml", "--log", "log.jsonl", "--log-content", "redacted", "calls.jsonl"];
    let ended = dir.run(&run);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    dir
}

fn report(dir: &TestDir, arguments: &[&str]) -> Value {
    let ended = dir.run(&[&["backtest", "--format", "json"], arguments].concat());
    json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.transcript()))
}

#[test]
fn a_log_under_the_rules_that_wrote_it_has_no_change() {
    for seed in 0..4 {
        let dir = recorded(STATEFUL, &random_calls(seed));
        let report = report(&dir, &["--policies", "rules.yaml", "log.jsonl"]);
        assert_eq!(report["changes"], json!([]), "seed {seed}: {report:#}");
        assert_eq!(report["summary"]["other_policy"], 0, "seed {seed}: {report:#}");
        assert!(report["summary"]["unchanged"].as_u64() > Some(400), "seed {seed}: {report:#}");
        let log = fs::read_to_string(dir.0.path().join("log.jsonl")).unwrap();
        for outcome in ["executed", "denied", "suspended", "halted", "answered", "cached", "failed"] {
            assert!(
                log.contains(&format!("\"outcome\":\"{outcome}\"")),
                "seed {seed} has no call that is {outcome}"
            );
        }
    }
}

const OLD: &str = r#"
policies:
  - { id: large, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} }
  - { id: no-rm, match: rm, deny: {} }
"#;
const NEW: &str = r#"
policies:
  - { id: large, match: { tool: pay, where: { path: $.input.amount, gt: 500 } }, deny: {} }
  - { id: never-rm, match: rm, deny: {} }
  - { id: ask-mail, match: mail, approval: {} }
"#;
const CALLS: &str = r#"{"tool":"pay","input":{"amount":50},"session":"a","recorded":{"output":1},"context":{"principal":"ann"}}
{"tool":"pay","input":{"amount":300,"account":"DE4711"},"session":"a","recorded":{"output":1},"context":{"principal":"ann"}}
{"tool":"pay","input":{"amount":400},"session":"b","recorded":{"output":1},"context":{"principal":"bob"}}
{"tool":"pay","input":{"amount":900},"session":"b","recorded":{"output":1},"context":{"principal":"bob"}}
{"tool":"rm","input":{},"session":"b"}
{"tool":"mail","input":{},"session":"b","recorded":{"output":"sent"}}
"#;

#[test]
fn changed_calls_are_grouped_by_cause_and_fail_on_demand() {
    let dir = recorded(OLD, CALLS);
    fs::write(dir.0.path().join("new.yaml"), NEW).unwrap();
    let ended = dir.run(&["backtest", "--policies", "new.yaml", "log.jsonl"]);
    let mut settings = settings();
    settings.add_filter(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[time]");
    settings.bind(|| insta::assert_snapshot!("backtest", ended.transcript()));
    assert!(!ended.stdout.contains("DE4711"), "arguments are not shown");
    for (arguments, code) in [
        (&["--policies", "new.yaml", "--fail-on", "looser", "log.jsonl"][..], 1),
        (&["--policies", "new.yaml", "--fail-on", "any", "log.jsonl"], 1),
        (&["--policies", "rules.yaml", "--fail-on", "any", "log.jsonl"], 0),
        (&["--policies", "new.yaml", "--against", "rules.yaml", "--fail-on", "looser", "calls.jsonl"], 1),
        (&["--policies", "rules.yaml", "--against", "new.yaml", "--fail-on", "looser", "calls.jsonl"], 1),
        (&["--policies", "new.yaml", "--against", "new.yaml", "--fail-on", "any", "calls.jsonl"], 0),
        (&["--policies", "new.yaml", "--since", "2999-01-01T00:00:00Z", "--fail-on", "any", "log.jsonl"], 0),
        (&["--policies", "nowhere.yaml", "log.jsonl"], 2),
        (&["--policies", "new.yaml", "nowhere.jsonl"], 2),
        (&["--policies", "new.yaml"], 2),
        (&["--policies", "new.yaml", "--sample", "0", "log.jsonl"], 2),
    ] {
        let ended = dir.run(&[&["backtest"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}\n{}", ended.transcript());
    }
}
