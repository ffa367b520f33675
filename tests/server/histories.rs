//! Histories: a round and its resumption, in every dialect's own form.

use callgate::json::{Value, json};

use super::harness::RunningServer;

const RULES: &str =
    "policies: [ { id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?', expires: 1h } } ]";

fn messages() -> Value {
    json!([
        { "role": "user", "content": "pay the rent, then read the news" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "pay", "arguments": "{\"amount\":5}" } },
            { "id": "c2", "type": "function", "function": { "name": "read", "arguments": "{}" } } ] } ])
}

#[tokio::test]
async fn runs_a_round_suspends_and_resumes() {
    let server = RunningServer::new(RULES).await;
    let body = json!({ "session": "chat", "messages": messages() });
    let begun = server.post("/v1/histories/openai-chat/round", &body).await;
    assert_eq!(begun.body["executions"][0]["tool"], "read", "{begun:?}");
    let round = server.report(&begun, json!({ "output": "news" })).await;
    assert_eq!(
        (&round.body["status"], &round.body["suspended"]),
        (&json!("completed"), &json!(true)),
        "{round:?}"
    );
    let pending = server.pending().await;
    server.answer(&pending[0], "approve").await;
    let body = json!({ "session": "chat", "messages": round.body["messages"] });
    let begun = server.post("/v1/histories/openai-chat/resume", &body).await;
    let resumed = server.report(&begun, json!({ "output": "paid" })).await;
    assert_eq!(resumed.body["suspended"], false, "{resumed:?}");
    assert!(resumed.body["messages"].to_string().contains("paid"));
}

#[tokio::test]
async fn unknown_dialects_and_invalid_histories_are_reported() {
    let server = RunningServer::new(RULES).await;
    let body = json!({ "session": "chat", "messages": messages() });
    let unknown = server.post("/v1/histories/morse/round", &body).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body["detail"].as_str().unwrap().contains("openai-chat"), "{unknown:?}");
    let invalid = json!({ "session": "chat", "messages": 7 });
    assert_eq!(server.post("/v1/histories/openai-chat/round", &invalid).await.status, 400);
}
