//! Results that are not those of finished tool calls, and other messages that carry the result of a call.

use callgate::json::{Value, json};

use super::harness::{
    NO_RULES, RunningGateway, STATELESS_VERSION, Upstream, event, json_response, result, stateless_request,
    stream_start,
};

const HIDING: &str = "policies: [{ id: no-mail, match: '*', redact: { detect: [email] } }]";
const MAIL: &str = "ada@example.com";

/// A server whose tool returns its argument `result`, and whose tasks result in a text with an email address.
async fn upstream() -> Upstream {
    Upstream::new(|got| {
        let text = json!([{ "type": "text", "text": format!("write to {MAIL}") }]);
        let params = &got.body["params"];
        match got.method() {
            "tools/call" if params["arguments"].get("result").is_some() => {
                Some(json_response(&result(got, params["arguments"]["result"].clone())))
            }
            "tasks/result" => Some(json_response(&result(got, json!({ "content": text })))),
            "tasks/get" => {
                let done = json!({ "taskId": params["taskId"], "status": "completed", "result": { "content": text } });
                Some(json_response(&result(got, done)))
            }
            _ => None,
        }
    })
    .await
}

async fn send_request(served: &RunningGateway, method: &str, params: Value) -> Value {
    let subject = params.get("taskId").or(params.get("name")).and_then(Value::as_str).unwrap_or_default();
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", method), ("mcp-name", subject)];
    served.post(&headers, &stateless_request(5, method, params.clone()).to_string()).await.json()
}

async fn call_with_result(served: &RunningGateway, gives: Value) -> Value {
    send_request(served, "tools/call", json!({ "name": "echo", "arguments": { "result": gives } })).await
}

#[tokio::test]
async fn results_in_an_unusual_form_pass_unchanged() {
    let upstream = upstream().await;
    let served = RunningGateway::new(&upstream.url, NO_RULES).await;
    for odd in [
        json!({}),
        json!(null),
        json!([1]),
        json!("text"),
        json!({ "content": "plain" }),
        json!({ "task": { "taskId": "k", "status": "working" } }),
        json!({ "resultType": "task", "taskId": "k" }),
    ] {
        assert_eq!(call_with_result(&served, odd.clone()).await["result"], odd);
    }
}

#[tokio::test]
async fn task_results_are_redacted_like_results_of_their_call() {
    let upstream = upstream().await;
    let served = RunningGateway::new(&upstream.url, HIDING).await;
    for begun in [
        json!({ "task": { "taskId": "one" } }),
        json!({ "resultType": "task", "taskId": "two" }),
        json!({ "content": [], "_meta": { "modelcontextprotocol.io/task": { "taskId": "draft" } } }),
    ] {
        call_with_result(&served, begun).await;
    }
    for (method, task) in
        [("tasks/result", "one"), ("tasks/get", "one"), ("tasks/get", "two"), ("tasks/result", "draft")]
    {
        let answer = send_request(&served, method, json!({ "taskId": task })).await;
        let text = answer["result"].to_string();
        assert!(text.contains("write to [email]") && !text.contains(MAIL), "{answer}");
    }
    // The gateway does not know which call the result belongs to.
    for params in [json!({ "taskId": "three" }), json!({ "taskId": 1 }), json!({})] {
        let unknown = send_request(&served, "tasks/result", params).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    // Parsers may read these differently.
    let before = upstream.requests().len();
    for (method, params) in [
        ("tasks/result", json!({ "taskid": "one" })),
        ("tasks/result", json!({ "taskId": "one", "task_id": "two" })),
        ("Tasks/Result", json!({ "taskId": "one" })),
        ("tasks.result", json!({ "taskId": "one" })),
    ] {
        let refused = send_request(&served, method, params).await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
    }
    assert_eq!(upstream.requests().len(), before, "nothing is sent to the server");
    let open = RunningGateway::new(&upstream.url, NO_RULES).await;
    let answer = send_request(&open, "tasks/result", json!({ "taskId": "three" })).await;
    assert!(answer.to_string().contains(MAIL), "without redaction it passes: {answer}");
}

#[tokio::test]
async fn task_notifications_are_redacted() {
    let upstream = Upstream::new(|got| {
        let told = |task: &str| {
            json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status",
                "params": { "taskId": task, "status": "working", "statusMessage": format!("asked {MAIL}") } })
        };
        (got.method() == "tools/call").then(|| match got.body["params"]["arguments"]["begins"].as_bool() {
            Some(true) => json_response(&result(got, json!({ "task": { "taskId": "mine" } }))),
            _ => vec![
                stream_start(),
                event(&told("mine")),
                event(&told("other")),
                event(&result(got, json!({ "content": [] }))),
            ],
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, HIDING).await;
    served.call(&[], "echo", json!({ "begins": true })).await;
    let told = served.call(&[], "echo", json!({})).await;
    let events = told.events();
    assert_eq!(events[0]["params"]["statusMessage"], "asked [email]", "{events:?}");
    assert_eq!(events[1]["params"], json!({ "taskId": "other", "status": "working" }), "{events:?}");
}

#[tokio::test]
async fn members_beside_the_result_are_redacted() {
    let upstream = Upstream::new(|got| {
        (got.method() == "tools/call").then(|| {
            let mut answer = result(got, json!({ "content": [] }));
            answer["note"] = json!({ "of": MAIL });
            json_response(&answer)
        })
    })
    .await;
    let served = RunningGateway::new(&upstream.url, HIDING).await;
    let answer = served.call(&[], "echo", json!({})).await.json();
    assert_eq!(answer["note"], json!({ "of": "[email]" }), "{answer}");
}

#[tokio::test]
async fn interim_results_are_not_cached() {
    let upstream = upstream().await;
    let cached = "policies: [{ id: keep, match: echo, cache: { ttl: 1h, scope: shared } }]";
    let served = RunningGateway::new(&upstream.url, cached).await;
    let interim = [
        json!({ "resultType": "input_required", "requestState": "s" }),
        json!({ "resultType": "task", "taskId": "k" }),
        json!({ "task": { "taskId": "k" } }),
    ];
    for (number, result) in interim.into_iter().chain([json!({ "content": [] })]).enumerate() {
        let before = upstream.requests_for("tools/call").len();
        call_with_result(&served, result.clone()).await;
        call_with_result(&served, result.clone()).await;
        let sent = upstream.requests_for("tools/call").len() - before;
        assert_eq!(sent, if number == 3 { 1 } else { 2 }, "{result}");
    }
}

#[tokio::test]
async fn dismissed_elicitation_is_not_repeated() {
    let upstream = Upstream::with_defaults().await;
    let asking = "policies: [{ id: ask, match: echo, approval: { message: May it? } }]";
    let served = RunningGateway::new(&upstream.url, asking).await;
    let headers =
        [("mcp-protocol-version", STATELESS_VERSION), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let call = async |more: Value| {
        let mut request = stateless_request(1, "tools/call", json!({ "name": "echo", "arguments": {} }));
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {} });
        request["params"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        served.post(&headers, &request.to_string()).await.json()
    };
    let asked = call(json!({})).await;
    let state = &asked["result"]["requestState"];
    let cancelled = json!({ "dev.callgate/approval": { "action": "cancel" } });
    let answer = call(json!({ "requestState": state, "inputResponses": cancelled })).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("pending approval") && text.contains("Nobody answered"), "{answer}");
    // A missing answer is not a decision: the gateway asks again.
    let again = call(json!({ "requestState": state, "inputResponses": {} })).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let approved =
        json!({ "dev.callgate/approval": { "action": "accept", "content": { "decision": "approve" } } });
    let again =
        call(json!({ "requestState": again["result"]["requestState"], "inputResponses": approved })).await;
    assert_eq!(again["result"]["resultType"], "complete", "{again}");
}

#[tokio::test]
async fn rate_limits_per_conversation_count_each_session() {
    let upstream = Upstream::with_defaults().await;
    let once = "policies: [{ id: once, match: echo, rate_limit: { limit: 1, per: conversation } }]";
    let from = "header:X-Conversation".parse().unwrap();
    let served =
        RunningGateway::with(&upstream.url, once, |server| server.with_session_name_source(from)).await;
    for name in ["one", "other"] {
        let named = [("x-conversation", name)];
        assert_eq!(served.call(&named, "echo", json!({})).await.code(), json!(null));
        assert_eq!(served.call(&named, "echo", json!({})).await.code(), json!("rate_limited"));
    }
}

#[tokio::test]
async fn binary_content_is_the_same_in_every_call() {
    let upstream = upstream().await;
    let rules = "policies: [ { id: keep, match: echo, cache: { ttl: 1h } }, { id: no-mail, match: '*', redact: { detect: [email] } } ]";
    let served = RunningGateway::new(&upstream.url, rules).await;
    let picture =
        json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "QUJD".repeat(100) }] });
    let text = json!({ "content": [{ "type": "text", "text": "cached" }] });
    for _ in 0..2 {
        assert_eq!(call_with_result(&served, picture.clone()).await["result"]["content"], picture["content"]);
        assert_eq!(call_with_result(&served, text.clone()).await["result"]["content"], text["content"]);
    }
    let calls = upstream.requests().iter().filter(|got| got.method() == "tools/call").count();
    assert_eq!(calls, 3, "only the text comes from the cache");
}
