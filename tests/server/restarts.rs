//! Restarts between any two steps: nothing is lost, nothing runs twice.

use callgate::json::json;

use super::harness::{RunningServer, call};

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: twice, match: ping, rate_limit: { limit: 2, per: 1h } }
";

async fn restarted(server: RunningServer, kills: bool) -> RunningServer {
    let folder = if kills { server.kill().await } else { server.stop().await };
    RunningServer::start(RULES, folder, |server| server).await
}

#[tokio::test]
async fn a_pending_approval_survives_restarts() {
    let pay = call("c1", "pay", json!({ "amount": 5 }));
    for kills in [false, true] {
        let server = RunningServer::new(RULES).await;
        server.post("/v1/calls", &pay).await;
        let server = restarted(server, kills).await;
        let pending = server.pending().await;
        assert_eq!(pending.len(), 1);
        server.answer(&pending[0], "approve").await;
        let server = restarted(server, kills).await;
        let begun = server.post("/v1/calls", &pay).await;
        let done = server.report(&begun, json!({ "output": "paid" })).await;
        assert_eq!(done.body["outcome"]["outcome"], "executed");
        let server = restarted(server, kills).await;
        let again = server.post("/v1/calls", &pay).await;
        assert_eq!(
            (&again.body["status"], &again.body["outcome"]["replayed"]),
            (&json!("completed"), &json!(true))
        );
    }
}

#[tokio::test]
async fn a_call_whose_report_was_lost_does_not_run_again() {
    let server = RunningServer::new(RULES).await;
    let ping = call("c1", "ping", json!({}));
    let begun = server.post("/v1/calls", &ping).await;
    let server = restarted(server, true).await;
    let late = server.report(&begun, json!({ "output": "pong" })).await;
    assert_eq!(late.status, 404);
    assert!(late.body["detail"].as_str().unwrap().contains("does not run twice"), "{late:?}");
    let again = server.post("/v1/calls", &ping).await;
    assert_eq!(again.body["status"], "completed", "{again:?}");
    assert_eq!(again.body["outcome"]["outcome"], "indeterminate");
}

#[tokio::test]
async fn a_shutdown_waits_for_reports_and_refuses_new_calls() {
    let server = RunningServer::new(RULES).await;
    let begun = server.post("/v1/calls", &call("c1", "ping", json!({}))).await;
    let execution = begun.body["executions"][0]["id"].as_str().unwrap().to_owned();
    // The connection is opened before the shutdown, as hosts keep theirs open.
    let address = server.address.clone();
    let stopping = tokio::spawn(server.stop());
    let mut refused = None;
    for _ in 0..200 {
        refused = send(&address, "/v1/calls", &call("c2", "ping", json!({}))).await;
        if refused.as_ref().is_some_and(|text| text.contains("shutting_down")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(refused.unwrap().contains("503"));
    let done =
        send(&address, &format!("/v1/executions/{execution}"), &json!({ "output": "pong" })).await.unwrap();
    assert!(done.contains("\"executed\""), "{done}");
    stopping.await.unwrap();
}

async fn send(address: &str, path: &str, body: &callgate::json::Value) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(address).await.ok()?;
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    socket.read_to_string(&mut text).await.ok()?;
    Some(text)
}
