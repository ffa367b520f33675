//! The line protocol.

use std::collections::BTreeMap;

use callgate::json::{self, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::harness::decision_server;

#[tokio::test]
async fn answers_each_line_and_runs_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let server = decision_server("policies: [ { id: no-rm, match: rm, deny: {} } ]", folder.path());
    let (host, child) = tokio::io::duplex(1 << 16);
    let (child_input, child_output) = tokio::io::split(child);
    let serving = tokio::spawn(server.serve_lines(BufReader::new(child_input), child_output));
    let (replies, mut requests) = tokio::io::split(host);
    let mut replies = BufReader::new(replies).lines();
    let mut send = async |message: &Value| {
        requests.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        json::parse(&replies.next_line().await.unwrap().unwrap()).unwrap()
    };
    let decide = |id: u64, tool: &str| json!({ "id": id, "method": "POST", "path": "/v1/decide", "body": { "call": { "tool": tool } } });
    let denied = send(&decide(1, "rm")).await;
    assert_eq!((&denied["id"], &denied["body"]["decision"]["effect"]), (&json!(1), &json!("deny")));
    let begun = send(&json!({ "id": 2, "method": "POST", "path": "/v1/calls",
        "body": { "session": "s", "call": { "id": "c1", "tool": "ls" } } }))
    .await;
    let execution = begun["body"]["executions"][0]["id"].as_str().unwrap();
    let done = send(&json!({ "id": 3, "method": "POST", "path": format!("/v1/executions/{execution}"),
        "body": { "output": ["a"] } }))
    .await;
    assert_eq!(done["body"]["outcome"]["output"], json!(["a"]), "{done}");
    // The host is a host: approving is for people.
    let approvals = send(&json!({ "id": 4, "method": "GET", "path": "/v1/approvals" })).await;
    assert_eq!(approvals["status"], 403);
    for line in ["nonsense", "7", "{}", "{\"id\":1,\"method\":\"POST\"}"] {
        requests.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let reply = json::parse(&replies.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(reply["status"], 400, "{line}");
    }
    drop((requests, replies));
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_are_answered_as_they_are_ready() {
    let folder = tempfile::tempdir().unwrap();
    let server = decision_server("policies: []", folder.path());
    let lines: String = (0..50)
        .map(|id| format!("{}\n", json!({ "id": id, "method": "POST", "path": "/v1/decide", "body": { "call": { "tool": "x" } } })))
        .collect();
    let mut output = Vec::new();
    server.serve_lines(lines.as_bytes(), &mut output).await.unwrap();
    let replies: BTreeMap<i64, Value> = String::from_utf8(output)
        .unwrap()
        .lines()
        .map(|line| json::parse(line).unwrap())
        .map(|reply| (reply["id"].as_i64().unwrap(), reply["status"].clone()))
        .collect();
    assert_eq!(replies.len(), 50);
    assert!(replies.values().all(|status| *status == 200));
}
