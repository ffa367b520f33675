//! Approval requests over HTTP: list, answer, resume.

use callgate::json::{Value, json};

use super::harness::{RunningServer, call};

const RULES: &str = "policies:
  - id: ask
    match: pay
    approval: { message: 'Pay {{ input.amount }}?', expires: 1h, edits: [ $.input.note ] }
";

#[tokio::test]
async fn an_approved_call_runs_once() {
    let server = RunningServer::new(RULES).await;
    let pay = call("c1", "pay", json!({ "amount": 5, "note": "rent" }));
    let asked = server.post("/v1/calls", &pay).await;
    assert_eq!(asked.body["outcome"]["outcome"], "suspended", "{asked:?}");
    let pending = server.pending().await;
    assert_eq!((pending.len(), &pending[0]["session"]), (1, &json!("s1")));
    assert_eq!(server.post("/v1/calls", &pay).await.body["outcome"]["outcome"], "suspended");
    let answered = server.answer(&pending[0], "approve").await;
    assert_eq!(answered.body["decision"], "approved", "{answered:?}");
    assert!(server.pending().await.is_empty());
    let begun = server.post("/v1/calls", &pay).await;
    let done = server.report(&begun, json!({ "output": "paid" })).await;
    assert_eq!(done.body["outcome"]["approved"]["by"], json!(["ann"]));
    assert_eq!(server.post("/v1/calls", &pay).await.body["outcome"]["replayed"], true);
}

#[tokio::test]
async fn a_denied_call_never_runs_and_the_first_answer_counts() {
    let server = RunningServer::new(RULES).await;
    let pay = call("c1", "pay", json!({ "amount": 5 }));
    server.post("/v1/calls", &pay).await;
    let pending = server.pending().await;
    let body = json!({ "decision": "deny", "digest": pending[0]["digest"], "reason": "not today" });
    let path = format!("/v1/approvals/{}/answers", pending[0]["key"].as_str().unwrap());
    assert_eq!(server.send_as(&server.token, "POST", &path, Some(&body)).await.status, 200);
    let late = server.answer(&pending[0], "approve").await;
    assert_eq!(late.status, 409, "{late:?}");
    let outcome = server.post("/v1/calls", &pay).await.body["outcome"].clone();
    assert_eq!(
        (&outcome["outcome"], &outcome["reason"]["code"]),
        (&json!("denied"), &json!("approval_denied"))
    );
    assert!(outcome["reason"]["message"].as_str().unwrap().contains("not today"), "{outcome}");
}

#[tokio::test]
async fn answers_are_for_what_was_shown() {
    let server = RunningServer::new(RULES).await;
    server.post("/v1/calls", &call("c1", "pay", json!({ "amount": 5, "note": "rent" }))).await;
    let pending = server.pending().await.remove(0);
    let path = format!("/v1/approvals/{}/answers", pending["key"].as_str().unwrap());
    let answer = async |body: Value| server.send_as(&server.token, "POST", &path, Some(&body)).await;
    let other = answer(json!({ "decision": "approve", "digest": "0000000000000000" })).await;
    assert_eq!((other.status, &other.body["code"]), (409, &json!("changed")));
    let digest = pending["digest"].clone();
    let denied_edit = answer(json!({ "decision": "deny", "digest": digest, "input": {} })).await;
    assert_eq!(denied_edit.status, 400);
    let forbidden = answer(
        json!({ "decision": "approve", "digest": digest, "input": { "amount": 500, "note": "rent" } }),
    )
    .await;
    assert_eq!(forbidden.status, 409, "{forbidden:?}");
    let allowed =
        answer(json!({ "decision": "approve", "digest": digest, "input": { "amount": 5, "note": "late" } }))
            .await;
    assert_eq!((allowed.status, &allowed.body["decision"]), (200, &json!("edited")), "{allowed:?}");
    let begun = server.post("/v1/calls", &call("c1", "pay", json!({ "amount": 5, "note": "rent" }))).await;
    assert_eq!(begun.body["executions"][0]["input"]["note"], "late");
}

#[tokio::test]
async fn several_requests_are_answered_each_on_its_own() {
    let server = RunningServer::new(RULES).await;
    for id in ["c1", "c2", "c3"] {
        server.post("/v1/calls", &call(id, "pay", json!({ "amount": 5, "id": id }))).await;
    }
    let pending = server.pending().await;
    server.answer(&pending[2], "deny").await;
    let answer =
        |item: &Value, digest: &Value| json!({ "key": item["key"], "digest": digest, "decision": "approve" });
    let answers = json!({ "answers": [
        answer(&pending[0], &pending[0]["digest"]),
        answer(&pending[1], &pending[0]["digest"]),
        answer(&pending[2], &pending[2]["digest"]),
    ] });
    let path = "/v1/answers";
    let reply = server.send_as(&server.token, "POST", path, Some(&answers)).await;
    let results = reply.body["results"].as_array().unwrap();
    assert_eq!(results[0]["request"]["decision"], "approved", "{reply:?}");
    assert_eq!(results[1]["problem"]["code"], "changed", "an answer is for what was shown");
    assert_eq!(results[2]["problem"]["status"], 409, "the first answer counts");
    assert_eq!(server.pending().await.len(), 1);
    assert_eq!(server.post(path, &answers).await.status, 403);
}

#[tokio::test]
async fn nobody_approves_their_own_call() {
    let rules =
        "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h, approvers: [ann] } } ]";
    let server = RunningServer::new(rules).await;
    let mut own = call("c1", "pay", json!({ "amount": 5 }));
    own["context"] = json!({ "principal": "ann" });
    server.post("/v1/calls", &own).await;
    let pending = server.pending().await;
    let refused = server.answer(&pending[0], "approve").await;
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("self_approval")), "{refused:?}");
}

#[tokio::test]
async fn lists_search_and_pages() {
    let server = RunningServer::new(RULES).await;
    for number in 0..5 {
        server
            .post("/v1/calls", &call(&format!("c{number}"), "pay", json!({ "amount": number, "to": "bob" })))
            .await;
    }
    let get = async |query: &str| {
        server.send_as(&server.token, "GET", &format!("/v1/approvals{query}"), None).await.body
    };
    assert_eq!(get("").await["found"], 5);
    assert_eq!(get("?search=BOB").await["found"], 5);
    assert_eq!(get("?search=%22amount%22%3A3").await["found"], 1);
    let page = get("?limit=2&offset=4").await;
    assert_eq!((page["approvals"].as_array().unwrap().len(), &page["pending"]), (1, &json!(5)));
    let invalid = server.send_as(&server.token, "GET", "/v1/approvals?status=open", None).await;
    assert_eq!(invalid.status, 400);
    assert_eq!(server.send_as(&server.token, "GET", "/v1/approvals/nonsense", None).await.status, 404);
}

#[tokio::test]
async fn activity_has_requests_answers_and_results() {
    let server = RunningServer::new(RULES).await;
    server.post("/v1/calls", &call("c1", "pay", json!({ "amount": 5 }))).await;
    let pending = server.pending().await;
    server.answer(&pending[0], "approve").await;
    let begun = server.post("/v1/calls", &call("c1", "pay", json!({ "amount": 5 }))).await;
    server.report(&begun, json!({ "output": "paid" })).await;
    let get = async |query: &str| {
        let reply = server.send_as(&server.token, "GET", &format!("/v1/activity{query}"), None).await;
        let events = reply.body["events"].as_array().unwrap().clone();
        events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = get("").await;
    for name in ["approval_requested", "answer_recorded", "approval_answered", "call_completed"] {
        assert!(all.iter().any(|event| event == name), "{name}: {all:?}");
    }
    assert!(!get("?policy=ask").await.is_empty());
    assert!(get("?policy=other").await.is_empty());
}

#[tokio::test]
async fn activity_leaves_out_long_contents() {
    let server = RunningServer::new(RULES).await;
    let begun = server.post("/v1/calls", &call("c1", "read", json!({ "text": "x".repeat(10_000) }))).await;
    let done = server.report(&begun, json!({ "output": "short" })).await;
    assert_eq!(done.body["outcome"]["input"]["text"].as_str().unwrap().len(), 10_000);
    let events = server.send_as(&server.token, "GET", "/v1/activity", None).await;
    let event = &events.body["events"][0];
    assert_eq!((&event["input"], &event["output"]), (&json!(null), &json!("short")), "{events:?}");
}
