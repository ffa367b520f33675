//! Idle and slow connections (slowloris). Time is paused, and advances only when every task is idle.

use std::time::Duration;

use callgate::json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::{
    NO_RULES, RunningGateway, STATELESS_VERSION, Upstream, event, stateless_request, stream_start,
};

const HOUR: Duration = Duration::from_secs(3600);
/// How long the gateway waits for headers.
const HEADERS: Duration = Duration::from_secs(30);

async fn connect_and_send(served: &RunningGateway, text: &str) -> TcpStream {
    let mut socket = TcpStream::connect(&served.address).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    socket
}

#[tokio::test(start_paused = true)]
async fn connections_without_a_complete_request_are_closed() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let host = format!("host: {}\r\n", served.address);
    let an_answer = served.request("OPTIONS", &[("connection", "keep-alive")], "");
    for text in ["", "POST /mcp HT", &format!("POST /mcp HTTP/1.1\r\n{host}content-type: appl"), &an_answer] {
        let mut socket = connect_and_send(&served, text).await;
        let mut said = Vec::new();
        let read = timeout(HOUR, socket.read_to_end(&mut said)).await;
        assert!(read.is_ok(), "the connection stays open after {text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connections_of_one_address_are_limited_until_they_are_closed() {
    let upstream = Upstream::with_defaults().await;
    // One address gets a third of half of these until it sends a request.
    let served =
        RunningGateway::with(&upstream.url, NO_RULES, |server| server.with_max_connections(48)).await;
    let answer = async || {
        let request = served.request("OPTIONS", &[], "");
        let mut socket = connect_and_send(&served, &request).await;
        let mut said = String::new();
        // A connection that is closed at once may be reset.
        let _ = timeout(HOUR, socket.read_to_string(&mut said)).await.expect("the connection stays open");
        said
    };
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(connect_and_send(&served, "POST").await);
    }
    assert!(answer().await.starts_with("HTTP/1.1 204"), "one more connection is accepted");
    tokio::task::yield_now().await;
    held.push(connect_and_send(&served, "POST").await);
    assert_eq!(answer().await, "", "none is accepted before the others are closed");
    tokio::time::sleep(2 * HEADERS).await;
    assert!(answer().await.starts_with("HTTP/1.1 204"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn many_connections_of_one_address_do_not_block_other_addresses() {
    let upstream = Upstream::with_defaults().await;
    let served =
        RunningGateway::with(&upstream.url, NO_RULES, |server| server.with_max_connections(48)).await;
    let from = async |address: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(address.parse().unwrap()).unwrap();
        socket.connect(served.address.parse().unwrap()).await.unwrap()
    };
    let mut held = Vec::new();
    for _ in 0..200 {
        held.push(from("127.0.1.1:0").await);
    }
    for address in ["127.0.2.1:0", "127.0.1.2:0"] {
        let mut socket = from(address).await;
        socket.write_all(served.request("OPTIONS", &[], "").as_bytes()).await.unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 204"), "{address}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_blocks_others_only_briefly() {
    let flood = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(1 << 16) } });
    let upstream = Upstream::new(move |got| {
        let is_flood = got.body["params"]["name"] == "flood";
        is_flood.then(|| std::iter::once(stream_start()).chain((0..1000).map(|_| event(&flood))).collect())
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let call = stateless_request(1, "tools/call", json!({ "name": "flood", "arguments": {} }));
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "flood")];
    let unread = connect_and_send(&served, &served.request("POST", &headers, &call.to_string())).await;
    // Time advances only when nothing more is forwarded.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = timeout(HOUR, served.call(&[], "echo", json!({}))).await;
    assert_eq!(answer.expect("no response").status, 200);
    drop(unread);
}
