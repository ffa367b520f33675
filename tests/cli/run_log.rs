//! `callgate run` on a decision log: the decisions of the log, also those that depend on rounds, runs and other sessions.

use std::fmt::Write as _;
use std::fs;

use callgate::json::{self, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::TestDir;

/// Policies whose decisions depend on earlier calls, of the session and of others, and on the round.
const RULES: &str = r#"
policies:
  - { id: no-big, match: { tool: pay, where: [ { path: $.input.amount, gt: 3 } ] }, deny: {} }
  - { id: three-in-all, match: pay, rate_limit: { limit: 3, per: 1d } }
  - { id: two-a-run, match: mail, rate_limit: { limit: 2, per: run } }
  - { id: was-read, match: read, label: { add: [untrusted] } }
  - { id: no-mail-after-reading, match: { tool: mail, where: { path: "$.session.labels[*]", eq: untrusted } }, deny: {} }
  - { id: alone, match: { tool: erase, where: [ { path: $.session.round.index, gt: 0 } ] }, deny: {} }
  - { id: ask, match: { tool: send }, approval: {} }
"#;

#[derive(Clone, Debug)]
struct PlannedCall {
    session: u8,
    /// Calls with the same number that follow one another in their session are a round.
    round: Option<u8>,
    tool: &'static str,
    amount: u8,
}

fn calls() -> impl Strategy<Value = Vec<PlannedCall>> {
    let tool = prop::sample::select(vec!["pay", "mail", "read", "erase", "send"]);
    let call = (0..3_u8, prop::option::of(0..2_u8), tool, 0..6_u8)
        .prop_map(|(session, round, tool, amount)| PlannedCall { session, round, tool, amount });
    prop::collection::vec(call, 1..25)
}

fn write_lines(calls: &[PlannedCall]) -> String {
    let mut text = String::new();
    for (number, call) in calls.iter().enumerate() {
        let PlannedCall { session, round, tool, amount } = call;
        let round = round.map_or("null".to_owned(), |round| round.to_string());
        writeln!(
            text,
            r#"{{"id":"c{number}","session":"s{session}","round":{round},"tool":"{tool}","input":{{"amount":{amount}}},"recorded":{{"output":"ok"}}}}"#
        )
        .unwrap();
    }
    text
}

/// Session, id, outcome and reason of each call, sorted: a round of one session may end after the calls of others.
fn decisions(stdout: &str) -> Vec<[String; 5]> {
    let decision = |line: &str| {
        let outcome: Value = json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (reason, members) = (&outcome["reason"], &outcome);
        [&members["session"], &members["id"], &members["outcome"], &reason["policy"], &reason["code"]]
            .map(text)
    };
    let mut decisions: Vec<_> = stdout.lines().map(decision).collect();
    decisions.sort();
    decisions
}

#[test]
fn a_log_of_any_calls_is_decided_again_as_it_was() {
    let dir = TestDir::new(&[("rules.yaml", RULES)]);
    let run = |input: &str, log: &str| {
        let _ = fs::remove_file(dir.0.path().join(log));
        let shared = [
            "run",
            "--policies",
            "rules.yaml",
            "--format",
            "json",
            "--log-content",
            "redacted",
            "--log",
            log,
        ];
        let run = dir.run(&[&shared[..], &[input]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        decisions(&run.stdout)
    };
    let config = Config { cases: 40, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&calls(), |calls| {
            fs::write(dir.0.path().join("calls.jsonl"), write_lines(&calls)).unwrap();
            let first = run("calls.jsonl", "first.jsonl");
            prop_assert_eq!(&first, &run("first.jsonl", "second.jsonl"));
            prop_assert_eq!(&first, &run("second.jsonl", "third.jsonl"));
            Ok(())
        })
        .unwrap();
}

/// A line of a log that a gateway wrote.
fn logged(id: &str, more: &str) -> String {
    format!(
        r#"{{"version":1,"event":"call_completed","time":"2026-01-01T00:00:00Z","session":"s","id":"{id}","tool":"mail","input":{{}},"outcome":"executed","recorded":{{"output":1}}{more}}}"#
    ) + "\n"
}

#[test]
fn a_session_of_a_log_has_the_runs_of_the_log() {
    let runs = [("c1", "a"), ("c2", "a"), ("c3", "a"), ("c4", "b")];
    let log: String = runs.iter().map(|(id, run)| logged(id, &format!(r#","run":"{run}""#))).collect();
    let dir = TestDir::new(&[("rules.yaml", RULES), ("log.jsonl", &log)]);
    let run = dir.run(&["run", "--policies", "rules.yaml", "--format", "json", "log.jsonl"]);
    let outcomes: Vec<String> =
        decisions(&run.stdout).into_iter().map(|[_, _, outcome, ..]| outcome).collect();
    assert_eq!(outcomes, ["executed", "executed", "denied", "executed"]);
}

#[test]
fn a_line_of_a_later_version_or_a_cut_one_is_reported_and_the_others_are_evaluated() {
    let newer = logged("c2", "").replace(r#""version":1"#, r#""version":2"#);
    let cut: String = logged("c3", "").chars().take(40).collect();
    let log = format!("{}{newer}{cut}\n{}", logged("c1", ""), logged("c4", ""));
    let dir = TestDir::new(&[("rules.yaml", RULES), ("log.jsonl", &log)]);
    let run = dir.run(&["run", "--policies", "rules.yaml", "--format", "json", "log.jsonl"]);
    assert_eq!(run.code, Some(2), "{}", run.transcript());
    assert!(run.stderr.contains("log.jsonl:2: the event has version 2"), "{}", run.stderr);
    assert!(run.stderr.contains("log.jsonl:3: invalid JSON"), "{}", run.stderr);
    assert_eq!(run.stdout.matches(r#""outcome":"executed""#).count(), 2, "{}", run.stdout);
}
