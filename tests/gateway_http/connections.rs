//! Connections that keep places and say nothing. Time is paused, and goes on only when nothing else does.

use std::time::Duration;

use callgate::json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::scene::{MODERN, NO_RULES, Served, Upstream, begins_stream, event, modern};

const HOUR: Duration = Duration::from_secs(3600);
/// How long the gateway waits for headers.
const HEADERS: Duration = Duration::from_secs(30);

async fn says(served: &Served, text: &str) -> TcpStream {
    let mut socket = TcpStream::connect(&served.address).await.unwrap();
    socket.write_all(text.as_bytes()).await.unwrap();
    socket
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_say_what_it_wants_is_hung_up_on() {
    let upstream = Upstream::plain().await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let host = format!("host: {}\r\n", served.address);
    let an_answer = served.request("OPTIONS", &[("connection", "keep-alive")], "");
    for text in ["", "POST /mcp HT", &format!("POST /mcp HTTP/1.1\r\n{host}content-type: appl"), &an_answer] {
        let mut socket = says(&served, text).await;
        let mut said = Vec::new();
        let read = timeout(HOUR, socket.read_to_end(&mut said)).await;
        assert!(read.is_ok(), "{text:?} is kept for ever");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_only_connects_is_refused_until_it_is_hung_up_on() {
    let upstream = Upstream::plain().await;
    // A third of half of these for one address, as long as it sends no request.
    let served = Served::with(&upstream.url, NO_RULES, |door| door.with_most_connections(48)).await;
    let answer = async || {
        let request = served.request("OPTIONS", &[], "");
        let mut socket = says(&served, &request).await;
        let mut said = String::new();
        // One that is closed at once may be reset.
        let _ = timeout(HOUR, socket.read_to_string(&mut said)).await.expect("an end");
        said
    };
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(says(&served, "POST").await);
    }
    assert!(answer().await.starts_with("HTTP/1.1 204"), "there is room for one more");
    tokio::task::yield_now().await;
    held.push(says(&served, "POST").await);
    assert_eq!(answer().await, "", "there is none before the others are hung up on");
    tokio::time::sleep(2 * HEADERS).await;
    assert!(answer().await.starts_with("HTTP/1.1 204"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_that_connects_without_end_keeps_no_other_one_out() {
    let upstream = Upstream::plain().await;
    let served = Served::with(&upstream.url, NO_RULES, |door| door.with_most_connections(48)).await;
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
async fn whoever_does_not_read_holds_up_other_clients_only_for_a_while() {
    let flood = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(1 << 16) } });
    let upstream = Upstream::new(move |got| {
        let is_flood = got.body["params"]["name"] == "flood";
        is_flood.then(|| std::iter::once(begins_stream()).chain((0..1000).map(|_| event(&flood))).collect())
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let call = modern(1, "tools/call", json!({ "name": "flood", "arguments": {} }));
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "flood")];
    let unread = says(&served, &served.request("POST", &headers, &call.to_string())).await;
    // Time goes on only when nothing more is passed on.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = timeout(HOUR, served.call(&[], "echo", json!({}))).await;
    assert_eq!(answer.expect("an answer").status, 200);
    drop(unread);
}
