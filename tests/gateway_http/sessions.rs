//! Sessions: of clients that shake hands, and of callers.

use std::sync::Arc;

use callgate::json::json;
use callgate::mcp::SessionFrom;
use tokio::sync::Notify;

use super::scene::{Act, NO_RULES, Served, Upstream, begins_stream, event, result, says_json};

const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

fn call(tool: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
        .to_string()
}

#[tokio::test]
async fn a_session_begins_is_found_by_its_name_and_ends() {
    let upstream = Upstream::plain().await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    assert!(session.len() >= 32, "{session}");
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    assert_eq!(served.post(&headers, &call("echo")).await.status, 200);
    assert_eq!(served.post(&[VERSION], &call("echo")).await.status, 400);
    assert_eq!(served.post(&[VERSION, ("mcp-session-id", "x")], &call("echo")).await.status, 404);
    let odd = [("mcp-protocol-version", "1.0"), ("mcp-session-id", session.as_str())];
    assert_eq!(served.post(&odd, &call("echo")).await.status, 400);
    assert_eq!(served.ask("DELETE", &headers).await.status, 200);
    assert_eq!(served.ask("DELETE", &headers).await.status, 404);
    assert_eq!(served.post(&headers, &call("echo")).await.status, 404);
    // The server's own session ended with it.
    let ended: Vec<_> = upstream.got().into_iter().filter(|got| got.verb == "DELETE").collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].header("mcp-session-id"), Some("up-1"));
}

#[tokio::test]
async fn messages_of_no_request_come_in_the_sessions_stream_to_one_reader() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| {
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" });
        (got.verb == "GET").then(|| vec![begins_stream(), event(&changed), Act::Hold(Arc::clone(&held))])
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    let mut reading = served.send(&served.request("GET", &headers, "")).await;
    reading.until("notifications/resources/list_changed").await;
    assert_eq!(served.ask("GET", &headers).await.status, 409);
    assert_eq!(served.ask("GET", &[VERSION]).await.status, 400);
    assert_eq!(served.ask("GET", &[VERSION, ("mcp-session-id", "x")]).await.status, 404);
    let unwilling = [headers.as_slice(), &[("accept", "application/json")]].concat();
    assert_eq!(served.ask("GET", &unwilling).await.status, 406);
    // The stream ends with its session.
    assert_eq!(served.ask("DELETE", &headers).await.status, 200);
    assert_eq!(reading.answer().await.status, 200);
    release.notify_one();
}

#[tokio::test]
async fn a_question_of_the_server_is_answered_by_a_post() {
    let asked = Arc::new(Notify::new());
    let answered = Arc::clone(&asked);
    let upstream = Upstream::new(move |got| match got.method() {
        "tools/call" => {
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
            let answer = result(got, json!({ "content": [] }));
            Some(vec![begins_stream(), event(&question), Act::Hold(Arc::clone(&answered)), event(&answer)])
        }
        "" if got.verb == "POST" => {
            answered.notify_one();
            Some(super::scene::says(202, "", ""))
        }
        _ => None,
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    let mut reading = served.send(&served.request("POST", &headers, &call("echo"))).await;
    reading.until("roots/list").await;
    let answer = json!({ "jsonrpc": "2.0", "id": "q", "result": { "roots": [] } }).to_string();
    assert_eq!(served.post(&headers, &answer).await.status, 202);
    let events = reading.answer().await.events();
    assert_eq!(events[1]["id"], 1);
    let told = upstream.got().into_iter().find(|got| got.body["id"] == "q").unwrap();
    assert_eq!(told.body["result"], json!({ "roots": [] }));
    assert_eq!(told.header("mcp-session-id"), Some("up-1"));
}

const LABELS: &str = "policies:\n\
    - { id: tainted, match: read, label: { add: [secret] } }\n\
    - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }";

#[tokio::test]
async fn requests_belong_to_the_session_that_they_name() {
    let upstream = Upstream::plain().await;
    let from: SessionFrom = "header:X-Conversation".parse().unwrap();
    let served = Served::with(&upstream.url, LABELS, |door| door.with_session_from(from)).await;
    let (one, other) = ([("x-conversation", "one")], [("x-conversation", "other")]);
    assert_eq!(served.call(&one, "read", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&one, "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!(null));
    let long = "x".repeat(300);
    assert_eq!(served.call(&[("x-conversation", &long)], "send", json!({})).await.status, 400);
}

#[tokio::test]
async fn without_a_name_a_caller_has_one_session() {
    let upstream = Upstream::plain().await;
    let served = Served::new(&upstream.url, LABELS).await;
    served.call(&[], "read", json!({})).await;
    assert_eq!(served.call(&[], "send", json!({})).await.code(), json!("denied"));
    assert_eq!(
        "cookie:x".parse::<SessionFrom>().unwrap_err(),
        "`cookie:x` is no place of a session: write `header:NAME` or `meta:KEY`"
    );
}

#[tokio::test]
async fn what_was_seen_outlasts_the_connection() {
    let upstream = Upstream::plain().await;
    let from: SessionFrom = "header:x-conversation".parse().unwrap();
    let door = |door: callgate::mcp::HttpDoor| door.with_session_from(from).with_most_clients(1);
    let served = Served::with(&upstream.url, LABELS, door).await;
    let (one, other) = ([("x-conversation", "one")], [("x-conversation", "other")]);
    served.call(&one, "read", json!({})).await;
    // There is room for one, so the first is disconnected.
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&one, "send", json!({})).await.code(), json!("denied"));
}

#[tokio::test]
async fn of_too_many_clients_the_idlest_leaves_and_none_that_is_at_work() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| {
        (got.method() == "tools/call").then(|| {
            let mut acts = says_json(&result(got, json!({ "content": [] })));
            acts.insert(0, Act::Hold(Arc::clone(&held)));
            acts
        })
    })
    .await;
    let served = Served::with(&upstream.url, NO_RULES, |door| door.with_most_clients(1)).await;
    let first = served.begin(&[]).await;
    let second = served.begin(&[]).await;
    let of_first = [VERSION, ("mcp-session-id", first.as_str())];
    assert_eq!(served.post(&of_first, &call("echo")).await.status, 404);
    let of_second = [VERSION, ("mcp-session-id", second.as_str())];
    let working = served.send(&served.request("POST", &of_second, &call("echo"))).await;
    while upstream.asked("tools/call").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.post(&[], &super::scene::initialize().to_string()).await.status, 503);
    release.notify_one();
    assert_eq!(working.answer().await.status, 200);
}
