//! Results of forms that are not those of finished tool calls, and where else what a call came to is told.

use callgate::json::{Value, json};

use super::scene::{MODERN, NO_RULES, Served, Upstream, begins_stream, event, modern, result, says_json};

const HIDING: &str = "policies: [{ id: no-mail, match: '*', redact: { detect: [email] } }]";
const MAIL: &str = "ada@example.com";

/// A server whose tool gives what the call has as `result`, and whose tasks come to a text with an address in it.
async fn upstream() -> Upstream {
    Upstream::new(|got| {
        let text = json!([{ "type": "text", "text": format!("write to {MAIL}") }]);
        let params = &got.body["params"];
        match got.method() {
            "tools/call" if params["arguments"].get("result").is_some() => {
                Some(says_json(&result(got, params["arguments"]["result"].clone())))
            }
            "tasks/result" => Some(says_json(&result(got, json!({ "content": text })))),
            "tasks/get" => {
                let done = json!({ "taskId": params["taskId"], "status": "completed", "result": { "content": text } });
                Some(says_json(&result(got, done)))
            }
            _ => None,
        }
    })
    .await
}

async fn ask(served: &Served, method: &str, params: Value) -> Value {
    let subject = params.get("taskId").or(params.get("name")).and_then(Value::as_str).unwrap_or_default();
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method), ("mcp-name", subject)];
    served.post(&headers, &modern(5, method, params.clone()).to_string()).await.json()
}

async fn gives(served: &Served, gives: Value) -> Value {
    ask(served, "tools/call", json!({ "name": "echo", "arguments": { "result": gives } })).await
}

#[tokio::test]
async fn a_result_of_a_form_of_its_own_passes_as_it_is() {
    let upstream = upstream().await;
    let served = Served::new(&upstream.url, NO_RULES).await;
    for odd in [
        json!({}),
        json!(null),
        json!([1]),
        json!("text"),
        json!({ "content": "plain" }),
        json!({ "task": { "taskId": "k", "status": "working" } }),
        json!({ "resultType": "task", "taskId": "k" }),
    ] {
        assert_eq!(gives(&served, odd.clone()).await["result"], odd);
    }
}

#[tokio::test]
async fn what_a_task_comes_to_is_searched_as_a_result_of_its_call() {
    let upstream = upstream().await;
    let served = Served::new(&upstream.url, HIDING).await;
    for begun in [
        json!({ "task": { "taskId": "one" } }),
        json!({ "resultType": "task", "taskId": "two" }),
        json!({ "content": [], "_meta": { "modelcontextprotocol.io/task": { "taskId": "draft" } } }),
    ] {
        gives(&served, begun).await;
    }
    for (method, task) in
        [("tasks/result", "one"), ("tasks/get", "one"), ("tasks/get", "two"), ("tasks/result", "draft")]
    {
        let answer = ask(&served, method, json!({ "taskId": task })).await;
        let text = answer["result"].to_string();
        assert!(text.contains("write to [email]") && !text.contains(MAIL), "{answer}");
    }
    // Whose result it is can't be told.
    for params in [json!({ "taskId": "three" }), json!({ "taskId": 1 }), json!({})] {
        let unknown = ask(&served, "tasks/result", params).await;
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    // Not every reader would read the same.
    let before = upstream.got().len();
    for (method, params) in [
        ("tasks/result", json!({ "taskid": "one" })),
        ("tasks/result", json!({ "taskId": "one", "task_id": "two" })),
        ("Tasks/Result", json!({ "taskId": "one" })),
        ("tasks.result", json!({ "taskId": "one" })),
    ] {
        let refused = ask(&served, method, params).await;
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
    }
    assert_eq!(upstream.got().len(), before, "no server hears of it");
    let open = Served::new(&upstream.url, NO_RULES).await;
    let answer = ask(&open, "tasks/result", json!({ "taskId": "three" })).await;
    assert!(answer.to_string().contains(MAIL), "without such policies it passes: {answer}");
}

#[tokio::test]
async fn what_is_told_of_a_task_is_searched_too() {
    let upstream = Upstream::new(|got| {
        let told = |task: &str| {
            json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status",
                "params": { "taskId": task, "status": "working", "statusMessage": format!("asked {MAIL}") } })
        };
        (got.method() == "tools/call").then(|| match got.body["params"]["arguments"]["begins"].as_bool() {
            Some(true) => says_json(&result(got, json!({ "task": { "taskId": "mine" } }))),
            _ => vec![
                begins_stream(),
                event(&told("mine")),
                event(&told("other")),
                event(&result(got, json!({ "content": [] }))),
            ],
        })
    })
    .await;
    let served = Served::new(&upstream.url, HIDING).await;
    served.call(&[], "echo", json!({ "begins": true })).await;
    let told = served.call(&[], "echo", json!({})).await;
    let events = told.events();
    assert_eq!(events[0]["params"]["statusMessage"], "asked [email]", "{events:?}");
    assert_eq!(events[1]["params"], json!({ "taskId": "other", "status": "working" }), "{events:?}");
}

#[tokio::test]
async fn members_beside_the_result_are_searched() {
    let upstream = Upstream::new(|got| {
        (got.method() == "tools/call").then(|| {
            let mut answer = result(got, json!({ "content": [] }));
            answer["note"] = json!({ "of": MAIL });
            says_json(&answer)
        })
    })
    .await;
    let served = Served::new(&upstream.url, HIDING).await;
    let answer = served.call(&[], "echo", json!({})).await.json();
    assert_eq!(answer["note"], json!({ "of": "[email]" }), "{answer}");
}

#[tokio::test]
async fn what_is_not_the_end_of_a_call_is_not_cached() {
    let upstream = upstream().await;
    let cached = "policies: [{ id: keep, match: echo, cache: { ttl: 1h, scope: shared } }]";
    let served = Served::new(&upstream.url, cached).await;
    let interim = [
        json!({ "resultType": "input_required", "requestState": "s" }),
        json!({ "resultType": "task", "taskId": "k" }),
        json!({ "task": { "taskId": "k" } }),
    ];
    for (number, result) in interim.into_iter().chain([json!({ "content": [] })]).enumerate() {
        let before = upstream.asked("tools/call").len();
        gives(&served, result.clone()).await;
        gives(&served, result.clone()).await;
        let sent = upstream.asked("tools/call").len() - before;
        assert_eq!(sent, if number == 3 { 1 } else { 2 }, "{result}");
    }
}

#[tokio::test]
async fn a_question_that_is_dismissed_is_not_put_again_and_again() {
    let upstream = Upstream::plain().await;
    let asking = "policies: [{ id: ask, match: echo, approval: { message: May it? } }]";
    let served = Served::new(&upstream.url, asking).await;
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let call = async |more: Value| {
        let mut request = modern(1, "tools/call", json!({ "name": "echo", "arguments": {} }));
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
    // An answer that is missing is no decision: it is asked for again.
    let again = call(json!({ "requestState": state, "inputResponses": {} })).await;
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    let approved =
        json!({ "dev.callgate/approval": { "action": "accept", "content": { "decision": "approve" } } });
    let again =
        call(json!({ "requestState": again["result"]["requestState"], "inputResponses": approved })).await;
    assert_eq!(again["result"]["resultType"], "complete", "{again}");
}

#[tokio::test]
async fn a_session_is_a_conversation() {
    let upstream = Upstream::plain().await;
    let once = "policies: [{ id: once, match: echo, rate_limit: { limit: 1, per: conversation } }]";
    let from = "header:X-Conversation".parse().unwrap();
    let served = Served::with(&upstream.url, once, |door| door.with_session_from(from)).await;
    for name in ["one", "other"] {
        let named = [("x-conversation", name)];
        assert_eq!(served.call(&named, "echo", json!({})).await.code(), json!(null));
        assert_eq!(served.call(&named, "echo", json!({})).await.code(), json!("rate_limited"));
    }
}
