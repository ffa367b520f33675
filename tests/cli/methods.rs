//! Policies for MCP methods on the command line: the name of a request by a method, in calls, tests, logs and reports.

use callgate::json::{self, Value};

use super::TestDir;

const RULES: &str = r#"
policies:
  - { id: no-env, match: { method: resources/read, where: { path: $.input.uri, ends_with: .env } }, deny: {} }
  - { id: no-tools, match: "*", deny: {} }
"#;

const TESTS: &str = r#"
cases:
  - name: secrets
    call: { tool: "method:resources/read", input: { uri: "file:///.env" } }
    expect: { outcome: denied, policy: no-env }
  - name: notes
    stubs: [{ match: { method: resources/read }, returns: { contents: [] } }]
    call: { tool: "method:resources/read", input: { uri: "file:///a" } }
    expect: { outcome: executed, output: { contents: [] } }
  - name: tools
    call: { tool: read, input: { uri: "file:///a" } }
    expect: { outcome: denied, policy: no-tools }
"#;

const CALLS: &str = r#"{"id":"c1","tool":"method:resources/read","input":{"uri":"file:///.env"},"recorded":{"output":{"contents":[]}}}
{"id":"c2","tool":"method:resources/read","input":{"uri":"file:///a"},"recorded":{"output":{"contents":[]}}}
{"id":"c3","tool":"method:prompts/get","input":{"name":"a"},"recorded":{"output":{"messages":[]}}}
{"id":"c4","tool":"resources/read","input":{"uri":"file:///a"}}
"#;

fn directory() -> TestDir {
    let tools = r#"[{ "name": "read", "input_schema": { "type": "object" } }]"#;
    TestDir::new(&[
        ("rules.yaml", RULES),
        ("rules.test.yaml", TESTS),
        ("tools.json", tools),
        ("calls.jsonl", CALLS),
    ])
}

#[test]
fn rules_and_tests_of_methods_are_checked_and_run() {
    let directory = directory();
    let checked = directory.run(&["check", "--tools", "tools.json", "--deny-warnings", "rules.yaml"]);
    assert_eq!(checked.code, Some(0), "{}", checked.transcript());
    let tested = directory.run(&["test", "--coverage", "."]);
    assert_eq!(tested.code, Some(0), "{}", tested.transcript());
}

#[test]
fn recorded_requests_are_evaluated_explained_and_replayed() {
    let directory = directory();
    let ran = directory.run(&[
        "run",
        "--policies",
        "rules.yaml",
        "--format",
        "json",
        "--log",
        "log.jsonl",
        "--log-content",
        "redacted",
        "calls.jsonl",
    ]);
    let outcomes: Vec<Value> = ran.stdout.lines().map(|line| json::from_str(line).unwrap()).collect();
    let shown: Vec<(&str, &str)> = outcomes
        .iter()
        .map(|outcome| (outcome["tool"].as_str().unwrap(), outcome["outcome"].as_str().unwrap()))
        .collect();
    let read = "method:resources/read";
    assert_eq!(
        shown,
        [
            (read, "denied"),
            (read, "executed"),
            ("method:prompts/get", "executed"),
            ("resources/read", "denied")
        ]
    );
    let explained = directory.run(&["explain", "--policies", "rules.yaml", "calls.jsonl"]);
    assert_eq!(explained.code, Some(0), "{}", explained.transcript());
    // A log of requests is a recording of them.
    let replayed = directory.run(&["backtest", "--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.transcript());
    assert!(!replayed.stdout.contains("invalid"), "{}", replayed.transcript());
    let drafted = directory.run(&["suggest", "calls.jsonl"]);
    assert!(!drafted.stdout.contains("method:"), "drafts are for tools: {}", drafted.transcript());
}
