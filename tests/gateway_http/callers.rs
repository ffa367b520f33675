//! A caller is one caller: whatever version of the protocol it speaks, whoever else has its name, until its credential is revoked.

use std::fs;
use std::time::Duration;

use callgate::json::{Value, json};
use callgate::mcp::{HttpDoor, IdentityFile, SessionFrom};

use super::identity::{Desk, digest};
use super::scene::{PATIENCE, Served, Upstream};

const LABELS: &str = "policies:\n\
    - { id: tainted, match: read, label: { add: [secret] } }\n\
    - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }\n\
    - { id: writers, match: { tool: write, where: { path: '$.context.roles[*]', eq: writer, each: none } }, deny: { code: no_writer } }";

const HANDSHAKE: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

/// The code with which a call in a session that began with a handshake is denied, if it is.
async fn call_in(served: &Served, session: &str, headers: &[(&str, &str)], tool: &str) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": {} } });
    let mut all = vec![HANDSHAKE, ("mcp-session-id", session)];
    all.extend(headers);
    served.post(&all, &body.to_string()).await.code()
}

fn two_tokens() -> Desk {
    let (reader, writer, other) = (digest("reader"), digest("writer"), digest("other"));
    let file = format!(
        "tokens:\n\
         - {{ sha256: {reader}, principal: ana, roles: [reader], tenant: acme }}\n\
         - {{ sha256: {writer}, principal: ana, roles: [writer], tenant: acme }}\n\
         - {{ sha256: {other}, principal: ana, roles: [reader], tenant: evil }}\n"
    );
    Desk::new(&[("auth.yaml", &file)])
}

async fn served_to(desk: &Desk, upstream: &Upstream, rules: &str) -> Served {
    let file = IdentityFile::open(&desk.path()).unwrap_or_else(|error| panic!("{error}"));
    Served::with(&upstream.url, rules, |door| door.with_identity_file(file)).await
}

#[tokio::test]
async fn a_handshake_does_not_wash_off_what_a_caller_has_seen() {
    let upstream = Upstream::plain().await;
    let served = served_to(&two_tokens(), &upstream, LABELS).await;
    let who = [("authorization", "Bearer reader")];
    served.call(&who, "read", json!({})).await;
    for _ in 0..2 {
        let session = served.begin(&who).await;
        assert_eq!(call_in(&served, &session, &who, "send").await, json!("denied"));
    }
    // Nor does the other way round.
    let other = [("authorization", "Bearer other")];
    let session = served.begin(&other).await;
    assert_eq!(
        call_in(&served, &session, &other, "send").await,
        json!(null),
        "the same name in another tenant"
    );
    call_in(&served, &session, &other, "read").await;
    assert_eq!(served.call(&other, "send", json!({})).await.code(), json!("denied"));
    let ended = served.ask("DELETE", &[HANDSHAKE, ("mcp-session-id", &session), other[0]]).await;
    assert_eq!(ended.status, 200);
    let session = served.begin(&other).await;
    assert_eq!(call_in(&served, &session, &other, "send").await, json!("denied"));
}

#[tokio::test]
async fn a_handshake_takes_part_in_the_conversation_that_it_names() {
    let upstream = Upstream::plain().await;
    let from: SessionFrom = "header:x-conversation".parse().unwrap();
    let served = Served::with(&upstream.url, LABELS, |door| door.with_session_from(from)).await;
    let (one, two) = ([("x-conversation", "one")], [("x-conversation", "two")]);
    served.call(&one, "read", json!({})).await;
    let (first, second) = (served.begin(&one).await, served.begin(&two).await);
    assert_eq!(call_in(&served, &first, &[], "send").await, json!("denied"));
    assert_eq!(call_in(&served, &second, &[], "send").await, json!(null));
}

#[tokio::test]
async fn another_credential_of_a_caller_brings_its_own_roles_and_keeps_the_labels() {
    let upstream = Upstream::plain().await;
    let served = served_to(&two_tokens(), &upstream, LABELS).await;
    let (reader, writer) = ([("authorization", "Bearer reader")], [("authorization", "Bearer writer")]);
    served.call(&writer, "read", json!({})).await;
    for (who, code) in [(reader, json!("no_writer")), (writer, json!(null)), (reader, json!("no_writer"))] {
        assert_eq!(served.call(&who, "write", json!({})).await.code(), code, "{who:?}");
        assert_eq!(served.call(&who, "send", json!({})).await.code(), json!("denied"), "{who:?}");
    }
    // A session that began with other roles is another credential's.
    let session = served.begin(&writer).await;
    let list = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
    let of = |who| [("mcp-session-id", session.as_str()), HANDSHAKE, who];
    assert_eq!(served.post(&of(reader[0]), list).await.status, 404);
}

#[tokio::test]
async fn a_caller_that_invents_conversations_forgets_only_its_own_and_they_count_as_unknown() {
    let upstream = Upstream::plain().await;
    let from: SessionFrom = "header:x-conversation".parse().unwrap();
    let desk = two_tokens();
    let file = IdentityFile::open(&desk.path()).unwrap();
    let door = |door: HttpDoor| {
        door.with_identity_file(file).with_session_from(from).with_most_conversations(4).with_most_clients(3)
    };
    let served = Served::with(&upstream.url, LABELS, door).await;
    let of = |who: &'static str, name: &'static str| [("authorization", who), ("x-conversation", name)];
    let (honest, hostile) = ("Bearer other", "Bearer reader");
    served.call(&of(honest, "mine"), "read", json!({})).await;
    served.call(&of(hostile, "tainted"), "read", json!({})).await;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(served.call(&of(hostile, name), "echo", json!({})).await.status, 200);
    }
    // What was evicted is not known to be without the label.
    assert_eq!(served.call(&of(hostile, "tainted"), "send", json!({})).await.code(), json!("undecided"));
    assert_eq!(served.call(&of(hostile, "new"), "send", json!({})).await.code(), json!("undecided"));
    // The other caller has lost nothing.
    assert_eq!(served.call(&of(honest, "mine"), "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&of(honest, "new"), "send", json!({})).await.code(), json!(null));
}

/// Waits until the gateway reports something on the identity file.
async fn reported(served: &Served, what: &str) {
    let wait = async {
        while !served.log.lock().unwrap().iter().any(|line| line.contains(what)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("no report: {what}"));
}

#[tokio::test]
async fn a_token_that_is_removed_from_the_file_stops_working_also_for_open_streams() {
    let upstream = Upstream::plain().await;
    let desk = two_tokens();
    let served = served_to(&desk, &upstream, LABELS).await;
    let (reader, other) = (("authorization", "Bearer reader"), ("authorization", "Bearer other"));
    let session = served.begin(&[reader]).await;
    let stays = served.begin(&[other]).await;
    let of =
        |session: &'_ str, who| served.request("GET", &[HANDSHAKE, ("mcp-session-id", session), who], "");
    let (closed, open) = (of(&session, reader), of(&stays, other));
    let (mut closed, mut open) = (served.send(&closed).await, served.send(&open).await);
    closed.until("text/event-stream").await;
    open.until("text/event-stream").await;

    let text = fs::read_to_string(desk.path()).unwrap();
    let without: Vec<&str> = text.lines().filter(|line| !line.contains(&digest("reader"))).collect();
    fs::write(desk.path(), without.join("\n")).unwrap();
    reported(&served, "the identity file was reloaded").await;
    assert_eq!(served.call(&[reader], "echo", json!({})).await.status, 401);
    assert_eq!(served.call(&[other], "echo", json!({})).await.status, 200);
    assert_eq!(closed.answer().await.status, 200, "the stream has ended");
    assert_eq!(served.ask("DELETE", &[HANDSHAKE, ("mcp-session-id", &stays), other]).await.status, 200);
    assert_eq!(open.answer().await.status, 200);
}

#[tokio::test]
async fn an_identity_file_with_errors_changes_nothing_and_is_reported_once() {
    let upstream = Upstream::plain().await;
    let desk = two_tokens();
    let served = served_to(&desk, &upstream, LABELS).await;
    fs::write(desk.path(), "tokens: [{ principal: x }]").unwrap();
    reported(&served, "is rejected").await;
    assert_eq!(served.call(&[("authorization", "Bearer reader")], "echo", json!({})).await.status, 200);
    fs::write(desk.path(), format!("tokens: [{{ sha256: {}, principal: x }}]", digest("new"))).unwrap();
    reported(&served, "was reloaded").await;
    assert_eq!(served.call(&[("authorization", "Bearer reader")], "echo", json!({})).await.status, 401);
    assert_eq!(served.call(&[("authorization", "Bearer new")], "echo", json!({})).await.status, 200);
    let rejections = served.log.lock().unwrap().iter().filter(|line| line.contains("is rejected")).count();
    assert_eq!(rejections, 1);
}
