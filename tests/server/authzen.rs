//! OpenID AuthZEN: evaluation and evaluations.

use callgate::json::{Value, json};

use super::harness::RunningServer;

const RULES: &str = "defaults: { unmatched: deny }
policies:
  - id: readers
    match: { tool: can_read, where: [ { path: $.context.principal, eq: ann } ] }
    allow: {}
  - id: owners
    match: { tool: can_update, where: [ { expr: input.resource.properties.owner == context.principal } ] }
    allow: {}
  - id: ask
    match: can_delete
    approval: { message: 'Delete?', expires: 1h }
";

fn request(subject: &str, action: &str, resource: Value) -> Value {
    json!({ "subject": { "type": "user", "id": subject }, "action": { "name": action }, "resource": resource })
}

fn todo(owner: &str) -> Value {
    json!({ "type": "todo", "id": "1", "properties": { "owner": owner } })
}

#[tokio::test]
async fn evaluates_an_access_request() {
    let server = RunningServer::new(RULES).await;
    for (subject, action, owner, permitted) in [
        ("ann", "can_read", "bob", true),
        ("bob", "can_read", "bob", false),
        ("bob", "can_update", "bob", true),
        ("ann", "can_update", "bob", false),
        // Something else is needed first, so this is not a permission.
        ("ann", "can_delete", "ann", false),
    ] {
        let body = request(subject, action, todo(owner));
        let reply = server.post("/access/v1/evaluation", &body).await;
        assert_eq!((reply.status, &reply.body["decision"]), (200, &json!(permitted)), "{body}: {reply:?}");
    }
    let missing =
        server.post("/access/v1/evaluation", &json!({ "subject": { "type": "user", "id": "ann" } })).await;
    assert_eq!(missing.status, 400);
}

#[tokio::test]
async fn evaluates_several_with_common_members() {
    let server = RunningServer::new(RULES).await;
    let mut body = json!({
        "subject": { "type": "user", "id": "ann" },
        "resource": todo("ann"),
        "evaluations": [
            { "action": { "name": "can_read" } },
            { "action": { "name": "can_unknown" } },
            { "action": { "name": "can_update" } },
        ],
    });
    let decisions = async |body: &Value| {
        let reply = server.post("/access/v1/evaluations", body).await;
        let all = reply.body["evaluations"].as_array().unwrap_or_else(|| panic!("{reply:?}")).clone();
        all.iter().map(|one| one["decision"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(decisions(&body).await, [true, false, true]);
    body["options"] = json!({ "evaluations_semantic": "deny_on_first_deny" });
    assert_eq!(decisions(&body).await, [true, false]);
    body["options"] = json!({ "evaluations_semantic": "permit_on_first_permit" });
    assert_eq!(decisions(&body).await, [true]);
}

#[tokio::test]
async fn describes_its_endpoints() {
    let server = RunningServer::new(RULES).await;
    let reply = server.send("GET", "/.well-known/authzen-configuration", "", None).await;
    let evaluation = reply.body["access_evaluation_endpoint"].as_str().unwrap();
    assert_eq!(evaluation, format!("http://{}/access/v1/evaluation", server.address));
}
