//! Who may do what: tokens, kinds of access, tenants, origins.

use callgate::json::{Value, json};

use super::harness::{RunningServer, call, identities, token};

const RULES: &str = "policies:
  - { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } }
  - { id: no-bob, match: { tool: read, where: [ { path: $.context.principal, eq: bob } ] }, deny: {} }
";

async fn server() -> RunningServer {
    let identities = identities(&[
        ("agent", "access: [caller], tenant: one"),
        ("host", "access: [host], tenant: one"),
        ("other", "access: [host], tenant: two"),
        ("ann", "access: [approver], tenant: one"),
        ("eve", "access: [approver], tenant: two"),
        ("root", "access: [admin, approver]"),
    ]);
    RunningServer::with_identities(RULES, &identities).await
}

#[tokio::test]
async fn every_endpoint_needs_a_valid_token() {
    let server = server().await;
    for (method, path) in
        [("POST", "/v1/decide"), ("GET", "/v1/approvals"), ("GET", "/v1/rules"), ("GET", "/v1/events")]
    {
        let missing = server.send(method, path, "content-type: application/json\r\n", Some("{}")).await;
        assert_eq!(missing.status, 401, "{path}");
        assert_eq!(missing.header("www-authenticate"), Some("Bearer"));
        assert_eq!(server.send_as("guess", method, path, Some(&json!({}))).await.status, 401, "{path}");
    }
    let twice = format!("authorization: Bearer {0}\r\nauthorization: Bearer {0}\r\n", token("root"));
    assert_eq!(server.send("GET", "/v1/rules", &twice, None).await.status, 400);
    // Neither names rules nor requests.
    for path in ["/", "/openapi.json", "/healthz", "/readyz"] {
        assert_eq!(server.send("GET", path, "", None).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn callers_have_only_the_access_that_is_given() {
    let server = server().await;
    let status = async |name: &str, method: &str, path: &str| {
        server.send_as(&token(name), method, path, Some(&json!({ "call": { "tool": "x" } }))).await.status
    };
    for (name, decide, approvals, grants) in
        [("agent", 200, 403, 403), ("host", 200, 403, 403), ("ann", 403, 200, 403), ("root", 403, 200, 200)]
    {
        let found = (
            status(name, "POST", "/v1/decide").await,
            status(name, "GET", "/v1/approvals").await,
            status(name, "GET", "/v1/grants").await,
        );
        assert_eq!(found, (decide, approvals, grants), "{name}");
    }
}

#[tokio::test]
async fn only_a_host_sets_context_and_task() {
    let server = server().await;
    let decide = async |name: &str, member: &str, value: Value| {
        let mut body = json!({ "call": { "tool": "read" } });
        body[member] = value;
        server.send_as(&token(name), "POST", "/v1/decide", Some(&body)).await
    };
    assert_eq!(decide("agent", "context", json!({ "principal": "bob" })).await.status, 403);
    assert_eq!(decide("agent", "task", json!("pay")).await.status, 403);
    let as_bob = decide("host", "context", json!({ "principal": "bob" })).await;
    assert_eq!(as_bob.body["decision"]["effect"], "deny", "{as_bob:?}");
    assert_eq!(decide("host", "context", json!({ "tenant": "two" })).await.status, 403);
    assert_eq!(decide("host", "task", json!("pay")).await.status, 200);
}

#[tokio::test]
async fn a_host_keeps_its_own_name_unless_it_names_a_user() {
    use callgate::json::Map;
    use callgate_http::IdentityFile;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identities.yaml");
    std::fs::write(&path, identities(&[("bob", "access: [host]")])).unwrap();
    let operator = Map::from_iter([("principal".to_owned(), json!("nobody"))]);
    let server = RunningServer::start(RULES, folder, |server| {
        server.with_identity_file(IdentityFile::open(&path).unwrap()).with_context(operator)
    })
    .await;
    let body = json!({ "call": { "tool": "read" }, "context": { "request": 7 } });
    let own = server.send_as(&token("bob"), "POST", "/v1/decide", Some(&body)).await;
    assert_eq!(own.body["decision"]["effect"], "deny", "the operator's context names no user: {own:?}");
}

#[tokio::test]
async fn approvers_see_only_their_tenant() {
    let server = server().await;
    let body = call("c1", "pay", json!({}));
    assert_eq!(server.send_as(&token("host"), "POST", "/v1/calls", Some(&body)).await.status, 200);
    let list = async |name: &str| server.send_as(&token(name), "GET", "/v1/approvals", None).await.body;
    assert_eq!(list("eve").await["found"], 0);
    assert_eq!(list("root").await["found"], 1);
    let found = list("ann").await;
    let key = found["approvals"][0]["key"].as_str().unwrap();
    let path = format!("/v1/approvals/{key}");
    assert_eq!(server.send_as(&token("eve"), "GET", &path, None).await.status, 404);
    let answer = json!({ "decision": "approve", "digest": found["approvals"][0]["digest"] });
    let answers = format!("{path}/answers");
    assert_eq!(server.send_as(&token("eve"), "POST", &answers, Some(&answer)).await.status, 404);
    assert_eq!(server.send_as(&token("ann"), "POST", &answers, Some(&answer)).await.status, 200);
    let activity = async |name: &str| {
        let reply = server.send_as(&token(name), "GET", "/v1/activity", None).await;
        reply.body["events"].as_array().unwrap().len()
    };
    assert_eq!(activity("eve").await, 0);
    assert!(activity("ann").await > 0);
}

#[tokio::test]
async fn sessions_and_operations_belong_to_their_caller() {
    let server = server().await;
    let body = call("c1", "ping", json!({}));
    let begun = server.send_as(&token("host"), "POST", "/v1/calls", Some(&body)).await;
    let operation = begun.body["operation"].as_str().unwrap().to_owned();
    let execution = begun.body["executions"][0]["id"].as_str().unwrap().to_owned();
    let report = Some(json!({ "output": "forged" }));
    for (method, path, body) in [
        ("GET", format!("/v1/operations/{operation}"), None),
        ("POST", format!("/v1/executions/{execution}"), report),
    ] {
        assert_eq!(server.send_as(&token("other"), method, &path, body.as_ref()).await.status, 404, "{path}");
    }
    // The same session name of another caller is another session.
    let other = server.send_as(&token("other"), "POST", "/v1/calls", Some(&body)).await;
    assert_ne!(other.body["operation"], begun.body["operation"]);
}

#[tokio::test]
async fn a_revoked_token_ends_at_once() {
    let server = server().await;
    let path = server.folder.path().join("identities.yaml");
    std::fs::write(&path, identities(&[("ann", "access: [approver]")])).unwrap();
    for _ in 0..600 {
        if server.send_as(&token("root"), "GET", "/v1/rules", None).await.status == 401 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the token is still valid");
}

#[tokio::test]
async fn without_identities_approving_needs_the_printed_token() {
    let server = RunningServer::new(RULES).await;
    assert_eq!(server.send("GET", "/v1/approvals", "", None).await.status, 403);
    assert_eq!(server.send_as("guess", "GET", "/v1/approvals", None).await.status, 401);
    assert_eq!(server.send_as(&server.token, "GET", "/v1/approvals", None).await.status, 200);
}

#[tokio::test]
async fn pages_of_other_origins_and_rebound_names_are_rejected() {
    let server = RunningServer::new(RULES).await;
    for headers in [
        "origin: https://evil.example\r\n",
        "host: evil.example\r\n",
        "origin: null\r\n",
        "origin: http://localhost.evil.example\r\n",
    ] {
        let reply = server.send("GET", "/v1/caller", headers, None).await;
        assert_eq!(reply.status, 403, "{headers}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    // A page of another local server can't send JSON: its preflight request is not granted.
    let preflight = "origin: http://localhost:3000\r\naccess-control-request-method: POST\r\n";
    let reply = server.send("OPTIONS", "/v1/calls", preflight, None).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (405, None));
}
