//! `--candidate`: differences in the log, the report and the metrics; candidates that can't be used.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::TestDir;

const ACTIVE: &str = "policies: [ { id: ask-above, match: { tool: pay, where: { path: $.input.amount, gt: 500 } }, approval: {} } ]";
const CANDIDATE: &str = "policies: [ { id: at-most-100, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: {} } ]";
const CALLS: &str = r#"{"id":"c1","tool":"pay","input":{"amount":10},"context":{"principal":"ann"},"recorded":{"output":"ok"}}
{"id":"c2","tool":"pay","input":{"amount":200},"context":{"principal":"ann"},"recorded":{"output":"ok"}}
{"id":"c3","tool":"pay","input":{"amount":900},"context":{"principal":"bob"},"recorded":{"output":"ok"}}
"#;

#[test]
fn differences_are_in_the_log_and_in_the_report() {
    let dir = TestDir::new(&[("rules.yaml", ACTIVE), ("candidate.yaml", CANDIDATE), ("calls.jsonl", CALLS)]);
    let run = ["run", "--policies", "rules.yaml", "--candidate", "candidate.yaml"];
    let plain = dir.run(&["run", "--policies", "rules.yaml", "--format", "json", "calls.jsonl"]);
    let done = dir.run(&[&run[..], &["--log", "log.jsonl", "--format", "json", "calls.jsonl"]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stderr.contains("candidate rules: 3 calls compared, 2 stricter, 0 looser"),
        "{}",
        done.stderr
    );
    let outcomes = |text: &str| text.matches(r#""outcome":"executed""#).count();
    assert_eq!((outcomes(&done.stdout), outcomes(&plain.stdout)), (2, 2));
    let report = dir.run(&["report", "log.jsonl"]);
    let section =
        report.stdout.split("Candidate rules").nth(1).unwrap_or_else(|| panic!("{}", report.stdout));
    assert!(section.contains("stricter/at-most-100"), "{section}");
    assert!(section.contains("pay 2") && section.contains("ann 1"), "{section}");
    let document = dir.run(&["report", "--format", "json", "log.jsonl"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let [difference] = &document["candidate"]["differences"].as_array().unwrap()[..] else {
        panic!("{document:#}")
    };
    assert_eq!(
        (&difference["policy"], &difference["calls"], &difference["examples"][0]["id"]),
        (&"at-most-100".into(), &2.into(), &"c2".into())
    );
    assert!(dir.run(&["report", "--format", "html", "log.jsonl"]).stdout.contains("at-most-100"));
}

#[test]
fn a_run_rejects_a_candidate_that_cannot_be_used() {
    let dir = TestDir::new(&[
        ("rules.yaml", ACTIVE),
        ("candidate.yaml", "policies: [ { id: x } ]"),
        ("calls.jsonl", CALLS),
    ]);
    let run = dir.run(&["run", "--policies", "rules.yaml", "--candidate", "candidate.yaml", "calls.jsonl"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("candidate.yaml"), "{}", run.stderr);
}

#[test]
fn a_gateway_starts_with_a_candidate_that_cannot_be_used_and_says_so() {
    let dir = TestDir::new(&[("rules.yaml", ACTIVE), ("candidate.yaml", "policies: [ { id: x } ]")]);
    let mut command = dir.command(&[
        "proxy",
        "--policies",
        "rules.yaml",
        "--candidate",
        "candidate.yaml",
        "--upstream",
        "http://127.0.0.1:9/mcp",
    ]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("candidate rules can't be loaded"), "{printed}");
}

#[test]
fn a_gateway_compares_each_call_with_a_valid_candidate() {
    let dir = TestDir::new(&[("rules.yaml", ACTIVE), ("candidate.yaml", CANDIDATE), ("server.py", SERVER)]);
    let arguments = [
        "proxy",
        "--policies",
        "rules.yaml",
        "--candidate",
        "candidate.yaml",
        "--log",
        "log.jsonl",
        "--",
        "python3",
        "server.py",
    ];
    let mut command = dir.command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |message: &str| {
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    ask(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    );
    for amount in [10, 200] {
        let answer = ask(&format!(
            r#"{{"jsonrpc":"2.0","id":{amount},"method":"tools/call","params":{{"name":"pay","arguments":{{"amount":{amount}}}}}}}"#
        ));
        // The candidate would deny the second one.
        assert!(answer.contains("paid"), "{answer}");
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{printed}");
    assert!(printed.contains("candidate rules: 2 calls compared, 1 stricter, 0 looser"), "{printed}");
    let log = std::fs::read_to_string(dir.0.path().join("log.jsonl")).unwrap();
    let differs: Vec<&str> = log.lines().filter(|line| line.contains("\"candidate_differs\"")).collect();
    assert!(differs.len() == 1 && differs[0].contains("at-most-100"), "{log}");
}

/// An MCP server with one tool.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "0"}},
        "tools/list": {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "paid"}]},
    }.get(message["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;
