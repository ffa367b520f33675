//! The gateway's own part in the protocol: versions, capabilities, sessions, and the form of responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::harness::{
    Action, NO_RULES, RunningGateway, Upstream, event, gateway, initialize, json_response, response, result,
    stateless_request, stream_start,
};

#[tokio::test]
async fn unsupported_version_error_lists_supported_and_requested_versions() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let ping = |meta: Value| {
        json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": { "_meta": meta } }).to_string()
    };
    let in_body = json!({ "io.modelcontextprotocol/protocolVersion": "1900-01-01" });
    for (header, body, requested) in [
        ("1.0", ping(json!({})), "1.0"),
        ("2020-01-01", ping(json!({})), "2020-01-01"),
        ("", ping(in_body.clone()), "1900-01-01"),
        ("1900-01-01", ping(in_body), "1900-01-01"),
    ] {
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", header)];
        let answer = served.post(&headers, &body).await;
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &answer.json()["id"]), (400, &json!(7)), "{answer:?}");
        assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!(requested)));
        // The stateless protocol has one version.
        let supported = match body.contains("protocolVersion") {
            true => json!(["2026-07-28"]),
            false => json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        };
        assert_eq!(error["data"]["supported"], supported, "{answer:?}");
    }
    assert!(upstream.requests_for("ping").is_empty(), "no such request reaches the server");
}

#[tokio::test]
async fn failed_handshake_creates_no_session() {
    let gone = "http://127.0.0.1:9/mcp".to_owned();
    let failing = Upstream::new(|got| match got.method() {
        "initialize" => Some(json_response(&json!({ "jsonrpc": "2.0", "id": got.body["id"],
            "error": { "code": -32602, "message": "no" } }))),
        _ => None,
    })
    .await;
    let broken =
        Upstream::new(|got| (got.method() == "initialize").then(|| response(500, "", "broken"))).await;
    let streaming = Upstream::new(|got| {
        let error =
            json!({ "jsonrpc": "2.0", "id": got.body["id"], "error": { "code": -32602, "message": "no" } });
        (got.method() == "initialize").then(|| vec![stream_start(), event(&error)])
    })
    .await;
    for url in [gone, failing.url, broken.url, streaming.url] {
        let served = RunningGateway::with(&url, NO_RULES, |server| server.with_max_clients(1)).await;
        for _ in 0..3 {
            let answer = served.post(&[], &initialize().to_string()).await;
            assert!(answer.body.contains("\"error\""), "{url}: {answer:?}");
            assert_eq!(answer.header("mcp-session-id"), None, "{url}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn response_is_streamed_only_if_the_server_streams_it() {
    for streams in [true, false] {
        let upstream = Upstream::new(move |got| {
            let answer = result(got, json!({ "content": [], "tools": [] }));
            let is_of_it = matches!(got.method(), "tools/call" | "tools/list");
            (streams && is_of_it).then(|| vec![stream_start(), event(&answer)])
        })
        .await;
        let served = RunningGateway::new(&upstream.url, NO_RULES).await;
        let session = served.initialize_session(&[]).await;
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        for method in ["tools/list", "tools/call"] {
            let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "name": "echo", "arguments": {} } });
            let answer = served.post(&headers, &asked.to_string()).await;
            let expected = if streams { "text/event-stream" } else { "application/json" };
            assert_eq!(answer.header("content-type"), Some(expected), "{method}: {answer:?}");
            let answer = if streams { answer.events().remove(0) } else { answer.json() };
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
}

#[tokio::test]
async fn list_changed_is_declared_if_the_gateway_sends_it() {
    let offers = |capabilities: Value| {
        Upstream::new(move |got| {
            let version = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
            let versions = json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete" });
            match got.method() {
                "initialize" => Some(json_response(&result(got, version))),
                "server/discover" => Some(json_response(&result(got, versions))),
                _ => None,
            }
        })
    };
    for (offered, by_handshake, discovered) in [
        (json!({ "tools": {} }), json!({ "tools": { "listChanged": true } }), json!({ "tools": {} })),
        (json!({ "prompts": {} }), json!({ "prompts": {} }), json!({ "prompts": {} })),
        (
            json!({ "tools": { "listChanged": false }, "resources": { "subscribe": true } }),
            json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } }),
            json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true } }),
        ),
    ] {
        let upstream = offers(offered.clone()).await;
        let served = RunningGateway::new(&upstream.url, NO_RULES).await;
        let greeted = served.post(&[], &initialize().to_string()).await.json();
        assert_eq!(greeted["result"]["capabilities"], by_handshake, "{offered}");
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
        let answer = served
            .post(&headers, &stateless_request(1, "server/discover", json!({})).to_string())
            .await
            .json();
        assert_eq!(answer["result"]["capabilities"], discovered, "{offered}: {answer}");
    }
}

/// Unanswered requests delay the shutdown by less than five seconds once the client has closed its input.
#[tokio::test]
async fn unanswered_requests_do_not_delay_shutdown() {
    let held = Arc::new(tokio::sync::Notify::new());
    let count = Arc::new(AtomicUsize::new(0));
    let (never, counted) = (Arc::clone(&held), Arc::clone(&count));
    let upstream = Upstream::new(move |got| {
        (got.method() == "tools/call").then(|| {
            counted.fetch_add(1, Ordering::SeqCst);
            vec![Action::Hold(Arc::clone(&never))]
        })
    })
    .await;
    let (client, theirs) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(theirs);
    let served =
        tokio::spawn(Arc::new(gateway(&upstream.url, NO_RULES, &Arc::default())).serve_stdio(from, to));
    let (heard, mut say) = tokio::io::split(client);
    let mut heard = BufReader::new(heard).lines();
    say.write_all(format!("{}\n", initialize()).as_bytes()).await.unwrap();
    heard.next_line().await.unwrap().unwrap();
    for id in 1..=3 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "echo", "arguments": { "n": id } } });
        say.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    while count.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    say.shutdown().await.unwrap();
    let begun = std::time::Instant::now();
    served.await.unwrap().unwrap();
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}
