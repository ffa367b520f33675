//! Identity of callers across protocol versions, tenants and credentials, and revocation of credentials.

use std::fs;
use std::time::Duration;

use callgate::json::{Value, json};
use callgate_http::IdentityFile;
use callgate_mcp::{HttpServer, SessionNameSource};

use super::harness::{RunningGateway, TIMEOUT, Upstream};
use super::identity::{IdentityFiles, digest};

const LABELS: &str = "policies:\n\
    - { id: tainted, match: read, label: { add: [secret] } }\n\
    - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }\n\
    - { id: writers, match: { tool: write, where: { path: '$.context.roles[*]', eq: writer, each: none } }, deny: { code: no_writer } }";

const HANDSHAKE: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

/// Calls a tool in an initialized session. Returns the reason code if the call is denied.
async fn call_in(served: &RunningGateway, session: &str, headers: &[(&str, &str)], tool: &str) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} } });
    let mut all = vec![HANDSHAKE, ("mcp-session-id", session)];
    all.extend(headers);
    served.post(&all, &body.to_string()).await.code()
}

fn two_tokens() -> IdentityFiles {
    let (reader, writer, other) = (digest("reader"), digest("writer"), digest("other"));
    let file = format!(
        "tokens:\n\
         - {{ sha256: {reader}, principal: ana, roles: [reader], tenant: acme }}\n\
         - {{ sha256: {writer}, principal: ana, roles: [writer], tenant: acme }}\n\
         - {{ sha256: {other}, principal: ana, roles: [reader], tenant: evil }}\n"
    );
    IdentityFiles::new(&[("auth.yaml", &file)])
}

async fn served_to(files: &IdentityFiles, upstream: &Upstream, rules: &str) -> RunningGateway {
    let file = IdentityFile::open(&files.path()).unwrap_or_else(|error| panic!("{error}"));
    RunningGateway::with(&upstream.url, rules, |server| server.with_identity_file(file)).await
}

#[tokio::test]
async fn handshake_does_not_clear_the_labels_of_a_caller() {
    let upstream = Upstream::with_defaults().await;
    let served = served_to(&two_tokens(), &upstream, LABELS).await;
    let who = [("authorization", "Bearer reader")];
    served.call(&who, "read", json!({})).await;
    for _ in 0..2 {
        let session = served.initialize_session(&who).await;
        assert_eq!(call_in(&served, &session, &who, "send").await, json!("denied"));
    }
    // Nor the other way round.
    let other = [("authorization", "Bearer other")];
    let session = served.initialize_session(&other).await;
    assert_eq!(
        call_in(&served, &session, &other, "send").await,
        json!(null),
        "the same name in another tenant"
    );
    call_in(&served, &session, &other, "read").await;
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!("denied"));
    let ended =
        served.send_without_body("DELETE", &[HANDSHAKE, ("mcp-session-id", &session), other[0]]).await;
    assert_eq!(ended.status, 200);
    let session = served.initialize_session(&other).await;
    assert_eq!(call_in(&served, &session, &other, "send").await, json!("denied"));
}

#[tokio::test]
async fn handshake_joins_the_conversation_that_it_names() {
    let upstream = Upstream::with_defaults().await;
    let from: SessionNameSource = "header:x-conversation".parse().unwrap();
    let served =
        RunningGateway::with(&upstream.url, LABELS, |server| server.with_session_name_source(from)).await;
    let (one, two) = ([("x-conversation", "one")], [("x-conversation", "two")]);
    served.call(&one, "read", json!({})).await;
    let (first, second) = (served.initialize_session(&one).await, served.initialize_session(&two).await);
    assert_eq!(call_in(&served, &first, &[], "send").await, json!("denied"));
    assert_eq!(call_in(&served, &second, &[], "send").await, json!(null));
}

#[tokio::test]
async fn credentials_of_one_caller_differ_in_roles_and_share_labels() {
    let upstream = Upstream::with_defaults().await;
    let served = served_to(&two_tokens(), &upstream, LABELS).await;
    let (reader, writer) = ([("authorization", "Bearer reader")], [("authorization", "Bearer writer")]);
    served.call(&writer, "read", json!({})).await;
    for (who, code) in [(reader, json!("no_writer")), (writer, json!(null)), (reader, json!("no_writer"))] {
        assert_eq!(served.call(&who, "write", json!({})).await.code(), code, "{who:?}");
        assert_eq!(served.call(&who, "send", json!({})).await.code(), json!("denied"), "{who:?}");
    }
    // A session belongs to the credential that initialized it.
    let session = served.initialize_session(&writer).await;
    let list = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
    let of = |who| [("mcp-session-id", session.as_str()), HANDSHAKE, who];
    assert_eq!(served.post(&of(reader[0]), list).await.status, 404);
}

#[tokio::test]
async fn eviction_affects_only_the_flooding_caller_and_makes_labels_unknown() {
    let upstream = Upstream::with_defaults().await;
    let from: SessionNameSource = "header:x-conversation".parse().unwrap();
    let files = two_tokens();
    let file = IdentityFile::open(&files.path()).unwrap();
    let server = |server: HttpServer| {
        server
            .with_identity_file(file)
            .with_session_name_source(from)
            .with_max_conversations(4)
            .with_max_clients(3)
    };
    let served = RunningGateway::with(&upstream.url, LABELS, server).await;
    let of = |who: &'static str, name: &'static str| [("authorization", who), ("x-conversation", name)];
    let (honest, hostile) = ("Bearer other", "Bearer reader");
    served.call(&of(honest, "mine"), "read", json!({})).await;
    served.call(&of(hostile, "tainted"), "read", json!({})).await;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(served.call(&of(hostile, name), "echo", json!({})).await.status, 200);
    }
    // After eviction it is unknown whether the session has the label.
    assert_eq!(served.call(&of(hostile, "tainted"), "send", json!({})).await.code(), json!("undecided"));
    assert_eq!(served.call(&of(hostile, "new"), "send", json!({})).await.code(), json!("undecided"));
    // The other caller's sessions are unaffected.
    assert_eq!(served.call(&of(honest, "mine"), "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&of(honest, "new"), "send", json!({})).await.code(), json!(null));
}

/// Waits until the gateway's log contains `what`.
async fn wait_for_log(served: &RunningGateway, what: &str) {
    let wait = async {
        while !served.log.lock().unwrap().iter().any(|line| line.contains(what)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("not in the log: {what}"));
}

#[tokio::test]
async fn removed_token_stops_working_and_its_streams_are_closed() {
    let upstream = Upstream::with_defaults().await;
    let files = two_tokens();
    let served = served_to(&files, &upstream, LABELS).await;
    let (reader, other) = (("authorization", "Bearer reader"), ("authorization", "Bearer other"));
    let session = served.initialize_session(&[reader]).await;
    let stays = served.initialize_session(&[other]).await;
    let of =
        |session: &'_ str, who| served.request("GET", &[HANDSHAKE, ("mcp-session-id", session), who], "");
    let (closed, open) = (of(&session, reader), of(&stays, other));
    let (mut closed, mut open) = (served.send(&closed).await, served.send(&open).await);
    closed.until("text/event-stream").await;
    open.until("text/event-stream").await;

    let text = fs::read_to_string(files.path()).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.contains(&digest("reader"))).collect();
    fs::write(files.path(), without.join("\n")).unwrap();
    wait_for_log(&served, "the identity file was reloaded").await;
    assert_eq!(served.call(&[reader], "echo", json!({})).await.status, 401);
    assert_eq!(served.call(&[other], "echo", json!({})).await.status, 200);
    assert_eq!(closed.response().await.status, 200, "the stream is closed");
    assert_eq!(
        served.send_without_body("DELETE", &[HANDSHAKE, ("mcp-session-id", &stays), other]).await.status,
        200
    );
    assert_eq!(open.response().await.status, 200);
}

#[tokio::test]
async fn invalid_identity_file_changes_nothing_and_is_reported_once() {
    let upstream = Upstream::with_defaults().await;
    let files = two_tokens();
    let served = served_to(&files, &upstream, LABELS).await;
    fs::write(files.path(), "tokens: [{ principal: x }]").unwrap();
    wait_for_log(&served, "is rejected").await;
    assert_eq!(served.call(&[("authorization", "Bearer reader")], "echo", json!({})).await.status, 200);
    fs::write(files.path(), format!("tokens: [{{ sha256: {}, principal: x }}]", digest("new"))).unwrap();
    wait_for_log(&served, "was reloaded").await;
    assert_eq!(served.call(&[("authorization", "Bearer reader")], "echo", json!({})).await.status, 401);
    assert_eq!(served.call(&[("authorization", "Bearer new")], "echo", json!({})).await.status, 200);
    let rejections = served.log.lock().unwrap().iter().filter(|line| line.contains("is rejected")).count();
    assert_eq!(rejections, 1);
}
