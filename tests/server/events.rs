//! Server-sent events: what happens while a stream is open.

use std::time::Duration;

use callgate::json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{RunningServer, call, identities, token};

const RULES: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } } ]";

/// An open stream of events.
struct EventStream {
    socket: TcpStream,
    text: String,
}

impl EventStream {
    /// The stream of the caller with this token.
    async fn open(server: &RunningServer, token: &str) -> Self {
        let mut socket = TcpStream::connect(&server.address).await.unwrap();
        let request = format!(
            "GET /v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\r\n",
            server.address
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut stream = Self { socket, text: String::new() };
        stream.read_until(": connected").await;
        stream
    }

    /// Reads until the stream has more of `wanted`.
    async fn read_until(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            let mut bytes = [0; 4096];
            let read = tokio::time::timeout(Duration::from_secs(60), self.socket.read(&mut bytes)).await;
            let count = read.unwrap_or_else(|_| panic!("no {wanted} in {}", self.text)).unwrap();
            assert!(count > 0, "the stream ended: {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        self.text.clear();
    }
}

#[tokio::test]
async fn a_stream_reports_requests_and_answers() {
    let server = RunningServer::new(RULES).await;
    let mut stream = EventStream::open(&server, &server.token).await;
    server.post("/v1/calls", &call("c1", "pay", json!({}))).await;
    stream.read_until("event: approval_requested").await;
    let pending = server.pending().await;
    server.answer(&pending[0], "deny").await;
    stream.read_until("event: answer_recorded").await;
}

#[tokio::test]
async fn a_stream_reports_no_requests_of_another_tenant() {
    let names = [("ann", "access: [approver], tenant: one"), ("eve", "access: [approver], tenant: two")];
    let server = RunningServer::with_identities(RULES, &identities(&names)).await;
    let other = server.beside(RULES).await;
    let mut streams =
        [EventStream::open(&server, &token("ann")).await, EventStream::open(&server, &token("eve")).await];
    let [own, others] = &mut streams;
    let (request, mut requested) = (json!({ "tool": "pay", "input": {} }), 0);
    loop {
        requested += 1;
        let body = json!({ "call": request, "context": { "tenant": "one" } });
        assert_eq!(other.post("/v1/calls", &body).await.status, 200);
        let changed = own.read_until("event: approvals_changed");
        if tokio::time::timeout(Duration::from_secs(5), changed).await.is_ok() {
            break;
        }
        assert!(requested < 10, "{}", own.text);
    }
    // All streams are told at the same time.
    let leaked = others.read_until("event: approvals_changed");
    assert!(tokio::time::timeout(Duration::from_secs(1), leaked).await.is_err());
    let body = json!({ "call": request, "context": { "tenant": "two" } });
    other.post("/v1/calls", &body).await;
    others.read_until("event: approvals_changed").await;
}

#[tokio::test]
async fn a_stream_reports_what_other_processes_request_and_answer() {
    let server = RunningServer::new(RULES).await;
    let other = server.beside(RULES).await;
    let mut stream = EventStream::open(&server, &server.token).await;
    // Requests from before the first comparison are no change.
    let mut requested = 0;
    loop {
        requested += 1;
        other.post("/v1/calls", &call(&format!("c{requested}"), "pay", json!({}))).await;
        let changed = stream.read_until("event: approvals_changed");
        if tokio::time::timeout(Duration::from_secs(5), changed).await.is_ok() {
            break;
        }
        assert!(requested < 10, "{}", stream.text);
    }
    let pending = server.pending().await;
    assert_eq!(pending.len(), requested);
    other.answer(&pending[0], "deny").await;
    stream.read_until("event: approvals_changed").await;
    assert_eq!(server.pending().await.len(), requested - 1);
}
