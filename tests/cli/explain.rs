//! `callgate explain`: selection of the call, output formats, and invalid input.

use callgate::json::{Value, json};

use super::{TestDir, settings};

const RULES: &str = r#"policies:
  - id: large-refunds
    description: Refunds above 100 are confirmed by a person.
    match:
      tool: refund
      where: { path: $.input.amount, gt: 100 }
    approval: {}
  - id: few
    match: refund
    rate_limit: { limit: 2, per: run }
  - { id: mail, match: "mail*", deny: {} }
  - { id: search, match: search, redact: { detect: email } }
"#;

const CALL: &str = r#"{ "tool": "refund",
  "input": { "amount": 250 } }
"#;

const SESSION: &str = r#"{"id":"a","tool":"refund","input":{"amount":1},"recorded":{"output":"ok"}}
{"id":"other","session":"s2","tool":"refund","input":{"amount":1}}

{"id":"b","tool":"refund","input":{"amount":2},"round":1,"recorded":{"output":"ok"}}
{"id":"b","tool":"refund","input":{"amount":300},"round":1}
{"id":"c","tool":"refund","input":{"amount":3},"round":1,"recorded":{"error":"down"}}
{"tool":"refund","input":{"amount":4}}
{"id":"later","tool":"mail","input":{}}
"#;

fn test_dir() -> TestDir {
    TestDir::new(&[
        ("rules.yaml", RULES),
        ("call.json", CALL),
        ("session.jsonl", SESSION),
        ("broken.yaml", "policies: [{ id: a, denny: {} }]"),
        ("list.json", "[{\"tool\": \"refund\", \"input\": {}}]"),
        ("torn.json", "{\n  \"tool\": \"refund\",\n  \"input\": {,}\n}\n"),
        ("torn.jsonl", "{\"tool\":\"refund\",\"input\":{}}\n{\"tool\":\n"),
        ("tool-less.json", "{\"input\": {}}"),
        ("doubled.json", "{\"tool\": \"a\", \"tool\": \"b\", \"input\": {}}"),
        ("blank.json", "\n \n"),
        ("context.json", "{\"principal\": \"ana\"}"),
    ])
}

fn explain(dir: &TestDir, arguments: &[&str]) -> Value {
    let ended = dir.run(&[&["explain", "--format", "json", "--policies", "rules.yaml"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.transcript());
    callgate::json::from_str(&ended.stdout).unwrap()
}

#[test]
fn explanation_is_printed_to_stdout() {
    let dir = test_dir();
    settings().bind(|| {
        let tell = |arguments: &[&str]| {
            dir.run(&[&["explain", "--policies", "rules.yaml"], arguments].concat()).transcript()
        };
        insta::assert_snapshot!("explain_call", tell(&["call.json"]));
        insta::assert_snapshot!("explain_all", tell(&["--all", "call.json"]));
        insta::assert_snapshot!("explain_why_not", tell(&["--why-not", "mail", "call.json"]));
        insta::assert_snapshot!("explain_unknown", tell(&["--why-not", "large-refund", "call.json"]));
    });
}

#[test]
fn exit_status_is_about_the_explanation_not_the_outcome() {
    let dir = test_dir();
    for (arguments, code, said) in [
        (&["rules.yaml", "call.json"][..], 0, ""),
        (&["rules.yaml", "--why-not", "few", "call.json"], 0, ""),
        (&["rules.yaml", "--context", "context.json", "call.json"], 0, ""),
        (&["broken.yaml", "call.json"], 1, "denny"),
        (&["rules.yaml", "--why-not", "large-refund", "call.json"], 2, "did you mean `large-refunds`?"),
        (&["rules.yaml", "--why-not", "zzz", "call.json"], 2, "there is no policy `zzz`"),
        (&["rules.yaml", "--call", "lter", "session.jsonl"], 2, "did you mean `later`?"),
        (&["rules.yaml", "--call", "zzzzz", "session.jsonl"], 2, "named after its line"),
        (&["rules.yaml", "list.json"], 2, "is a JSON array"),
        (&["rules.yaml", "torn.json"], 2, "torn.json:3:13: invalid JSON"),
        (&["rules.yaml", "torn.jsonl"], 2, "torn.jsonl:2: invalid JSON"),
        (&["rules.yaml", "tool-less.json"], 2, "tool-less.json: `tool` is missing"),
        (&["rules.yaml", "doubled.json"], 2, "doubled.json:1: invalid JSON"),
        (&["rules.yaml", "blank.json"], 2, "`blank.json` contains no call"),
        (&["rules.yaml", "nowhere.json"], 2, "`nowhere.json` can't be read"),
        (&["rules.yaml"], 2, "no call given"),
        (&["rules.yaml", "--format", "xml", "call.json"], 2, "xml"),
    ] {
        let ended = dir.run(&[&["explain", "--policies"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.transcript());
        assert!(ended.stderr.contains(said), "{arguments:?}: {}", ended.transcript());
        assert_eq!(ended.stdout.is_empty(), code != 0, "{arguments:?}: {}", ended.transcript());
    }
}

#[test]
fn explains_the_last_or_the_named_call() {
    let dir = test_dir();
    let told = |arguments: &[&str]| {
        let told = explain(&dir, arguments);
        (told["call"]["id"].clone(), told["input"]["amount"].clone(), told["outcome"].clone())
    };
    assert_eq!(told(&["session.jsonl"]), (json!("later"), json!(null), json!("denied")));
    assert_eq!(told(&["--call", "line_7", "session.jsonl"]), (json!("line_7"), json!(4), json!("denied")));
    // Of several calls with one id the last; later calls of its round are decided with it.
    assert_eq!(told(&["--call", "b", "session.jsonl"]), (json!("b"), json!(300), json!("denied")));
    assert_eq!(told(&["--call", "c", "session.jsonl"]), (json!("c"), json!(3), json!("denied")));
    assert_eq!(told(&["--call", "other", "session.jsonl"]), (json!("other"), json!(1), json!("executed")));
    let ended = dir.run_with_input(&["explain", "--format", "json", "--policies", "rules.yaml", "-"], CALL);
    let told: Value = callgate::json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["outcome"], "suspended");
    assert_eq!(explain(&dir, &[CALL])["outcome"], "suspended");
    let broken = dir.run(&["explain", "--policies", "rules.yaml", r#"{"tool": "refund", "input": }"#]);
    assert_eq!(broken.code, Some(2));
    assert!(broken.stderr.contains("the call:1: "), "{}", broken.transcript());
}

/// The explained outcome equals that of `run`, for every call of a session, also in rounds.
#[test]
fn conclusion_equals_the_outcome_of_run() {
    let dir = test_dir();
    let numbered: Vec<String> = (0..)
        .zip(SESSION.lines().filter(|line| !line.is_empty()))
        .map(|(number, line)| {
            let mut call: Value = callgate::json::from_str(line).unwrap();
            call["id"] = format!("n{number}").into();
            call.to_string()
        })
        .collect();
    std::fs::write(dir.0.path().join("numbered.jsonl"), numbered.join("\n")).unwrap();
    let run = dir.run(&["run", "--format", "json", "--policies", "rules.yaml", "numbered.jsonl"]);
    let outcomes: Vec<Value> =
        run.stdout.lines().map(|line| callgate::json::from_str(line).unwrap()).collect();
    assert_eq!(outcomes.len(), numbered.len());
    for outcome in outcomes {
        let told = explain(&dir, &["--call", outcome["id"].as_str().unwrap(), "numbered.jsonl"]);
        for member in ["outcome", "reason", "input", "revision"] {
            assert_eq!(told[member], outcome[member], "{member} of {outcome}");
        }
    }
}

#[test]
fn prints_colours_only_on_request_and_escapes_call_content() {
    let dir = test_dir();
    let call = r#"{"tool": "refund", "input": {"amount": "\u001b[31m\u202e"}}"#;
    let plain = dir.run_with_input(&["explain", "--policies", "rules.yaml", "-"], call).stdout;
    assert!(!plain.contains('\u{1b}') && !plain.contains('\u{202e}'), "{plain}");
    let mut command = dir.command(&["explain", "--policies", "rules.yaml", "call.json"]);
    let coloured = command.env("CLICOLOR_FORCE", "1").output().unwrap().stdout;
    assert!(String::from_utf8(coloured).unwrap().contains("\u{1b}[33m? suspended"));
}
