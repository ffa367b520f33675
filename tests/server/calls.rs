//! Decide, execute, report.

use callgate::json::{Value, json};

use super::harness::{RunningServer, call};

const RULES: &str = "policies:
  - id: no-large
    match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }
    deny: { message: 'At most 100, not {{ input.amount }}' }
  - id: twice
    match: ping
    rate_limit: { limit: 2, per: 1h }
  - id: cards
    match: read
    redact: { detect: [payment_card] }
  - id: again
    match: flaky
    retry: { attempts: 2, backoff: { initial: 1ms }, idempotent: true }
";

#[tokio::test]
async fn decides_without_counting() {
    let server = RunningServer::new(RULES).await;
    for _ in 0..3 {
        let reply = server.post("/v1/decide", &call("c1", "ping", json!({}))).await;
        assert_eq!(reply.body["decision"]["effect"], "run", "{reply:?}");
        assert_eq!(reply.body["decision"]["pending"], json!(["twice"]));
    }
    let reply = server.post("/v1/decide", &call("c1", "pay", json!({ "amount": 101 }))).await;
    assert_eq!(reply.body["decision"]["effect"], "deny");
    assert_eq!(reply.body["decision"]["reason"]["message"], "At most 100, not 101");
}

#[tokio::test]
async fn decides_a_round_as_a_whole_and_explains_a_call() {
    let server = RunningServer::new(RULES).await;
    let round = json!({ "calls": [
        { "tool": "pay", "input": { "amount": 1 } }, { "tool": "pay", "input": { "amount": 1000 } } ] });
    let reply = server.post("/v1/decide", &round).await;
    let effects: Vec<_> = reply.body["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|decision| decision["effect"].clone())
        .collect();
    assert_eq!(effects, [json!("run"), json!("deny")]);
    let one = json!({ "call": { "tool": "pay", "input": { "amount": 1 } } });
    let reply = server.post("/v1/decide?explain=true", &one).await;
    assert!(reply.body["explanation"].to_string().contains("no-large"), "{reply:?}");
    let reply = server.post("/v1/decide?explain=true", &round).await;
    assert_eq!(reply.body["explanations"].as_array().map(Vec::len), Some(2), "{reply:?}");
}

#[tokio::test]
async fn a_halt_stops_every_call_of_a_decided_round() {
    let server = RunningServer::new("policies: [ { id: stop, match: bomb, halt: {} } ]").await;
    let round = json!({ "calls": [ { "tool": "read" }, { "tool": "bomb" } ] });
    let reply = server.post("/v1/decide", &round).await;
    assert_eq!(reply.body["decisions"][0]["effect"], "halt", "{reply:?}");
    assert_eq!(reply.body["decisions"][0]["reason"]["code"], "session_halted");
}

#[tokio::test]
async fn the_host_executes_and_gets_the_redacted_outcome() {
    let server = RunningServer::new(RULES).await;
    let begun = server.post("/v1/calls", &call("c1", "read", json!({ "id": 7 }))).await;
    assert_eq!(begun.body["executions"][0]["input"], json!({ "id": 7 }));
    let done = server.report(&begun, json!({ "output": { "card": "4111 1111 1111 1111" } })).await;
    assert_eq!(done.body["status"], "completed");
    assert_eq!(done.body["outcome"]["output"], json!({ "card": "[payment_card]" }));
    assert_eq!(done.body["outcome"]["session"], "s1");
    // A lost response: the report and the call are sent again.
    let again = server.report(&begun, json!({ "output": { "card": "4111 1111 1111 1111" } })).await;
    assert_eq!(again.body, done.body);
    let replayed = server.post("/v1/calls", &call("c1", "read", json!({ "id": 7 }))).await;
    assert_eq!(replayed.body["outcome"]["replayed"], true);
    assert_eq!(replayed.body["outcome"]["output"], done.body["outcome"]["output"]);
    let other = server.report(&begun, json!({ "output": "other" })).await;
    assert_eq!((other.status, &other.body["code"]), (409, &json!("already_reported")));
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_the_same_execution() {
    let server = RunningServer::new(RULES).await;
    let first = server.post("/v1/calls", &call("c1", "ping", json!({}))).await;
    let second = server.post("/v1/calls", &call("c1", "ping", json!({}))).await;
    assert_eq!(first.body, second.body);
    let operation = first.body["operation"].as_str().unwrap().to_owned();
    let status = server.send("GET", &format!("/v1/operations/{operation}"), "", None).await;
    assert_eq!(status.body, first.body);
    server.report(&first, json!({ "output": 1 })).await;
    // It was counted once: one more is left.
    let next = server.post("/v1/calls", &call("c2", "ping", json!({}))).await;
    server.report(&next, json!({ "output": 1 })).await;
    let over = server.post("/v1/calls", &call("c3", "ping", json!({}))).await;
    assert_eq!(over.body["outcome"]["reason"]["code"], "rate_limited", "{over:?}");
}

#[tokio::test]
async fn a_retry_is_another_execution() {
    let server = RunningServer::new(RULES).await;
    let first = server.post("/v1/calls", &call("c1", "flaky", json!({}))).await;
    let second =
        server.report(&first, json!({ "error": { "message": "busy", "kind": "unavailable" } })).await;
    assert_ne!(first.body["executions"][0]["id"], second.body["executions"][0]["id"]);
    let done = server.report(&second, json!({ "output": null })).await;
    assert_eq!(done.body["outcome"]["outcome"], "executed", "{done:?}");
    assert_eq!(done.body["outcome"]["attempts"], 2);
}

#[tokio::test]
async fn runs_a_round_and_reports_each_outcome() {
    let server = RunningServer::new(RULES).await;
    let round = json!({ "session": "s1", "calls": [
        { "id": "a", "tool": "read" }, { "id": "b", "tool": "pay", "input": { "amount": 101 } } ] });
    let begun = server.post("/v1/calls", &round).await;
    let done = server.report(&begun, json!({ "output": "x" })).await;
    let outcomes = done.body["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), 2);
    assert_eq!((&outcomes[0]["outcome"], &outcomes[1]["outcome"]), (&json!("executed"), &json!("denied")));
}

#[tokio::test]
async fn labels_and_facts_last_across_requests() {
    let rules = "policies:
  - { id: mark, match: read_secret, label: { add: [secret] } }
  - { id: no-send, match: { tool: send, where: [ { path: $.session.labels, contains: secret } ] }, deny: {} }
";
    let server = RunningServer::new(rules).await;
    let before = server.post("/v1/decide", &call("c0", "send", json!({}))).await;
    assert_eq!(before.body["decision"]["effect"], "run", "{before:?}");
    let begun = server.post("/v1/calls", &call("c1", "read_secret", json!({}))).await;
    server.report(&begun, json!({ "output": "x" })).await;
    let after = server.post("/v1/calls", &call("c2", "send", json!({}))).await;
    assert_eq!(after.body["outcome"]["outcome"], "denied", "{after:?}");
    // Another session is another run.
    let mut other = call("c2", "send", json!({}));
    other["session"] = json!("s2");
    assert_eq!(server.post("/v1/calls", &other).await.body["status"], "execute");
}

#[tokio::test]
async fn invalid_requests_get_a_problem_with_the_place() {
    let server = RunningServer::new(RULES).await;
    for (body, status, detail) in [
        (r#"{"call":{"tol":"x"}}"#, 400, "unknown field `tol`"),
        (r#"{"call":{"tool":7}}"#, 400, "call.tool"),
        (r#"{}"#, 400, "`call` is missing"),
        (r#"{"calls":[]}"#, 400, "`calls` is empty"),
        (r#"{"call":{"tool":"x"},"calls":[]}"#, 400, "only one of"),
        (r#"{"call":{"tool":"x","tool":"y"}}"#, 400, "duplicate"),
        (r#"{"call":{"tool":"x"},"session":""}"#, 400, "`session` must have"),
        (r#"{"call":{"tool":"x"},"task":7}"#, 400, "`task` must be"),
        ("[]", 400, "must be a JSON object"),
        ("{", 400, "line 1"),
        ("\u{0}", 400, "invalid JSON"),
    ] {
        let reply = server.send("POST", "/v1/decide", "content-type: application/json\r\n", Some(body)).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        let found = reply.body["detail"].as_str().unwrap();
        assert!(found.contains(detail), "{body}: {found}");
    }
    let text = server.send("POST", "/v1/decide", "content-type: text/plain\r\n", Some("{}")).await;
    assert_eq!(text.status, 415);
    assert_eq!(server.send("GET", "/v1/decide", "", None).await.status, 405);
    assert_eq!(server.send("GET", "/v1/unknown", "", None).await.status, 404);
    let deep = format!("{{\"call\":{{\"tool\":\"x\",\"input\":{}1{}}}}}", "[".repeat(5000), "]".repeat(5000));
    let reply = server.send("POST", "/v1/decide", "content-type: application/json\r\n", Some(&deep)).await;
    assert_eq!(reply.status, 400);
}

#[tokio::test]
async fn errors_say_what_is_allowed() {
    let server = RunningServer::new(RULES).await;
    let reply = server.send("GET", "/v1/decide", "", None).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{reply:?}");
    let unclear = server.post("/v1/decide?explain=yes", &call("c1", "pay", json!({}))).await;
    assert_eq!((unclear.status, &unclear.body["code"]), (400, &json!("invalid_request")));
}

#[tokio::test]
async fn rules_have_the_modes_of_their_policies() {
    let rules = "policies: [ { id: a, match: x, deny: {} }, { id: b, match: x, mode: shadow, deny: {} }, \
                 { id: c, match: x, mode: off, deny: {} } ]";
    let server = RunningServer::new(rules).await;
    let reply = server.send_as(&server.token, "GET", "/v1/rules", None).await;
    let policies = reply.body["policies"].as_array().unwrap();
    let modes: Vec<_> = policies.iter().map(|policy| policy["mode"].clone()).collect();
    assert_eq!(
        modes,
        [json!("enforce"), json!("shadow")],
        "a policy that is off is not in effect: {reply:?}"
    );
}

#[tokio::test]
async fn a_request_with_an_idempotency_key_has_effect_once() {
    let server = RunningServer::new(RULES).await;
    let send = async |key: &str, body: &Value| {
        let headers = format!("content-type: application/json\r\nidempotency-key: {key}\r\n");
        server.send("POST", "/v1/calls", &headers, Some(&body.to_string())).await
    };
    // Without ids, only the key says that it is the same request.
    let body = json!({ "call": { "tool": "ping" } });
    let first = send("a", &body).await;
    assert_eq!(send("a", &body).await.body, first.body);
    let done = server.report(&first, json!({ "output": 1 })).await;
    assert_eq!(send("a", &body).await.body, done.body, "also after its end");
    let other = send("a", &json!({ "call": { "tool": "read" } })).await;
    assert_eq!((other.status, &other.body["code"]), (422, &json!("idempotency_key_reused")));
    assert_ne!(send("b", &body).await.body["operation"], first.body["operation"]);
    assert_eq!(send("", &body).await.status, 400);
}
