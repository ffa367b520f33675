//! Servers over HTTP: what they are sent, and what comes of what they answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::json::{Value, json};
use callgate::mcp::{HttpSpec, Reach};

use super::scene::{
    Act, MODERN, NO_RULES, Served, Upstream, begins_stream, event, gateway_to, modern, plainly, result, says,
    says_json,
};

#[tokio::test]
async fn a_request_that_stands_for_itself_says_in_headers_what_it_is() {
    let upstream = Upstream::plain().await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let uri = "file:///späße.txt";
    let headers = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "resources/read"),
        ("mcp-name", "=?base64?ZmlsZTovLy9zcMOkw59lLnR4dA==?="),
        ("authorization", "Bearer of-the-client"),
        ("cookie", "a=b"),
    ];
    served.post(&headers, &modern(1, "resources/read", json!({ "uri": uri })).to_string()).await;
    let got = &upstream.asked("resources/read")[0];
    for (name, value) in [
        ("mcp-protocol-version", Some(MODERN)),
        ("mcp-method", Some("resources/read")),
        ("mcp-name", Some("=?base64?ZmlsZTovLy9zcMOkw59lLnR4dA==?=")),
        ("accept", Some("application/json, text/event-stream")),
        ("content-type", Some("application/json")),
        ("mcp-session-id", None),
        // What is meant for the gateway is not for the server.
        ("authorization", None),
        ("cookie", None),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn a_server_gets_the_headers_that_it_is_to_get() {
    let upstream = Upstream::plain().await;
    let log = Arc::default();
    let headers = vec![("Authorization".to_owned(), "Bearer of-the-gateway".to_owned())];
    let spec = HttpSpec { url: upstream.url.clone(), headers };
    assert!(!format!("{spec:?}").contains("of-the-gateway"));
    let served =
        Served::of(gateway_to(Reach::Http(spec), NO_RULES, &log), Arc::clone(&log), |door| door).await;
    let told = [("authorization", "Bearer of-the-client")];
    assert_eq!(served.call(&told, "echo", json!({})).await.status, 200);
    assert_eq!(upstream.got()[0].header("authorization"), Some("Bearer of-the-gateway"));
}

#[tokio::test]
async fn a_session_of_a_server_is_named_once_it_has_begun() {
    let upstream = Upstream::plain().await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    served.post(&headers, r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#).await;
    for (method, version, session) in [
        ("initialize", None, None),
        ("notifications/initialized", Some("2025-11-25"), Some("up-1")),
        ("tools/list", Some("2025-11-25"), Some("up-1")),
    ] {
        let got = &upstream.asked(method)[0];
        assert_eq!(
            (got.header("mcp-protocol-version"), got.header("mcp-session-id")),
            (version, session),
            "{method}"
        );
        assert_eq!(got.header("mcp-method"), None, "{method}");
    }
}

#[tokio::test]
async fn whatever_a_server_answers_is_one_answer() {
    let cases: Vec<(&str, &str, &str)> = vec![
        ("500", "", "it answers 500"),
        ("502", "<html>bad gateway</html>", "it answers 502"),
        ("404", "not here", "it answers 404"),
        ("401", "", "it answers 401"),
        ("307", "", "it answers 307"),
        ("400", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"own words"}}"#, "own words"),
        ("200", "nonsense", "no message"),
        ("200", r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "no message"),
        ("200", r#"{"jsonrpc":"2.0","id":"other","result":{}}"#, "another request"),
        ("200", r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, "no message"),
        ("200", "", "without answering"),
        ("202", "", "without answering"),
        ("stream", "", "without answering"),
        ("stream", "data: nonsense\n\n", "without answering"),
        ("stream", "data: {\"jsonrpc\":\"2.0\",\"id\":1,", "without answering"),
        ("broken", "", "it can't be reached"),
    ];
    for (status, body, expected) in cases {
        let (said, text) = (status.to_owned(), body.to_owned());
        let upstream = Upstream::new(move |got| {
            (got.method() == "x").then(|| match said.as_str() {
                "stream" => vec![begins_stream(), Act::Write(text.clone())],
                "broken" => vec![],
                status => {
                    let headers = "content-type: application/json\r\nlocation: /elsewhere\r\n";
                    says(status.parse().unwrap(), headers, &text)
                }
            })
        })
        .await;
        let served = Served::new(&upstream.url, NO_RULES).await;
        let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "x")];
        let answer = served.post(&headers, &modern(1, "x", json!({})).to_string()).await;
        let error = &answer.json()["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{status} {body}: {}", answer.body);
        assert_eq!(answer.json()["id"], 1, "{status} {body}");
        // Nothing is asked a second time: it may have had its effect.
        assert_eq!(upstream.asked("x").len(), 1, "{status} {body}");
        // The server is not taken for gone.
        assert_eq!(served.call(&[], "echo", json!({})).await.status, 200, "{status} {body}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_of_each_request() {
    let served = Served::new("http://127.0.0.1:9/mcp", NO_RULES).await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "x")];
    let answer = served.post(&headers, &modern(1, "x", json!({})).to_string()).await;
    assert_eq!((answer.status, answer.code()), (200, json!(-32603)));
    assert!(answer.body.contains("it can't be reached"), "{}", answer.body);
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_where_it_stood() {
    let upstream = Upstream::new(|got| {
        let progress = |progress: i64| {
            let params = json!({ "progressToken": 9, "progress": progress });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
        };
        match (got.verb.as_str(), got.method()) {
            ("POST", "tools/call") => {
                let first = format!("retry: 1\nid: e1\ndata: {}\n\n", progress(1));
                Some(vec![begins_stream(), Act::Write(first)])
            }
            ("GET", _) if got.header("last-event-id") == Some("e1") => {
                let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } });
                Some(vec![begins_stream(), event(&progress(2)), event(&answer)])
            }
            _ => None,
        }
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    let params = json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": 9 } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let events = served.post(&headers, &body).await.events();
    let told: Vec<&Value> = events.iter().map(|event| &event["params"]["progress"]).collect();
    assert_eq!(told[..2], [&json!(1), &json!(2)], "{events:?}");
    assert_eq!(events[2]["result"], json!({ "content": [] }));
    assert_eq!(upstream.asked("tools/call").len(), 1);
}

#[tokio::test]
async fn a_session_that_the_server_has_lost_is_begun_anew_for_the_request() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sessions);
    let upstream = Upstream::new(move |got| match (got.method(), got.header("mcp-session-id")) {
        ("initialize", _) => {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let answer =
                result(got, json!({ "protocolVersion": "2025-11-25", "capabilities": {} })).to_string();
            let headers = format!("content-type: application/json\r\nmcp-session-id: s{number}\r\n");
            Some(says(200, &headers, &answer))
        }
        // The server was started anew after the first call.
        ("tools/call", Some("s0")) => Some(says(404, "", "")),
        _ => None,
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let session = served.begin(&[]).await;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    let params = json!({ "name": "echo", "arguments": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let answer = served.post(&headers, &body).await;
    assert!(answer.json()["result"]["content"].is_array(), "{}", answer.body);
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    let called: Vec<_> = upstream
        .asked("tools/call")
        .iter()
        .map(|got| got.header("mcp-session-id").map(str::to_owned))
        .collect();
    assert_eq!(called, [Some("s0".to_owned()), Some("s1".to_owned())]);
    assert_eq!(upstream.asked("notifications/initialized").len(), 2);
}

#[tokio::test]
async fn a_tool_whose_headers_have_changed_is_asked_about_and_called_again() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let upstream = Upstream::new(move |got| match got.method() {
        "tools/list" if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
            let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
            Some(says_json(&result(got, json!({ "tools": tools, "resultType": "complete" }))))
        }
        "tools/call" if got.header("mcp-param-region").is_none() => {
            let error = json!({ "code": -32020, "message": "mismatch" });
            let answer = json!({ "jsonrpc": "2.0", "id": got.body["id"], "error": error });
            Some(says(400, "content-type: application/json\r\n", &answer.to_string()))
        }
        _ => Some(plainly(got)),
    })
    .await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    let answer = served.call(&[], "echo", json!({ "region": "eu" })).await;
    assert_eq!((answer.status, answer.code()), (200, json!(null)), "{}", answer.body);
    assert_eq!(upstream.asked("tools/call")[1].header("mcp-param-region"), Some("eu"));
}

#[test]
fn what_is_no_way_to_a_server_is_told_at_once() {
    for (url, header, why) in [
        ("nonsense", ("a", "b"), "`nonsense` is no URL"),
        ("ftp://example.com", ("a", "b"), "no URL of HTTP"),
        ("https://example.com", ("a b", "c"), "`a b` is no name of a header"),
        ("https://example.com", ("a", "secret\n"), "the value of the header `a` can't stand in one"),
    ] {
        let headers = vec![(header.0.to_owned(), header.1.to_owned())];
        let said = HttpSpec { url: url.to_owned(), headers }.check().unwrap_err();
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
    }
}
