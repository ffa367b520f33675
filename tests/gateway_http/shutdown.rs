//! Shutdown: with requests in flight, with open streams, and as a process.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use callgate::json::json;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::harness::{
    Action, NO_RULES, RunningGateway, STATELESS_VERSION, TIMEOUT, Upstream, initialize, json_response,
    result, stateless_request, stream_start,
};

#[tokio::test]
async fn requests_in_flight_are_answered_and_new_ones_are_refused() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| match got.method() {
        "tools/call" => {
            let mut acts = json_response(&result(got, json!({ "content": [] })));
            acts.insert(0, Action::Hold(Arc::clone(&held)));
            Some(acts)
        }
        _ if got.verb == "GET" => Some(vec![stream_start(), Action::UntilDisconnected(Arc::default())]),
        _ => None,
    })
    .await;
    let mut served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    let mut listening = served.send(&served.request("GET", &headers, "")).await;
    listening.until("\r\n\r\n").await;
    let body = stateless_request(1, "tools/call", json!({ "name": "echo", "arguments": {} })).to_string();
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let working = served.send(&served.request("POST", &headers, &body)).await;
    while upstream.requests_for("tools/call").is_empty() {
        tokio::task::yield_now().await;
    }
    served.end.take().unwrap().send(()).unwrap();
    // Open streams are closed.
    assert_eq!(listening.response().await.status, 200);
    while TcpStream::connect(&served.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    release.notify_one();
    let answer = working.response().await;
    assert_eq!((answer.status, &answer.json()["result"]["content"]), (200, &json!([])));
    assert_eq!(tokio::time::timeout(TIMEOUT, served.ended).await.unwrap().unwrap(), Ok(()));
    // The session at the server ends, too.
    assert_eq!(upstream.requests().iter().filter(|got| got.verb == "DELETE").count(), 1);
}

#[tokio::test]
async fn sigterm_ends_the_session_at_the_server() {
    let upstream = Upstream::with_defaults().await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .args(["proxy", "--upstream", &upstream.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", initialize()).unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    while upstream.requests_for("notifications/initialized").is_empty() {
        tokio::task::yield_now().await;
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = tokio::time::timeout(TIMEOUT, ended).await.expect("the gateway does not end").unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(r#""protocolVersion":"2025-11-25""#), "{said}");
    assert!(upstream.requests().iter().any(|got| got.verb == "DELETE"));
}

#[test]
fn public_listener_without_authentication_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .args(["proxy", "--listen", "0.0.0.0:0", "--upstream", "http://127.0.0.1:9/mcp"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("can be reached from other machines"), "{said}");
}
