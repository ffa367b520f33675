//! `callgate run`: reads calls, and prints each outcome as soon as it is known.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use callgate::json::Value;

use super::{CommandResult, TestDir, settings};

const RULES: &str = r#"
policies:
  - { id: no-mail, match: mail, deny: { message: "No mail to {{ input.to }}" } }
  - { id: ask, match: pay, approval: { message: "Pay {{ input.amount }}?" } }
  - { id: stop, match: stop, halt: { message: Enough } }
  - { id: guests, match: { where: [ { path: $.context.guest, eq: true } ] }, deny: { message: No guests } }
  - id: once
    match: { tool: once, where: [ { path: $.session.calls.once, gte: 1 } ] }
    deny: { message: Once is enough }
  - { id: watch, mode: shadow, match: look, deny: {} }
"#;

fn test_dir() -> TestDir {
    TestDir::new(&[("rules.yaml", RULES)])
}

const JSON: [&str; 6] = ["run", "--policies", "rules.yaml", "--format", "json", "-"];
const TEXT: [&str; 4] = ["run", "--policies", "rules.yaml", "-"];

impl CommandResult {
    fn outcomes(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| callgate::json::from_str(line).unwrap()).collect()
    }

    /// The id and outcome of each call.
    fn summaries(&self) -> Vec<String> {
        let word = |outcome: &Value, key: &str| outcome[key].as_str().unwrap().to_owned();
        self.outcomes().iter().map(|one| format!("{} {}", word(one, "id"), word(one, "outcome"))).collect()
    }
}

#[test]
fn json_outcomes_have_the_documented_members() {
    let calls = r#"{"id":"c1","tool":"look","input":{"n":1.50},"session":"s","recorded":{"output":{"ok":true}}}
{"id":"c2","tool":"look","input":{},"recorded":{"error":"boom"}}
{"tool":"pay","input":{"amount":5}}
{"id":"c4","tool":"mail","input":{"to":"ana"}}
{"id":"c5","tool":"other","input":{}}
"#;
    let first = test_dir().run_with_input(&JSON, calls);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let mask = |text: &str| {
        let digits = regex::Regex::new(r#""duration_us":\d+"#).unwrap();
        let revision = regex::Regex::new(r#""revision":"[0-9a-f]+""#).unwrap();
        let text = digits.replace_all(text, r#""duration_us":0"#);
        let text = revision.replace_all(&text, r#""revision":"…""#).into_owned();
        let drawn = regex::Regex::new(r#""(approvalToken|inputDigest)":"[^"]+""#).unwrap();
        drawn.replace_all(&text, r#""$1":"…""#).into_owned()
    };
    settings().bind(|| insta::assert_snapshot!("run_json", mask(&first.stdout)));
    let second = test_dir().run_with_input(&JSON, calls);
    assert_eq!(mask(&second.stdout), mask(&first.stdout));
}

#[test]
fn text_format_is_a_table() {
    let calls = r#"{"id":"c1","tool":"look","input":{},"session":"ana","recorded":{"output":1}}
{"id":"c2","tool":"mail","input":{"to":"bob\u001b[2J\nsecond line"},"session":"ana"}
no call
{"id":"c4","tool":"pay","input":{"amount":5},"session":"lea"}
{"id":"c5","tool":"stop","input":{},"session":"lea"}
{"id":"c6","tool":"look","input":{},"session":"lea"}
"#;
    settings()
        .bind(|| insta::assert_snapshot!("run_table", test_dir().run_with_input(&TEXT, calls).transcript()));
}

#[test]
fn outcome_is_printed_right_after_its_line() {
    let dir = test_dir();
    for (arguments, skipped) in [(&JSON[..], 0), (&TEXT[..], 1)] {
        let mut command = dir.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        for number in 0..3 {
            writeln!(stdin, r#"{{"id":"call-{number}","tool":"look","input":{{}}}}"#).unwrap();
            let skipped = if number == 0 { skipped } else { 0 };
            let line = stdout.by_ref().nth(skipped).unwrap().unwrap();
            assert!(line.contains(&format!("call-{number}")), "{line}");
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn closed_stdout_ends_the_run_quietly() {
    let dir = test_dir();
    let mut command = dir.command(&JSON);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    while writeln!(stdin, r#"{{"tool":"look","input":{{}}}}"#).is_ok() {}
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn invalid_lines_are_denied_and_the_run_continues() {
    let mut calls =
        b"\n{\"tool\":\"look\",\"input\":{}}\n{\"tool\":\"look\"\n   \n[]\n{\"input\":{}}\n".to_vec();
    calls.extend(b"{\"tool\":\"caf\xe9\",\"input\":{}}\n");
    calls.extend(b"{\"tool\":\"look\",\"input\":{\"a\\u001b\":1,\"a\\u001b\":2}}\n");
    calls.extend(br#"{"tool":"look","input":""#);
    calls.extend(b"x".repeat(17 << 20));
    calls.extend(b"\"}\n{\"tool\":\"look\",\"input\":{}}");
    let ended = test_dir().run_with_input(&JSON, calls);
    assert_eq!(ended.code, Some(2));
    let expected = [
        "line_2 executed",
        "line_3 denied",
        "line_5 denied",
        "line_6 denied",
        "line_7 denied",
        "line_8 denied",
        "line_9 denied",
        "line_10 executed",
    ];
    assert_eq!(ended.summaries(), expected);
    let outcomes = ended.outcomes();
    assert!(outcomes[1..7].iter().all(|one| one["reason"]["code"] == "invalid_call"));
    let problems: Vec<&str> = ended.stderr.lines().collect();
    for (problem, wanted) in problems.iter().zip([
        "error: stdin:3: invalid JSON: unexpected end of the text (column",
        "error: stdin:5: a call must be a JSON object, this is an array",
        "error: stdin:6: `tool` is missing",
        "error: stdin:7: invalid UTF-8: byte 0xE9",
        "error: stdin:8: invalid JSON: duplicate key `a\\u{1b}`",
        "error: stdin:9: the line has 18 MiB; the limit is 16 MiB",
    ]) {
        assert!(problem.starts_with(wanted), "{problem}");
    }
    assert_eq!(problems.len(), 6);
}

#[test]
fn interleaved_sessions_are_independent() {
    let call = |id: &str, session: &str, tool: &str| {
        format!(r#"{{"id":"{id}","session":{session},"tool":"{tool}","input":{{}}}}"#) + "\n"
    };
    let calls = [
        call("a1", "\"a\"", "once"),
        call("b1", "\"b\"", "stop"),
        call("n1", "null", "once"),
        call("a2", "\"a\"", "once"),
        call("b2", "\"b\"", "once"),
        call("a3", "\"a\"", "look"),
        call("n2", "null", "once"),
    ];
    let ended = test_dir().run_with_input(&JSON, calls.concat());
    let expected =
        ["a1 executed", "b1 halted", "n1 executed", "a2 denied", "b2 halted", "a3 executed", "n2 denied"];
    assert_eq!(ended.summaries(), expected);
}

#[test]
fn calls_of_one_round_are_decided_together() {
    let calls = r#"{"id":"a1","session":"a","round":1,"tool":"look","input":{}}
{"id":"b1","session":"b","tool":"look","input":{}}
{"id":"a2","session":"a","round":1.0,"tool":"stop","input":{}}
{"id":"a3","session":"a","round":2,"tool":"look","input":{}}
{"id":"c1","session":"c","round":"x","tool":"once","input":{},"recorded":{"output":1}}
{"id":"c1","session":"c","round":"x","tool":"once","input":{},"recorded":{"output":2}}
{"id":"c3","session":"c","tool":"look","input":{}}
{"id":"d1","session":"d","round":1,"tool":"look","input":{"n":1},"recorded":{"output":"one"}}
{"id":"d1","session":"d","round":1,"tool":"look","input":{"n":2},"recorded":{"output":"two"}}
"#;
    let ended = test_dir().run_with_input(&JSON, calls);
    // b's call does not wait. No call of a's round runs, because one of them halts.
    let expected = [
        "b1 executed",
        "a1 halted",
        "a2 halted",
        "c1 executed",
        "c1 denied",
        "c3 executed",
        "a3 halted",
        "d1 executed",
        "d1 executed",
    ];
    assert_eq!(ended.summaries(), expected);
    let outputs: Vec<Value> = ended.outcomes().into_iter().map(|outcome| outcome["output"].clone()).collect();
    assert_eq!((&outputs[3], &outputs[7], &outputs[8]), (&1.into(), &"one".into(), &"two".into()));
}

#[test]
fn round_size_and_open_sessions_are_bounded() {
    let round: String = (0..1001)
        .map(|number| format!("{{\"id\":\"{number}\",\"round\":1,\"tool\":\"look\",\"input\":{{}}}}\n"))
        .collect();
    let ended = test_dir()
        .run_with_input(&JSON, round + "{\"id\":\"stop\",\"round\":1,\"tool\":\"stop\",\"input\":{}}");
    let ends = ended.summaries();
    assert_eq!((&*ends[999], &*ends[1000]), ("999 executed", "1000 halted"));
    assert!(ended.stderr.starts_with("warning: a round is decided in parts"), "{}", ended.stderr);

    let call = |session: usize| format!("{{\"session\":\"{session}\",\"tool\":\"once\",\"input\":{{}}}}\n");
    let mut calls: String = (0..10_000).map(call).collect();
    // The first session was used recently when the limit is exceeded, so the second is closed and loses its state.
    calls.extend([call(0), call(10_000), call(0), call(1)]);
    let ended = test_dir().run_with_input(&JSON, calls);
    let last: Vec<String> = ended.summaries().split_off(10_000);
    assert_eq!(
        last,
        ["line_10001 denied", "line_10002 executed", "line_10003 denied", "line_10004 executed"]
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("more than 10,000 sessions"), "{}", ended.stderr);
}

#[test]
fn fail_on_sets_the_exit_status() {
    let dir = test_dir();
    let calls = "{\"tool\":\"mail\",\"input\":{\"to\":\"bob\"}}\n";
    let with = |arguments: &[&str]| dir.run_with_input(&[&TEXT[..], arguments].concat(), calls);
    assert_eq!(with(&[]).code, Some(0));
    assert_eq!(with(&["--fail-on", "suspended,halted"]).code, Some(0));
    assert_eq!(with(&["--fail-on", "suspended,denied"]).code, Some(1));
    let unknown = with(&["--fail-on", "refused"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("executed, cached, answered"), "{}", unknown.stderr);
}

#[test]
fn context_of_a_call_overrides_the_context_file() {
    let dir = TestDir::new(&[
        ("rules.yaml", RULES),
        ("guest.json", r#"{"guest":true,"tenant":"acme"}"#),
        ("list.json", "[]"),
        ("broken.json", "{\n \"guest\": tru }"),
    ]);
    let calls = r#"{"id":"own","tool":"look","input":{},"context":{"guest":false}}
{"id":"none","tool":"look","input":{}}
{"id":"other","tool":"look","input":{},"context":{"principal":"ana"}}
"#;
    let with = |file: &str| dir.run_with_input(&[&JSON[..], &["--context", file]].concat(), calls);
    assert_eq!(with("guest.json").summaries(), ["own executed", "none denied", "other denied"]);
    for (file, problem) in [
        ("list.json", "must be a JSON object"),
        ("broken.json", "broken.json:2:"),
        ("gone.json", "can't be read"),
    ] {
        let ended = with(file);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{file}");
        assert!(ended.stderr.contains(problem), "{}", ended.stderr);
    }
}

#[test]
fn calls_are_validated_against_tool_schemas() {
    let tools = r#"[{"name":"pay","input_schema":{"required":["amount"]}},{"name":"odd","input_schema":{"type":"x"}}]"#;
    let rules = "policies: [{ id: fits, validate: { schema: tool } }]";
    let dir = TestDir::new(&[("rules.yaml", rules), ("tools.json", tools)]);
    let calls = r#"{"id":"fits","tool":"pay","input":{"amount":1}}
{"id":"lacks","tool":"pay","input":{}}
{"id":"odd","tool":"odd","input":{}}
"#;
    let ended = dir.run_with_input(&[&JSON[..], &["--tools", "tools.json"]].concat(), calls);
    assert_eq!(ended.summaries()[..2], ["fits executed", "lacks invalid"]);
    assert_ne!(ended.summaries()[2], "odd executed");
    assert!(
        ended.stderr.starts_with("warning: the schema of the tool `odd` can't be used"),
        "{}",
        ended.stderr
    );
}

#[test]
fn invalid_rules_decide_nothing() {
    let dir = TestDir::new(&[("bad.yaml", "policies: [{ id: a, denny: {} }]"), ("calls.jsonl", "")]);
    let ended = dir.run(&["run", "--policies", "bad.yaml", "calls.jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("error[CG201]"), "{}", ended.stderr);
    let ended = dir.run(&["run", "--policies", "gone.yaml", "calls.jsonl"]);
    assert_eq!(ended.code, Some(2));
}

#[test]
fn accepts_rules_and_calls_in_any_usual_order() {
    let call = "{\"tool\":\"mail\",\"input\":{\"to\":\"bob\"}}";
    let more = "policies: [{ id: more, match: more, allow: {} }]";
    let dir = TestDir::new(&[("rules.yaml", RULES), ("more.yaml", more), ("calls.jsonl", call)]);
    for arguments in [
        &["--policies", "rules.yaml", "more.yaml", "calls.jsonl"][..],
        &["--policies", "rules.yaml", "--policies", "more.yaml", "calls.jsonl"],
        &["calls.jsonl", "--policies", "rules.yaml", "more.yaml"],
        &["--policies", ".", "--format", "text", "calls.jsonl"],
    ] {
        let ended = dir.run(&[&["run"], arguments].concat());
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stdout.contains("No mail to bob"), "{arguments:?}");
    }
    for arguments in
        [&["--policies", "rules.yaml"][..], &["--policies", "rules.yaml", "more.yaml"], &["calls.jsonl"]]
    {
        let ended = dir.run(&[&["run"], arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
    }
    let gone = dir.run(&["run", "--policies", "rules.yaml", "--", "gone.jsonl"]);
    assert_eq!(gone.code, Some(2));
    assert!(gone.stderr.contains("`gone.jsonl` can't be read"), "{}", gone.stderr);
}

/// A key that the JSON parser takes for its private marker would change the numbers that policies see.
#[test]
fn private_parser_keys_hide_no_amount() {
    let rules = "policies:\n  - { id: no-large, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} }";
    let calls = [
        r#"{"tool":"pay","input":{"note":{"$serde_json::private::Number":"5"},"amount":99999,"z":1e0}}"#,
        r#"{"tool":"pay","input":{"note":{"\u0024serde_json::private::Number":"5"},"amount":99999,"z":1e0}}"#,
        r#"{"tool":"pay","input":{"note":[{"$serde_json::private::RawValue":"5"}],"amount":99999,"z":1e0}}"#,
        r#"{"tool":"pay","input":{"note":{"$callgate::json::Value":"5"},"amount":99999,"z":1e0}}"#,
        r#"{"tool":"pay","input":{"amount":{"$serde_json::private::Number":"5"}}}"#,
        r#"{"tool":"pay","input":{"amount":100.00000000000000000000000001}}"#,
    ];
    let ended = TestDir::new(&[("rules.yaml", rules)]).run_with_input(&JSON, calls.join("\n"));
    let outcomes = ended.outcomes();
    assert_eq!(outcomes.len(), calls.len(), "{}", ended.stderr);
    for (outcome, call) in outcomes.iter().zip(calls) {
        assert_eq!(outcome["outcome"], "denied", "{call}");
        assert_eq!(outcome["input"], callgate::json::parse(call).unwrap()["input"]);
    }
}

/// Another spelling of an argument's name does not bypass a policy that reads it.
#[test]
fn ambiguous_argument_names_are_invalid() {
    let rules = "policies: [ { id: big, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, deny: {} } ]";
    let calls = r#"{"id":"c1","tool":"pay","input":{"Amount":5000}}
{"id":"c2","tool":"pay","input":{"amount":5,"AMOUNT":5000}}
{"id":"c3","tool":"pay","input":{"amount":5}}
"#;
    let ended = TestDir::new(&[("rules.yaml", rules)]).run_with_input(&JSON, calls);
    assert_eq!(ended.summaries(), ["c1 invalid", "c2 invalid", "c3 executed"]);
    assert_eq!(ended.outcomes()[0]["reason"]["code"].as_str(), Some("ambiguous_argument"));
}

#[test]
fn recorded_course_is_kept_whatever_the_policies_decide() {
    let rules = r#"
policies:
  - { id: stop, match: stop, halt: { message: Enough } }
  - { id: no-order, match: get, deny: { message: "No {{ input.id }}." } }
  - { id: keep, match: get, fact: { name: order, key: input.id, value: output.amount } }
  - { id: taint, match: [get, pay], label: { add: [seen] } }
  - { id: known-only, match: pay, require: { values: ["session.facts.order[input.id]"] } }
  - { id: ask, match: { tool: pay, where: (session.calls.pay ?? 0) > 1 }, approval: {} }
  - { id: few, match: pay, rate_limit: { limit: 2, per: run } }
  - { id: answer, match: ping, respond: { output: policy } }
  - { id: after-ping, match: { tool: last, where: session.calls.ping == 1 && "seen" in session.labels }, deny: {} }
"#;
    let calls = r#"{"id":"get","tool":"get","input":{"id":"A"},"recorded":{"output":{"amount":5}}}
{"id":"stop","tool":"stop","input":{},"recorded":{"output":1}}
{"id":"pay-1","tool":"pay","input":{"id":"A"},"recorded":{"output":1}}
{"id":"unrecorded","tool":"get","input":{"id":"B"}}
{"id":"pay-b","tool":"pay","input":{"id":"B"},"recorded":{"error":"no"}}
{"id":"pay-2","tool":"pay","input":{"id":"A"},"recorded":{"output":1}}
{"id":"ping","tool":"ping","input":{},"recorded":{"output":"tool"}}
{"id":"last","tool":"last","input":{},"recorded":{"output":1}}
"#;
    let dir = TestDir::new(&[("rules.yaml", rules)]);
    let mut arguments = vec!["run", "--as-recorded"];
    arguments.extend(&JSON[1..]);
    let result = dir.run_with_input(&arguments, calls);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert_eq!(
        result.summaries(),
        [
            "get denied",
            // The halt stops no later call.
            "stop halted",
            "pay-1 executed",
            // Nothing was recorded of this call, so that nothing is known of its order.
            "unrecorded denied",
            "pay-b denied",
            // It counts the call before it, which was denied.
            "pay-2 denied",
            "ping answered",
            "last denied",
        ]
    );
    let reasons: Vec<Value> =
        result.outcomes().iter().map(|outcome| outcome["reason"]["policy"].clone()).collect();
    assert_eq!(reasons[5], "few");
    // Without it, the halt stops every later call.
    let plain = dir.run_with_input(&JSON, calls);
    assert_eq!(
        plain.summaries()[2..],
        ["pay-1 halted", "unrecorded halted", "pay-b halted", "pay-2 halted", "ping halted", "last halted"]
    );
}

#[test]
fn calls_of_a_recorded_round_do_not_stop_each_other() {
    let calls = r#"{"id":"c1","tool":"look","input":{},"round":1,"recorded":{"output":1}}
{"id":"c2","tool":"stop","input":{},"round":1,"recorded":{"output":1}}
{"id":"c3","tool":"mail","input":{"to":"a"},"round":1,"recorded":{"output":1}}
{"id":"c4","tool":"look","input":{},"round":2,"recorded":{"output":1}}
"#;
    let mut arguments = vec!["run", "--as-recorded"];
    arguments.extend(&JSON[1..]);
    let result = test_dir().run_with_input(&arguments, calls);
    assert_eq!(
        result.summaries(),
        ["c1 executed", "c2 halted", "c3 denied", "c4 executed"],
        "{}",
        result.stderr
    );
}

#[test]
fn recorded_calls_count_with_the_costs_of_their_results() {
    let rules = "policies:
  - { id: spend, match: ask, rate_limit: { limit: 2, per: 1d, cost: 1, cost_after: result.usd } }
  - { id: never, match: { tool: ask, where: input.stop }, deny: {} }
";
    // The first call is denied and ran when it was recorded, at a cost above its estimate.
    let calls = |usd: &str| {
        format!(
            r#"{{"id":"stopped","tool":"ask","input":{{"stop":true}},"recorded":{{"output":{{"usd":{usd}}}}}}}
{{"id":"next","tool":"ask","input":{{"stop":false}},"recorded":{{"output":{{"usd":0}}}}}}
"#
        )
    };
    let dir = TestDir::new(&[("rules.yaml", rules)]);
    for (usd, next) in [("0.5", "next executed"), ("1.5", "next denied"), ("\"?\"", "next denied")] {
        let mut arguments = vec!["run", "--as-recorded"];
        arguments.extend(&JSON[1..]);
        let result = dir.run_with_input(&arguments, calls(usd));
        assert_eq!(result.summaries(), ["stopped denied", next], "{usd}: {}", result.stderr);
    }
}
