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
  - { id: few-reads, match: read, rate_limit: { limit: 3, per: run } }
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

fn event(id: &str, outcome: &str, code: &str, members: &Value) -> String {
    let mut line = json!({
        "version": 1, "event": "call_completed", "time": "2026-11-01T10:00:00Z", "session": "s", "tool": "pay",
        "id": id, "outcome": outcome, "reason": { "policy": "ask", "code": code }, "input": { "amount": 200 },
    });
    for (name, value) in members.as_object().unwrap().iter() {
        line[name] = value.clone();
    }
    format!("{line}\n")
}

const ASK: &str =
    "policies: [{ id: ask, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, approval: {} }]";
const FREE: &str = "policies: []";

#[test]
fn an_approved_call_is_one_call_and_its_approval_counts() {
    let approved = json!({ "approved_by": { "approval_id": "x" }, "recorded": { "output": 1 } });
    let log = [
        event("a", "suspended", "approval_required", &json!({})),
        event("b", "suspended", "approval_required", &json!({})),
        event("a", "executed", "approved", &approved),
        event("b", "denied", "approval_denied", &json!({})),
        // The log begins after its request.
        event("c", "executed", "approved", &approved),
        event("d", "denied", "approval_expired", &json!({})),
        event("e", "denied", "ask_again", &json!({})),
    ]
    .concat();
    let dir = TestDir::new(&[("ask.yaml", ASK), ("free.yaml", FREE), ("log.jsonl", &log)]);
    let same = report(&dir, &["--policies", "ask.yaml", "log.jsonl"]);
    assert_eq!(
        (&same["summary"]["compared"], &same["summary"]["unchanged"]),
        (&json!(5), &json!(5)),
        "{same:#}"
    );
    let free = report(&dir, &["--policies", "free.yaml", "log.jsonl"]);
    assert_eq!(
        (&free["summary"]["looser"], &free["summary"]["unchanged"]),
        (&json!(4), &json!(1)),
        "{free:#}"
    );
}

#[test]
fn calls_that_the_rules_did_not_decide_are_not_compared() {
    let log = event("a", "denied", "store_unavailable", &json!({}))
        + &event("b", "indeterminate", "unfinished", &json!({}));
    let calls = r#"{"tool":"pay","input":{"amount":1}}"#;
    let dir = TestDir::new(&[("ask.yaml", ASK), ("log.jsonl", &log), ("calls.jsonl", calls)]);
    let report = report(&dir, &["--policies", "ask.yaml", "log.jsonl", "calls.jsonl"]);
    assert_eq!(report["summary"]["compared"], 0);
    assert_eq!(
        report["summary"]["not_compared"],
        json!({ "store_unavailable": 1, "unfinished": 1, "unknown": 1 })
    );
}

/// The call that is stopped now ran: what it did to the session and to limits stays. One that was stopped leaves nothing.
#[test]
fn the_course_of_the_recording_is_kept() {
    let rules = "policies:
  - { id: no-read, match: read, deny: {} }
  - { id: seen, match: read, label: { add: [seen] } }
  - { id: after-read, match: { tool: mail, where: { path: '$.session.labels[*]', eq: seen } }, deny: {} }
";
    let calls = r#"{"tool":"mail","input":{},"recorded":{"output":1}}
{"tool":"read","input":{},"recorded":{"output":1}}
{"tool":"mail","input":{},"recorded":{"output":1}}
"#;
    let dir = TestDir::new(&[("rules.yaml", rules), ("calls.jsonl", calls)]);
    let report = report(&dir, &["--policies", "rules.yaml", "calls.jsonl"]);
    let causes: Vec<_> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["after"]["policy"].clone(), change["examples"][0]["line"].clone()))
        .collect();
    assert_eq!(causes, [(json!("after-read"), json!(3)), (json!("no-read"), json!(2))], "{report:#}");
}

/// Limits by principal count across sessions, in the order and at the times of the recording.
#[test]
fn limits_count_at_the_recorded_times() {
    let line = |id: &str, session: &str, time: &str| {
        let members = json!({ "session": session, "time": time, "recorded": { "output": 1 }, "input": {} });
        event(id, "executed", "allowed", &members)
    };
    let log = [
        line("a", "s1", "2026-11-01T10:00:00Z"),
        line("b", "s2", "2026-11-01T10:30:00Z"),
        line("c", "s3", "2026-11-01T12:00:00Z"),
    ]
    .concat();
    let rules = "policies: [{ id: one, match: pay, rate_limit: { limit: 1, per: 1h } }]";
    let dir = TestDir::new(&[("rules.yaml", rules), ("log.jsonl", &log)]);
    let report = report(&dir, &["--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!(report["summary"]["stricter"], 1, "{report:#}");
    assert_eq!(report["changes"][0]["examples"][0]["id"], "b");
}

/// A session that was halted in the middle of a round stays halted.
#[test]
fn recorded_halts_stop_later_calls() {
    let position = |index: u8| json!({ "index": index, "size": 2 });
    let log = [
        event(
            "a",
            "executed",
            "allowed",
            &json!({ "round_position": position(0), "recorded": { "output": 1 } }),
        ),
        event("b", "halted", "halted", &json!({ "round_position": position(1), "tool": "rm" })),
        event("c", "halted", "session_halted", &json!({})),
    ]
    .concat();
    let stop = "policies: [{ id: stop, match: rm, halt: {} }]";
    let dir = TestDir::new(&[("stop.yaml", stop), ("free.yaml", FREE), ("log.jsonl", &log)]);
    let same = report(&dir, &["--policies", "stop.yaml", "log.jsonl"]);
    assert_eq!((&same["summary"]["unchanged"], &same["changes"]), (&json!(3), &json!([])), "{same:#}");
    let free = report(&dir, &["--policies", "free.yaml", "log.jsonl"]);
    assert_eq!(free["summary"]["looser"], 2, "{free:#}");
}

#[test]
fn changes_of_redacted_calls_are_marked() {
    let redacted = json!({ "input": { "to": "[email]" }, "recorded": { "output": 1 } });
    let rules = "policies: [{ id: inside, match: { tool: pay, where: { path: $.input.to, domain: example.com } }, deny: {} }]";
    let dir =
        TestDir::new(&[("rules.yaml", rules), ("log.jsonl", &event("a", "executed", "allowed", &redacted))]);
    let report = report(&dir, &["--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!(
        (&report["changes"][0]["redacted"], &report["summary"]["redacted"]),
        (&json!(1), &json!(1)),
        "{report:#}"
    );
    assert_eq!(report["changes"][0]["after"]["code"], "undecided");
}

#[test]
fn unreadable_lines_are_reported_and_fail() {
    let good = event("a", "executed", "allowed", &json!({ "recorded": { "output": 1 }, "input": {} }));
    let digest = event("a", "executed", "allowed", &json!({ "input_digest": "00" }));
    let later = good.replace("\"version\":1", "\"version\":99");
    let cut: String = good.chars().take(good.len() / 2).collect();
    for (log, code, message) in [
        (format!("{good}{cut}"), 0, "the last line is incomplete"),
        (format!("{cut}\n{good}"), 2, "invalid JSON"),
        (digest, 2, "record it with `--log-content redacted`"),
        (later, 2, "use a newer Callgate"),
        ("{\"tool\":\"pay\"".to_owned(), 2, "invalid JSON"),
        (event("a", "exploded", "allowed", &json!({})), 2, "unknown outcome"),
    ] {
        let dir = TestDir::new(&[("rules.yaml", FREE), ("log.jsonl", &log)]);
        let ended = dir.run(&["backtest", "--policies", "rules.yaml", "log.jsonl"]);
        assert_eq!(ended.code, Some(code), "{log}\n{}", ended.transcript());
        assert!(ended.stderr.contains(message), "{log}\n{}", ended.transcript());
    }
}

/// Whoever can write a log controls neither the terminal nor the memory.
#[test]
fn names_of_a_hostile_log_are_escaped_and_bounded() {
    let mut log = String::new();
    for number in 0..1_100 {
        let members = json!({
            "tool": format!("t{number}\u{1b}[2J\n✓ stricter"), "session": "\u{202e}s", "input": {},
            "context": { "principal": "\u{1b}]0;x" }, "round_position": { "size": u64::MAX, "index": 0 },
            "duration_us": u64::MAX,
        });
        log += &event(&format!("c{number}"), "denied", "denied", &members);
    }
    let dir = TestDir::new(&[("rules.yaml", FREE), ("log.jsonl", &log)]);
    let ended = dir.run(&["backtest", "--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stdout.contains(['\u{1b}', '\u{202e}']) && !ended.stdout.contains("\n✓"));
    assert!(ended.stdout.contains("100 changed calls have other causes"));
}

#[test]
fn the_json_report_fits_its_schema() {
    let text = fs::read_to_string(crate::fixtures::root().join("schemas/backtest.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap();
    let dir = recorded(OLD, CALLS);
    fs::write(dir.0.path().join("new.yaml"), NEW).unwrap();
    let ended = dir.run(&["backtest", "--policies", "new.yaml", "--format", "json", "log.jsonl"]);
    let document = serde_json::from_str(&ended.stdout).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{}", ended.stdout);
}

/// A call that was suspended and approved is one call of its limits and budgets, whether the rules require the approval or not.
#[test]
fn an_approved_call_counts_once() {
    let approved = json!({ "approved_by": { "approval_id": "x" }, "recorded": { "output": 1 } });
    let log: String = ["a", "b"]
        .map(|id| {
            event(id, "suspended", "approval_required", &json!({}))
                + &event(id, "executed", "approved", &approved)
        })
        .concat()
        + &event(
            "c",
            "executed",
            "allowed",
            &json!({ "recorded": { "output": 1 }, "input": { "amount": 1 } }),
        );
    let counted = [
        "rate_limit: { limit: 3, per: 1h }",
        "rate_limit: { limit: 3, per: 1h, count: attempts }",
        "rate_limit: { limit: 3, per: 1h, algorithm: sliding_window }",
        "rate_limit: { limit: 3, per: run }",
        "rate_limit: { limit: 401, per: 1h, cost: $.input.amount }",
    ];
    for limit in counted {
        for ask in [
            "",
            "- { id: ask, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, approval: {} }",
        ] {
            let fits = format!("policies:\n  - {{ id: few, match: pay, {limit} }}\n  {ask}\n");
            let tight = fits.replace("limit: 3,", "limit: 2,").replace("limit: 401,", "limit: 400,");
            let dir = TestDir::new(&[("fits.yaml", &fits), ("tight.yaml", &tight), ("log.jsonl", &log)]);
            let denied = |rules: &str| {
                let report = report(&dir, &["--policies", rules, "log.jsonl"]);
                let changes = report["changes"].as_array().unwrap().clone();
                changes.iter().filter(|change| change["after"]["effect"] == "deny").count()
            };
            assert_eq!((denied("fits.yaml"), denied("tight.yaml")), (0, 1), "{fits}");
        }
    }
    let budget =
        |calls: u32| format!("policies: [{{ id: b, budget: {{ calls: {calls}, per: principal }} }}]");
    let named = log.replace("\"session\"", "\"context\":{\"principal\":\"ann\"},\"session\"");
    let dir = TestDir::new(&[("three.yaml", &budget(3)), ("two.yaml", &budget(2)), ("log.jsonl", &named)]);
    for (rules, stricter) in [("three.yaml", 0), ("two.yaml", 1)] {
        let report = report(&dir, &["--policies", rules, "log.jsonl"]);
        assert_eq!(report["summary"]["stricter"], stricter, "{rules}: {report:#}");
    }
}

/// The calls of each dialect's examples, with their results, rounds and answered approvals.
#[test]
fn histories_of_all_dialects_are_recordings() {
    let rules = "policies: [{ id: no-refund, match: refund, deny: {} }]";
    for dialect in ["openai-chat", "openai-responses", "anthropic", "gemini", "ai-sdk"] {
        let path = crate::fixtures::root().join(format!("tests/dialects/{dialect}/parallel-calls.json"));
        let pretty = fs::read_to_string(path).unwrap();
        let line = json::parse(&pretty).unwrap().to_string();
        let dir = TestDir::new(&[
            ("rules.yaml", rules),
            ("pretty.json", &pretty),
            ("lines.jsonl", &format!("{line}\n{line}\n")),
        ]);
        for (file, histories) in [("pretty.json", 1), ("lines.jsonl", 2)] {
            let report = report(&dir, &["--policies", "rules.yaml", file]);
            let change = &report["changes"][0];
            assert_eq!(
                (&change["tool"], &change["calls"], &change["direction"]),
                (&json!("refund"), &json!(histories), &json!("stricter")),
                "{dialect} {file}: {report:#}"
            );
            assert_eq!(report["summary"]["unchanged"], histories, "{dialect} {file}: {report:#}");
            assert!(change["examples"][0]["session"].as_str().unwrap().starts_with(file), "{report:#}");
        }
    }
}

#[test]
fn a_document_that_is_no_history_loses_no_other_file() {
    let good = event("a", "executed", "allowed", &json!({ "recorded": { "output": 1 } }));
    let dir = TestDir::new(&[
        ("rules.yaml", FREE),
        ("torn.json", "[\n  {\n    \"role\": \"user\""),
        ("log.jsonl", &good),
    ]);
    let ended = dir.run(&["backtest", "--policies", "rules.yaml", "torn.json", "log.jsonl"]);
    assert_eq!(ended.code, Some(2), "{}", ended.transcript());
    assert!(ended.stderr.contains("torn.json:1: invalid JSON"), "{}", ended.stderr);
    assert!(ended.stdout.contains("1 call compared"), "{}", ended.stdout);
}

#[test]
fn audit_logs_are_recordings() {
    let dir = TestDir::new(&[("rules.yaml", OLD), ("new.yaml", NEW), ("calls.jsonl", CALLS)]);
    let run = dir.run(&[
        "run",
        "--policies",
        "rules.yaml",
        "--log",
        "audit:audit.jsonl",
        "--log-content",
        "redacted",
        "calls.jsonl",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.transcript());
    let same = report(&dir, &["--policies", "rules.yaml", "audit.jsonl"]);
    assert_eq!((&same["summary"]["compared"], &same["changes"]), (&json!(6), &json!([])), "{same:#}");
    let new = report(&dir, &["--policies", "new.yaml", "audit.jsonl"]);
    assert!(new["summary"]["looser"].as_u64() > Some(0), "{new:#}");
}

/// A sample is the same part of the sessions in each run, and whole sessions.
#[test]
fn a_sample_is_a_part_of_the_sessions() {
    let calls: String = (0..400)
        .map(|number| {
            format!(
                "{{\"tool\":\"pay\",\"input\":{{}},\"session\":\"s{}\",\"recorded\":{{\"output\":1}}}}\n",
                number / 4
            )
        })
        .collect();
    let dir = TestDir::new(&[("rules.yaml", FREE), ("calls.jsonl", &calls)]);
    let compared = |sample: &str| {
        let report = report(&dir, &["--policies", "rules.yaml", "--sample", sample, "calls.jsonl"]);
        report["summary"]["compared"].as_u64().unwrap()
    };
    let quarter = compared("0.25");
    assert!((40..160).contains(&quarter) && quarter.is_multiple_of(4), "{quarter}");
    assert_eq!((compared("0.25"), compared("1")), (quarter, 400));
}

/// Beyond the most open sessions, the one idle for longest begins again, and the report says so.
#[test]
fn the_number_of_open_sessions_is_bounded() {
    let call = |session: usize| {
        format!(
            "{{\"tool\":\"pay\",\"input\":{{}},\"session\":\"s{session}\",\"recorded\":{{\"output\":1}}}}\n"
        )
    };
    let mut calls: String = (0..10_001).map(call).collect();
    // The first one was closed, the last one was not.
    calls.push_str(&(call(0) + &call(10_000)));
    let rules = "policies: [{ id: once, match: pay, rate_limit: { limit: 1, per: run } }]";
    let dir = TestDir::new(&[("rules.yaml", rules), ("calls.jsonl", &calls)]);
    let ended = dir.run(&["backtest", "--policies", "rules.yaml", "--format", "json", "calls.jsonl"]);
    let report: Value = json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["changes"][0]["calls"], 1, "{report:#}");
    assert_eq!(report["changes"][0]["examples"][0]["line"], 10_003);
    assert!(ended.stderr.contains("2 sessions were closed because too many were open"), "{}", ended.stderr);
}

/// Times that jump back, to the beginning of time and to its end lose no call, and limits count by the recorded times.
#[test]
fn clock_jumps_lose_no_call() {
    let times =
        ["2026-01-01T10:00:00Z", "1970-01-01T00:00:00Z", "9999-12-30T00:00:00Z", "2026-01-01T10:00:01Z"];
    let mut log = String::new();
    for number in 0..40 {
        let members = json!({ "time": times[number % times.len()], "recorded": { "output": 1 } });
        log += &event(&format!("c{number}"), "executed", "allowed", &members);
    }
    let rules = "policies: [ { id: many, match: '*', rate_limit: { limit: 1000, per: 1h } } ]";
    let dir = TestDir::new(&[("rules.yaml", rules), ("log.jsonl", &log)]);
    let report = report(&dir, &["--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!((&report["summary"]["compared"], &report["summary"]["unchanged"]), (&json!(40), &json!(40)));
}
