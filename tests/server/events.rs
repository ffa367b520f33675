//! Server-sent events: what happens while a stream is open.

use std::time::Duration;

use callgate::json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{RunningServer, call};

const RULES: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } } ]";

#[tokio::test]
async fn a_stream_reports_requests_and_answers() {
    let server = RunningServer::new(RULES).await;
    let mut socket = TcpStream::connect(&server.address).await.unwrap();
    let request = format!(
        "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut read_until = async |wanted: &str| {
        while !text.contains(wanted) {
            let mut bytes = [0; 4096];
            let read = tokio::time::timeout(Duration::from_secs(60), socket.read(&mut bytes)).await;
            let count = read.unwrap_or_else(|_| panic!("no {wanted} in {text}")).unwrap();
            assert!(count > 0, "the stream ended: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    read_until(": connected").await;
    server.post("/v1/calls", &call("c1", "pay", json!({}))).await;
    read_until("event: approval_requested").await;
    let pending = server.pending().await;
    server.answer(&pending[0], "deny").await;
    read_until("event: answer_recorded").await;
}
