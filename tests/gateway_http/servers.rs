//! Upstream servers over HTTP: the requests that they receive, and the handling of their responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::json::{Value, json};
use callgate_mcp::{HttpSpec, Transport};

use super::harness::{
    Action, NO_RULES, RunningGateway, STATELESS_VERSION, Upstream, default_response, event, gateway_to,
    json_response, response, result, stateless_request, stream_start,
};

#[tokio::test]
async fn stateless_request_carries_its_method_and_name_in_headers() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let uri = "file:///späße.txt";
    let headers = [
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", "resources/read"),
        ("mcp-name", "=?base64?ZmlsZTovLy9zcMOkw59lLnR4dA==?="),
        ("authorization", "Bearer of-the-client"),
        ("cookie", "a=b"),
    ];
    served.post(&headers, &stateless_request(1, "resources/read", json!({ "uri": uri })).to_string()).await;
    let got = &upstream.requests_for("resources/read")[0];
    for (name, value) in [
        ("mcp-protocol-version", Some(STATELESS_VERSION)),
        ("mcp-method", Some("resources/read")),
        ("mcp-name", Some("=?base64?ZmlsZTovLy9zcMOkw59lLnR4dA==?=")),
        ("accept", Some("application/json, text/event-stream")),
        ("content-type", Some("application/json")),
        ("mcp-session-id", None),
        // Credentials for the gateway are not forwarded to the server.
        ("authorization", None),
        ("cookie", None),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn server_gets_its_configured_headers_instead_of_the_clients() {
    let upstream = Upstream::with_defaults().await;
    let log = Arc::default();
    let headers = vec![("Authorization".to_owned(), "Bearer of-the-gateway".to_owned())];
    let spec = HttpSpec { url: upstream.url.clone(), headers, auth: None };
    assert!(!format!("{spec:?}").contains("of-the-gateway"));
    let served = RunningGateway::from_gateway(
        gateway_to(Transport::Http(spec), NO_RULES, &log),
        Arc::clone(&log),
        |server| server,
    )
    .await;
    let told = [("authorization", "Bearer of-the-client")];
    assert_eq!(served.call(&told, "echo", json!({})).await.status, 200);
    assert_eq!(upstream.requests()[0].header("authorization"), Some("Bearer of-the-gateway"));
}

#[tokio::test]
async fn requests_after_the_handshake_carry_the_servers_session_id() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    served.post(&headers, r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#).await;
    for (method, version, session) in [
        ("initialize", None, None),
        ("notifications/initialized", Some("2025-11-25"), Some("up-1")),
        ("tools/list", Some("2025-11-25"), Some("up-1")),
    ] {
        let got = &upstream.requests_for(method)[0];
        assert_eq!(
            (got.header("mcp-protocol-version"), got.header("mcp-session-id")),
            (version, session),
            "{method}"
        );
        assert_eq!(got.header("mcp-method"), None, "{method}");
    }
}

#[tokio::test]
async fn every_kind_of_upstream_response_results_in_one_response() {
    let cases: Vec<(&str, &str, &str)> = vec![
        ("500", "", "it responds with 500"),
        ("502", "<html>bad gateway</html>", "it responds with 502"),
        ("404", "not here", "it responds with 404"),
        ("401", "", "it responds with 401"),
        ("307", "", "it responds with 307"),
        ("400", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"own words"}}"#, "own words"),
        ("200", "nonsense", "is malformed"),
        ("200", r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "is malformed"),
        ("200", r#"{"jsonrpc":"2.0","id":"other","result":{}}"#, "another request"),
        ("200", r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, "is malformed"),
        ("200", "", "without a response"),
        ("202", "", "without a response"),
        ("stream", "", "without a response"),
        ("stream", "data: nonsense\n\n", "without a response"),
        ("stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,", "without a response"),
        ("broken", "", "it can't be reached"),
    ];
    for (status, body, expected) in cases {
        let (said, text) = (status.to_owned(), body.to_owned());
        let upstream = Upstream::new(move |got| {
            (got.method() == "x").then(|| match said.as_str() {
                "stream" => vec![stream_start(), Action::Write(text.clone())],
                "broken" => vec![],
                status => {
                    let headers = "content-type: application/json\r\nlocation: /elsewhere\r\n";
                    response(status.parse().unwrap(), headers, &text)
                }
            })
        })
        .await;
        let served = RunningGateway::new(&upstream.url, NO_RULES).await;
        let headers = [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "x")];
        let answer = served.post(&headers, &stateless_request(1, "x", json!({})).to_string()).await;
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{status} {body}: {}", answer.body);
        assert_eq!(answer.json()["id"], 1, "{status} {body}");
        // The request is not repeated: it may have taken effect.
        assert_eq!(upstream.requests_for("x").len(), 1, "{status} {body}");
        // The server still counts as available.
        assert_eq!(served.call(&[], "echo", json!({})).await.status, 200, "{status} {body}");
    }
}

#[tokio::test]
async fn unreachable_server_is_an_error_of_each_request() {
    let served = RunningGateway::new("http://127.0.0.1:9/mcp", NO_RULES).await;
    let headers = [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "x")];
    let answer = served.post(&headers, &stateless_request(1, "x", json!({})).to_string()).await;
    assert_eq!((answer.status, answer.code()), (200, json!(-32603)));
    assert!(answer.body.contains("it can't be reached"), "{}", answer.body);
}

#[tokio::test]
async fn broken_stream_is_resumed_at_its_last_event() {
    let upstream = Upstream::new(|got| {
        let progress = |progress: i64| {
            let params = json!({ "progressToken": 9, "progress": progress });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
        };
        match (got.verb.as_str(), got.method()) {
            ("POST", "tools/call") => {
                let first = format!("retry: 1\nid: e1\ndata: {}\n\n", progress(1));
                Some(vec![stream_start(), Action::Write(first)])
            }
            ("GET", _) if got.header("last-event-id") == Some("e1") => {
                let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } });
                Some(vec![stream_start(), event(&progress(2)), event(&answer)])
            }
            _ => None,
        }
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    let params = json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": 9 } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let events = served.post(&headers, &body).await.events();
    let told: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(told[..2], [&json!(1), &json!(2)], "{events:?}");
    assert_eq!(events[2]["result"], json!({ "content": [] }));
    assert_eq!(upstream.requests_for("tools/call").len(), 1);
}

#[tokio::test]
async fn lost_upstream_session_is_initialized_again_for_the_request() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sessions);
    let upstream = Upstream::new(move |got| match (got.method(), got.header("mcp-session-id")) {
        ("initialize", _) => {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let answer =
                result(got, json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).to_string();
            let headers = format!("content-type: application/json\r\nmcp-session-id: s{number}\r\n");
            Some(response(200, &headers, &answer))
        }
        // The server has lost its first session.
        ("tools/call", Some("s0")) => Some(response(404, "", "")),
        _ => None,
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let session = served.initialize_session(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    let params = json!({ "name": "echo", "arguments": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let answer = served.post(&headers, &body).await;
    assert!(answer.json()["result"]["content"].is_array(), "{}", answer.body);
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    let called: Vec<_> = upstream
        .requests_for("tools/call")
        .iter()
        .map(|got| got.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(called, [Some("s0".to_owned()), Some("s1".to_owned())]);
    assert_eq!(upstream.requests_for("notifications/initialized").len(), 2);
}

#[tokio::test]
async fn header_mismatch_lists_the_tools_again_and_repeats_the_call() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let upstream = Upstream::new(move |got| match got.method() {
        "tools/list" if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
            let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
            Some(json_response(&result(got, json!({ "tools": tools, "resultType": "complete" }))))
        }
        "tools/call" if got.header("mcp-param-region").is_none() => {
            let error = json!({ "code": -32020, "message": "mismatch" });
            let answer = json!({ "jsonrpc": "2.0", "id": got.body["id"], "error": error });
            Some(response(400, "content-type: application/json\r\n", &answer.to_string()))
        }
        _ => Some(default_response(got)),
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let answer = served.call(&[], "echo", json!({ "region": "eu" })).await;
    assert_eq!((answer.status, answer.code()), (200, json!(null)), "{}", answer.body);
    assert_eq!(upstream.requests_for("tools/call")[1].header("mcp-param-region"), Some("eu"));
}

#[test]
fn invalid_upstream_urls_and_headers_are_rejected() {
    for (url, header, why) in [
        ("nonsense", ("a", "b"), "`nonsense` is not a valid URL"),
        ("ftp://example.com", ("a", "b"), "is not an HTTP URL"),
        ("https://example.com", ("a b", "c"), "`a b` is not a valid header name"),
        ("https://example.com", ("a", "secret\n"), "the value of the header `a` is not a valid header value"),
    ] {
        let headers = vec![(header.0.to_owned(), header.1.to_owned())];
        let said = HttpSpec { url: url.to_owned(), headers, auth: None }.validate().unwrap_err();
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
}
