//! What the user asked for, through the gateway: only an authentic channel of the host tells it.

use std::fs;
use std::sync::Arc;

use callgate::call::Task;
use callgate::json::{Value, json};
use callgate_mcp::{SessionNameSource, TaskSource};
use jiff::{SignedDuration, Timestamp};

use super::harness::{RunningGateway, Upstream, gateway};

const RULES: &str = "
policies:
  - id: named
    match: { tool: echo, where: { not: { path: $.input.to, mentioned_in: { path: $.task.text }, as: email } } }
    deny: { code: not_named }
";
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

fn call(meta: Value) -> String {
    let arguments = json!({ "to": "ana@example.com", "task": { "text": "Pay ana@example.com" } });
    let params =
        json!({ "name": "echo", "arguments": arguments, "_meta": meta, "task": "Pay ana@example.com" });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Whether the server received the call.
async fn is_run(served: &RunningGateway, upstream: &Upstream, headers: &[(&str, &str)], body: &str) -> bool {
    let before = upstream.requests_for("tools/call").len();
    let response = served.post(headers, body).await;
    assert_eq!(response.status, 200, "{}", response.body);
    upstream.requests_for("tools/call").len() > before
}

#[tokio::test]
async fn only_a_header_that_is_sealed_for_the_session_and_time_tells_the_task() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, RULES).await;
    let (keys, now) = (served.gateway_keys(), Timestamp::now());
    let session = served.initialize_session(&[]).await;
    let own = [VERSION, ("mcp-session-id", session.as_str())];
    let task = Task::from_text("Pay ana@example.com");
    let later = now + SignedDuration::from_hours(1);
    let sealed = task.seal(&session, later, &keys);

    assert!(
        is_run(&served, &upstream, &[own[0], own[1], ("callgate-task", &sealed)], &call(json!({}))).await
    );
    // The next request has no header, and so no task.
    assert!(!is_run(&served, &upstream, &own, &call(json!({}))).await);

    let forged = sealed.replacen('A', "B", 1);
    let unsealed = sealed.split('.').next().unwrap().to_owned();
    for (what, header) in [
        ("other session", task.seal("other", later, &keys)),
        ("expired", task.seal(&session, now - SignedDuration::from_secs(1), &keys)),
        ("another task", Task::from_text("Pay bob@example.com").seal(&session, later, &keys)),
        ("forged", forged),
        ("unsealed", unsealed),
        ("plain", "Pay ana@example.com".to_owned()),
        ("empty", " ".to_owned()),
    ] {
        let headers = [own[0], own[1], ("callgate-task", header.as_str())];
        assert!(!is_run(&served, &upstream, &headers, &call(json!({}))).await, "{what}");
    }
    let twice = [own[0], own[1], ("callgate-task", sealed.as_str()), ("Callgate-Task", sealed.as_str())];
    assert!(!is_run(&served, &upstream, &twice, &call(json!({}))).await, "two headers");
}

#[tokio::test]
async fn nothing_in_a_message_tells_the_task() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, RULES).await;
    let session = served.initialize_session(&[]).await;
    let own = [VERSION, ("mcp-session-id", session.as_str())];
    let sealed = Task::from_text("Pay ana@example.com").seal(
        &session,
        Timestamp::now() + SignedDuration::from_hours(1),
        &served.gateway_keys(),
    );
    for meta in [
        json!({ "task": "Pay ana@example.com", "callgate/task": "Pay ana@example.com" }),
        json!({ "callgate-task": sealed, "Callgate-Task": sealed }),
        json!({ "io.callgate/task": { "text": "Pay ana@example.com" } }),
    ] {
        assert!(!is_run(&served, &upstream, &own, &call(meta.clone())).await, "{meta}");
    }
}

#[tokio::test]
async fn header_names_the_conversation_where_requests_have_one() {
    let upstream = Upstream::with_defaults().await;
    let from = "header:x-chat".parse::<SessionNameSource>().unwrap();
    let served =
        RunningGateway::with(&upstream.url, RULES, |server| server.with_session_name_source(from)).await;
    let later = Timestamp::now() + SignedDuration::from_hours(1);
    let sealed = Task::from_text("Pay ana@example.com").seal("chat 7", later, &served.gateway_keys());
    let arguments = json!({ "to": "ana@example.com" });
    let count = || upstream.requests_for("tools/call").len();
    served.call(&[("x-chat", "chat 7"), ("callgate-task", &sealed)], "echo", arguments.clone()).await;
    assert_eq!(count(), 1);
    served.call(&[("x-chat", "chat 8"), ("callgate-task", &sealed)], "echo", arguments.clone()).await;
    served.call(&[("callgate-task", &sealed)], "echo", arguments).await;
    assert_eq!(count(), 1);
}

#[tokio::test]
async fn file_of_the_host_is_read_for_each_call() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("task.json");
    let upstream = Upstream::with_defaults().await;
    let log = Arc::default();
    let gateway = gateway(&upstream.url, RULES, &log).with_task(TaskSource::file(&file));
    let served = RunningGateway::from_gateway(gateway, log, |server| server).await;
    let session = served.initialize_session(&[]).await;
    let own = [VERSION, ("mcp-session-id", session.as_str())];
    for (content, runs) in [
        (None, false),
        (Some(r#"["Pay bob@example.com"]"#), false),
        (Some(r#"["Pay bob@example.com", "and ana@example.com"]"#), true),
        (Some(r#"["Pay ana@example.com""#), false),
        (Some(""), false),
        (Some(r#""Pay ana@example.com""#), true),
    ] {
        if let Some(content) = content {
            fs::write(&file, content).unwrap();
        }
        assert_eq!(is_run(&served, &upstream, &own, &call(json!({}))).await, runs, "{content:?}");
    }
}
