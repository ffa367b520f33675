//! The HTTP endpoint: validation of requests, single responses and streams.

use std::sync::Arc;

use callgate::json::{Value, json};
use tokio::sync::Notify;

use super::harness::{
    Action, NO_RULES, RunningGateway, STATELESS_VERSION, Upstream, event, json_response, result,
    stateless_request, stream_start,
};

const DENY: &str = "policies: [{ id: no, match: send, deny: { message: not that } }]";

#[tokio::test]
async fn single_response_is_plain_json() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, DENY).await;
    let answer = served.call(&[], "echo", json!({ "x": 1 })).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.json()["id"], 1);
    let denied = served.call(&[], "send", json!({})).await;
    assert_eq!((denied.status, denied.code()), (200, json!("denied")));
    // Clients of this version reject results without a `resultType`.
    assert_eq!(denied.json()["result"]["resultType"], "complete");
    let called: Vec<Value> =
        upstream.requests_for("tools/call").iter().map(|got| got.body["params"]["name"].clone()).collect();
    assert_eq!(called, ["echo"]);
}

#[tokio::test]
async fn notifications_before_the_response_turn_it_into_a_stream() {
    let upstream = Upstream::new(|got| {
        (got.method() == "tools/call").then(|| {
            let token = &got.body["params"]["_meta"]["progressToken"];
            let progress = json!({ "progressToken": token, "progress": 1 });
            let progress =
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
            let log =
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x" } });
            vec![stream_start(), event(&progress), event(&log), event(&result(got, json!({ "content": [] })))]
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let params = json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": "mine" } });
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let answer = served.post(&headers, &stateless_request(7, "tools/call", params).to_string()).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let events = answer.events();
    assert_eq!(events.len(), 3, "{events:?}");
    assert_eq!(events[0]["params"]["progressToken"], "mine");
    assert_eq!(events[1]["method"], "notifications/message");
    assert_eq!((&events[2]["id"], &events[2]["result"]["content"]), (&json!(7), &json!([])));
}

#[tokio::test]
async fn subscribers_are_notified_of_changed_tools() {
    let upstream = Upstream::new(|got| {
        (got.method() == "subscriptions/listen").then(|| {
            let asked = &got.body["params"]["notifications"];
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": got.body["id"] });
            let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": meta, "notifications": asked } });
            vec![stream_start(), event(&acknowledged), Action::Hold(Arc::default())]
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let headers = [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "subscriptions/listen")];
    let listen = async |id: i64, what: &str| {
        let asked = stateless_request(id, "subscriptions/listen", json!({ "notifications": { what: true } }));
        let mut reading = served.send(&served.request("POST", &headers, &asked.to_string())).await;
        reading.until("acknowledged").await;
        reading
    };
    let mut tools = listen(3, "toolsListChanged").await;
    let mut prompts = listen(4, "promptsListChanged").await;
    served.gateway.notify_tools_changed().await;
    let told = r#""method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}"#;
    tools.until(told).await;
    let others = prompts.until("acknowledged").await;
    assert!(!others.contains("tools/list_changed"), "{others}");
}

#[tokio::test]
async fn clients_of_one_caller_may_use_the_same_ids() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let upstream = Upstream::new(move |got| {
        let is_first = got.body["params"]["arguments"]["which"] == "first";
        (got.method() == "tools/call").then(|| {
            let mut acts = json_response(&result(
                got,
                json!({ "content": [], "which": got.body["params"]["arguments"]["which"] }),
            ));
            if is_first {
                acts.insert(0, Action::Hold(Arc::clone(&held)));
            }
            acts
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let first = served.call(&[], "echo", json!({ "which": "first" }));
    let second = async {
        let answer = served.call(&[], "echo", json!({ "which": "second" })).await;
        release.notify_one();
        answer
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.json()["result"]["which"], "first");
    assert_eq!(second.json()["result"]["which"], "second");
}

#[tokio::test]
async fn rejects_missing_duplicate_and_mismatched_headers_and_members() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let good = stateless_request(1, "tools/call", json!({ "name": "echo", "arguments": {} })).to_string();
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo" } })
        .to_string();
    let mut incapable: Value = callgate::json::from_str(&good).unwrap();
    incapable["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let incapable = incapable.to_string();
    let good = good.as_str();
    let all =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let with = |name: &'static str, value: &'static str| {
        let mut headers: Vec<(&str, &str)> =
            all.iter().filter(|(other, _)| *other != name).copied().collect();
        headers.push((name, value));
        headers
    };
    let twice = |name: &'static str, value: &'static str| [all.to_vec(), vec![(name, value)]].concat();
    let mismatch = json!(-32020);
    let cases = [
        ("no version", with("mcp-protocol-version", ""), good, 400, mismatch.clone()),
        ("another version", with("mcp-protocol-version", "2026-08-01"), good, 400, mismatch.clone()),
        ("an older version", with("mcp-protocol-version", "2025-11-25"), good, 400, mismatch.clone()),
        ("two versions", twice("mcp-protocol-version", "2025-11-25"), good, 400, mismatch.clone()),
        ("no method", with("mcp-method", ""), good, 400, mismatch.clone()),
        ("another method", with("mcp-method", "tools/list"), good, 400, mismatch.clone()),
        ("a method in other letters", with("mcp-method", "Tools/Call"), good, 400, mismatch.clone()),
        ("no name", with("mcp-name", ""), good, 400, mismatch.clone()),
        ("another name", with("mcp-name", "read"), good, 400, mismatch.clone()),
        ("two names", twice("mcp-name", "read"), good, 400, mismatch.clone()),
        ("a name that is badly encoded", with("mcp-name", "=?base64?echo?="), good, 400, mismatch.clone()),
        ("an absent argument", twice("mcp-param-region", "eu"), good, 400, mismatch.clone()),
        ("no version in the body", all.to_vec(), &bare, 400, json!(-32602)),
        ("no capabilities", all.to_vec(), &incapable, 400, json!(-32602)),
        ("invalid JSON", all.to_vec(), "{", 400, json!(-32700)),
        (
            "a duplicate key",
            all.to_vec(),
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
            400,
            json!(-32700),
        ),
        ("a batch", all.to_vec(), "[]", 400, json!(-32600)),
        ("a response", all.to_vec(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, json!(-32600)),
        ("another content type", with("content-type", "text/plain"), good, 415, json!(-32600)),
        ("a client that accepts no streams", with("accept", "application/json"), good, 406, json!(-32600)),
    ];
    for (what, headers, body, status, code) in cases {
        let answer = served.post(&headers, body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{what}: {}", answer.body);
    }
    assert!(upstream.requests_for("tools/call").is_empty());
    // `*/*` covers both media types.
    assert_eq!(served.post(&with("accept", "*/*"), good).await.status, 200);
    // An encoded name is the same as a plain one.
    assert_eq!(served.post(&with("mcp-name", "=?base64?ZWNobw==?="), good).await.status, 200);
}

#[tokio::test]
async fn body_is_parsed_like_a_stdio_line() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let call =
        stateless_request(7, "tools/call", json!({ "name": "echo", "arguments": { "x": "cut here" } }));
    let half = call.to_string().replace("cut here", r"cut \ud83d");
    assert_eq!(served.post(&headers, &half).await.status, 200);
    assert_eq!(upstream.requests_for("tools/call")[0].body["params"]["arguments"]["x"], "cut \u{fffd}");
    let unreadable = call.to_string().replace("\"cut here\"", "NaN");
    let refused = served.post(&headers, &unreadable).await;
    assert_eq!((refused.status, refused.code(), &refused.json()["id"]), (400, json!(-32700), &json!(7)));
    assert_eq!(upstream.requests_for("tools/call").len(), 1);
}

#[tokio::test]
async fn argument_headers_are_compared_and_rewritten() {
    let rules = "policies: [{ id: move, match: echo, transform: { input: [{ path: $.input.region, set: München }] } }]";
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, rules).await;
    let lies = served.call(&[("mcp-param-region", "us")], "echo", json!({ "region": "eu" })).await;
    assert_eq!((lies.status, lies.code()), (400, json!(-32020)));
    let silent = served.call(&[], "echo", json!({ "region": "eu" })).await;
    assert_eq!((silent.status, silent.code()), (400, json!(-32020)));
    let says = served.call(&[("mcp-param-region", "eu")], "echo", json!({ "region": "eu" })).await;
    assert_eq!(says.status, 200, "{}", says.body);
    let called = upstream.requests_for("tools/call");
    assert_eq!(called.len(), 1);
    assert_eq!(called[0].body["params"]["arguments"]["region"], "München");
    assert_eq!(called[0].header("mcp-param-region"), Some("=?base64?TcO8bmNoZW4=?="));
}

#[tokio::test]
async fn unknown_method_is_404() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let headers = [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "x/y")];
    let answer = served.post(&headers, &stateless_request(1, "x/y", json!({})).to_string()).await;
    assert_eq!((answer.status, answer.code()), (404, json!(-32601)));
    assert_eq!(upstream.requests_for("x/y")[0].header("mcp-method"), Some("x/y"));
}

#[tokio::test]
async fn rejects_other_verbs_and_paths() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let headers = [("mcp-protocol-version", STATELESS_VERSION)];
    for verb in ["GET", "DELETE", "PUT"] {
        let answer = served.send_without_body(verb, &headers).await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{verb}");
    }
    let elsewhere = served.request("POST", &[], "{}").replace("/mcp", "/other");
    assert_eq!(served.send(&elsewhere).await.response().await.status, 404);
}

#[tokio::test]
async fn rejects_foreign_origins_and_hosts() {
    let upstream = Upstream::with_defaults().await;
    let served = RunningGateway::with(&upstream.url, NO_RULES, |server| {
        server.with_allowed_origin("https://app.test")
    })
    .await;
    for (headers, status) in [
        (vec![("origin", "https://evil.test")], 403),
        (vec![("host", "evil.test")], 403),
        (vec![("origin", "null")], 403),
        (vec![("origin", "https://app.test"), ("origin", "https://evil.test")], 403),
    ] {
        assert_eq!(served.call(&headers, "echo", json!({})).await.status, status, "{headers:?}");
    }
    assert!(upstream.requests().is_empty());
    let allowed = served.call(&[("origin", "https://app.test")], "echo", json!({})).await;
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.test"));
    let preflight = [("origin", "https://app.test"), ("access-control-request-headers", "mcp-method")];
    let preflight = served.send_without_body("OPTIONS", &preflight).await;
    assert_eq!(
        (preflight.status, preflight.header("access-control-allow-headers")),
        (204, Some("mcp-method"))
    );
}

#[tokio::test]
async fn rejects_too_long_messages() {
    let upstream = Upstream::with_defaults().await;
    let log = Arc::default();
    let gateway = super::harness::gateway(&upstream.url, NO_RULES, &log).with_max_message_size(2000);
    let served = RunningGateway::from_gateway(gateway, log, |server| server).await;
    assert_eq!(served.call(&[], "echo", json!({ "x": "a".repeat(100) })).await.status, 200);
    assert_eq!(served.call(&[], "echo", json!({ "x": "a".repeat(2000) })).await.status, 413);
}

#[tokio::test]
async fn disconnecting_client_cancels_its_request() {
    let (gone, began) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (left, begun) = (Arc::clone(&gone), Arc::clone(&began));
    let upstream = Upstream::new(move |got| {
        (got.method() == "tools/call").then(|| {
            begun.notify_one();
            vec![stream_start(), Action::UntilDisconnected(Arc::clone(&left))]
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    let body = stateless_request(1, "tools/call", json!({ "name": "echo", "arguments": {} })).to_string();
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let reading = served.send(&served.request("POST", &headers, &body)).await;
    began.notified().await;
    drop(reading);
    tokio::time::timeout(super::harness::TIMEOUT, gone.notified())
        .await
        .expect("the server got no cancellation");
}
