//! Sessions of clients that initialize one, and of callers in the stateless protocol.

use std::sync::Arc;

use callgate::json::json;
use callgate_mcp::SessionNameSource;
use tokio::sync::Notify;

use super::harness::{
    Action, NO_RULES, RunningGateway, Upstream, event, json_response, result, stream_start,
};

const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

fn call(tool: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
        .to_string()
}

#[tokio::test]
async fn session_is_initialized_found_by_id_and_deleted() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    assert!(session.len() >= 32, "{session}");
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    assert_eq!(served.post(&headers, &call("echo")).await.status, 200);
    assert_eq!(served.post(&[VERSION], &call("echo")).await.status, 400);
    assert_eq!(served.post(&[VERSION, ("mcp-session-id", "x")], &call("echo")).await.status, 404);
    let odd = [("mcp-protocol-version", "1.0"), ("mcp-session-id", session.as_str())];
    assert_eq!(served.post(&odd, &call("echo")).await.status, 400);
    assert_eq!(served.send_without_body("DELETE", &headers).await.status, 200);
    assert_eq!(served.send_without_body("DELETE", &headers).await.status, 404);
    assert_eq!(served.post(&headers, &call("echo")).await.status, 404);
    // The server's session ends with it.
    let ended: Vec<_> = upstream.requests().into_iter().filter(|got| got.verb == "DELETE").collect();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].header("mcp-session-id"), Some("up-1"));
}

#[tokio::test]
async fn messages_without_a_request_arrive_in_the_sessions_only_stream() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| {
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" });
        (got.verb == "GET").then(|| vec![stream_start(), event(&changed), Action::Hold(Arc::clone(&held))])
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    let mut reading = served.send(&served.request("GET", &headers, "")).await;
    reading.until("notifications/resources/list_changed").await;
    assert_eq!(served.send_without_body("GET", &headers).await.status, 409);
    assert_eq!(served.send_without_body("GET", &[VERSION]).await.status, 400);
    assert_eq!(served.send_without_body("GET", &[VERSION, ("mcp-session-id", "x")]).await.status, 404);
    let unwilling = [headers.as_slice(), &[("accept", "application/json")]].concat();
    assert_eq!(served.send_without_body("GET", &unwilling).await.status, 406);
    // The stream ends with its session.
    assert_eq!(served.send_without_body("DELETE", &headers).await.status, 200);
    assert_eq!(reading.response().await.status, 200);
    release.notify_one();
}

#[tokio::test]
async fn request_of_the_server_is_answered_by_a_post() {
    let asked = Arc::new(Notify::new());
    let answered = Arc::clone(&asked);
    let upstream = Upstream::new(move |got| match got.method() {
        "tools/call" => {
            let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" });
            let answer = result(got, json!({ "content": [] }));
            Some(vec![stream_start(), event(&question), Action::Hold(Arc::clone(&answered)), event(&answer)])
        }
        "" if got.verb == "POST" => {
            answered.notify_one();
            Some(super::harness::response(202, "", ""))
        }
        _ => None,
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [VERSION, ("mcp-session-id", session.as_str())];
    let mut reading = served.send(&served.request("POST", &headers, &call("echo"))).await;
    reading.until("roots/list").await;
    let answer = json!({ "jsonrpc": "2.0", "id": "q", "result": { "roots": [] } }).to_string();
    assert_eq!(served.post(&headers, &answer).await.status, 202);
    let events = reading.response().await.events();
    assert_eq!(events[1]["id"], 1);
    let told = upstream.requests().into_iter().find(|got| got.body["id"] == "q").unwrap();
    assert_eq!(told.body["result"], json!({ "roots": [] }));
    assert_eq!(told.header("mcp-session-id"), Some("up-1"));
}

const LABELS: &str = "policies:\n\
    - { id: tainted, match: read, label: { add: [secret] } }\n\
    - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }";

#[tokio::test]
async fn stateless_requests_belong_to_the_session_that_they_name() {
    let upstream = Upstream::with_defaults().await;
    let from: SessionNameSource = "header:X-Conversation".parse().unwrap();
    let served =
        RunningGateway::with(&upstream.url, LABELS, |server| server.with_session_name_source(from)).await;
    let (one, other) = ([("x-conversation", "one")], [("x-conversation", "other")]);
    assert_eq!(served.call(&one, "read", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&one, "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!(null));
    let long = "x".repeat(300);
    assert_eq!(served.call(&[("x-conversation", &long)], "send", json!({})).await.status, 400);
}

#[tokio::test]
async fn unnamed_requests_of_a_caller_share_one_session() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, LABELS).await;
    served.call(&[], "read", json!({})).await;
    assert_eq!(served.call(&[], "send", json!({})).await.code(), json!("denied"));
    assert_eq!(
        "cookie:x".parse::<SessionNameSource>().unwrap_err(),
        "`cookie:x` is not a valid location of a session name: write `header:NAME` or `meta:KEY`"
    );
}

#[tokio::test]
async fn labels_outlive_the_connection() {
    let upstream = Upstream::with_defaults().await;
    let from: SessionNameSource = "header:x-conversation".parse().unwrap();
    let server = |server: callgate_mcp::HttpServer| server.with_session_name_source(from).with_max_clients(1);
    let served = RunningGateway::with(&upstream.url, LABELS, server).await;
    let (one, other) = ([("x-conversation", "one")], [("x-conversation", "other")]);
    served.call(&one, "read", json!({})).await;
    // The limit is one client, so the first is disconnected.
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&one, "send", json!({})).await.code(), json!("denied"));
}

#[tokio::test]
async fn client_limit_evicts_the_idlest_client_but_no_busy_one() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| {
        (got.method() == "tools/call").then(|| {
            let mut acts = json_response(&result(got, json!({ "content": [] })));
            acts.insert(0, Action::Hold(Arc::clone(&held)));
            acts
        })
    })
    .await;
    let served = RunningGateway::with(&upstream.url, NO_RULES, |server| server.with_max_clients(1)).await;
    let first = served.initialize_session(&[]).await;
    let second = served.initialize_session(&[]).await;
    let of_first = [VERSION, ("mcp-session-id", first.as_str())];
    assert_eq!(served.post(&of_first, &call("echo")).await.status, 404);
    let of_second = [VERSION, ("mcp-session-id", second.as_str())];
    let working = served.send(&served.request("POST", &of_second, &call("echo"))).await;
    while upstream.requests_for("tools/call").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.post(&[], &super::harness::initialize().to_string()).await.status, 503);
    release.notify_one();
    assert_eq!(working.response().await.status, 200);
}
