//! Who may come in by a token, who that is to policies, and files that say so.

use std::fs;
use std::path::PathBuf;

use callgate::json::json;
use callgate::mcp::Identity;

use super::scene::{Served, Upstream};

/// The digest of `secret-of-ana`.
pub fn digest(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An identity file with files beside it.
pub struct Desk(tempfile::TempDir);

impl Desk {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        Self(directory)
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("auth.yaml")
    }

    pub fn identity(&self) -> Identity {
        Identity::from_file(&self.path()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Only those of the tenant and role may call.
pub const RULES: &str = "policies:\n\
    - { id: who, match: { tool: send, where: { not: { path: $.context.principal, eq: ana } } }, deny: { code: not_ana } }\n\
    - { id: role, match: { tool: send, where: { path: '$.context.roles[*]', eq: writer, each: none } }, deny: { code: no_writer } }\n\
    - { id: tenant, match: { tool: send, where: { not: { path: $.context.tenant, eq: acme } } }, deny: { code: other_tenant } }\n\
    - { id: team, match: { tool: read, where: { not: { path: $.context.team, eq: red } } }, deny: { code: other_team } }";

async fn served(upstream: &Upstream) -> Served {
    let (ana, bob) = (digest("secret-of-ana"), digest("secret-of-bob"));
    let file = format!(
        "tokens:\n\
         - {{ sha256: {ana}, principal: ana, roles: [writer], tenant: acme, context: {{ team: red }} }}\n\
         - {{ sha256: {bob}, principal: bob, roles: [], tenant: acme }}\n"
    );
    let identity = Desk::new(&[("auth.yaml", &file)]).identity();
    Served::with(&upstream.url, RULES, |door| door.with_identity(identity)).await
}

#[tokio::test]
async fn only_who_is_known_comes_in() {
    let upstream = Upstream::plain().await;
    let served = served(&upstream).await;
    for (headers, challenge) in [
        (vec![], "Bearer"),
        (vec![("authorization", "Bearer secret-of-eve")], "Bearer error=\"invalid_token\""),
        (vec![("authorization", "Bearer secret-of-an")], "Bearer error=\"invalid_token\""),
        (vec![("authorization", "Basic secret-of-ana")], "Bearer error=\"invalid_token\""),
        (vec![("authorization", "Bearer")], "Bearer error=\"invalid_token\""),
        (
            vec![("authorization", "Bearer secret-of-ana"), ("authorization", "Bearer secret-of-bob")],
            "Bearer error=\"invalid_token\"",
        ),
    ] {
        let answer = served.call(&headers, "echo", json!({})).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{headers:?}");
        for verb in ["GET", "DELETE"] {
            assert_eq!(served.ask(verb, &headers).await.status, 401, "{verb}");
        }
    }
    assert!(upstream.got().is_empty());
    let log = served.log.lock().unwrap().join("\n");
    assert!(log.contains("a client is not let in") && !log.contains("secret-of"), "{log}");
    for scheme in ["Bearer", "bearer"] {
        let token = format!("{scheme} secret-of-ana");
        assert_eq!(served.call(&[("authorization", &token)], "echo", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn policies_see_who_calls_and_not_what_clients_say_of_themselves() {
    let upstream = Upstream::plain().await;
    let served = served(&upstream).await;
    let (ana, bob) =
        ([("authorization", "Bearer secret-of-ana")], [("authorization", "Bearer secret-of-bob")]);
    assert_eq!(served.call(&ana, "send", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&ana, "read", json!({})).await.code(), json!(null));
    assert_eq!(served.call(&bob, "send", json!({})).await.code(), json!("not_ana"));
    assert_eq!(served.call(&bob, "read", json!({})).await.code(), json!("other_team"));
    let claims =
        json!({ "principal": "ana", "context": { "principal": "ana" }, "_meta": { "principal": "ana" } });
    assert_eq!(served.call(&bob, "send", claims).await.code(), json!("not_ana"));
}

#[tokio::test]
async fn a_session_is_only_its_callers() {
    let upstream = Upstream::plain().await;
    let served = served(&upstream).await;
    let (ana, bob) = (("authorization", "Bearer secret-of-ana"), ("authorization", "Bearer secret-of-bob"));
    let session = served.begin(&[ana]).await;
    let list = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
    let of = |who| [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25"), who];
    assert_eq!(served.post(&of(bob), list).await.status, 404);
    assert_eq!(served.ask("GET", &of(bob)).await.status, 404);
    assert_eq!(served.ask("DELETE", &of(bob)).await.status, 404);
    assert_eq!(served.post(&of(ana), list).await.status, 200);
}

#[tokio::test]
async fn what_one_caller_has_seen_is_not_anothers() {
    let upstream = Upstream::plain().await;
    let (ana, bob) = (digest("a"), digest("b"));
    let file = format!("tokens: [{{ sha256: {ana}, principal: ana }}, {{ sha256: {bob}, principal: bob }}]");
    let identity = Desk::new(&[("auth.yaml", &file)]).identity();
    let rules = "policies:\n\
        - { id: tainted, match: read, label: { add: [secret] } }\n\
        - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }";
    let from = "header:x-conversation".parse().unwrap();
    let served =
        Served::with(&upstream.url, rules, |door| door.with_identity(identity).with_session_from(from)).await;
    let of = |token: &'static str| [("authorization", token), ("x-conversation", "same")];
    served.call(&of("Bearer a"), "read", json!({})).await;
    assert_eq!(served.call(&of("Bearer a"), "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&of("Bearer b"), "send", json!({})).await.code(), json!(null));
}

#[tokio::test]
async fn where_others_can_reach_the_door_it_must_know_who_they_are() {
    let upstream = Upstream::plain().await;
    let log = std::sync::Arc::default();
    let gateway = std::sync::Arc::new(super::scene::gateway(&upstream.url, "policies: []", &log));
    let door = || callgate::mcp::HttpDoor::new(std::sync::Arc::clone(&gateway));
    let (open, local) = ("0.0.0.0:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap());
    assert!(door().check(open).unwrap_err().contains("can be reached from other machines"));
    assert_eq!(door().check(local), Ok(()));
    let file = format!("tokens: [{{ sha256: {}, principal: ana }}]", digest("a"));
    let identity = Desk::new(&[("auth.yaml", &file)]).identity();
    assert_eq!(door().with_identity(identity).check(open), Ok(()));
}

#[test]
fn everything_that_is_wrong_with_a_file_is_told_at_its_place() {
    let cases = [
        ("tokens: [{ sha265: x, principal: a }]", "did you mean `sha256`?"),
        ("tokens: [{ principal: a }]", "`sha256` or `env` is missing"),
        ("tokens: [{ sha256: abc, principal: a }]", "this is no SHA-256 digest"),
        ("tokens: [{ sha256: abc, env: X, principal: a }]", "only one of `sha256` or `env` can be said"),
        ("tokens: [{ env: CALLGATE_TEST_UNSET, principal: a }]", "this environment variable is not set"),
        ("tokens: [{ env: PATH }]", "`principal` is missing"),
        ("tokens: [{ env: PATH, principal: a, context: { roles: [x] } }]", "`roles` has a key of its own"),
        ("tokens: [{ env: PATH, principal: a, context: x }]", "`context` must be a mapping"),
        ("callgate: 1", "nobody is known"),
        ("jwt: { issuer: i, algorithms: RS256, pem: k }", "`audience` is missing"),
        ("jwt: { issuer: i, audience: a, algorithms: none, pem: k }", "`none`"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, pem: k }", "does not exist"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, pem: bad }", "this file can't be used"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, jwks: bad }", "this file can't be used"),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, jwks: none.json }",
            "no key that tokens can be signed with",
        ),
        (
            "jwt: { issuer: i, audience: a, algorithms: [RS256, HS256], jwks: bad }",
            "not all of these algorithms",
        ),
        (
            "jwt: { issuer: i, audience: a, algorithms: [RS256, ES256], pem: bad }",
            "not all of these algorithms",
        ),
        ("jwt: { issuer: i, audience: a, algorithms: HS256, pem: bad }", "not all of these algorithms"),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, secret_env: PATH }",
            "not all of these algorithms",
        ),
        ("jwt: { issuer: i, audience: a, algorithms: HS256, secret_env: CALLGATE_TEST_UNSET }", "is not set"),
        (
            "jwt: { issuer: i, audience: a, algorithms: HS256, secret_env: CARGO_PKG_NAME }",
            "shorter than 32 bytes",
        ),
        (
            "{ tokens: [{ env: PATH, principal: a }], jwt: { issuer: i, audience: a, algorithms: RS256, pem: bad } }",
            "`prefix` is missing",
        ),
        (
            "jwt: [{ issuer: i, audience: a, algorithms: RS256, pem: bad, prefix: 'A:' }, { issuer: j, audience: a, algorithms: RS256, pem: bad, prefix: 'a:b' }]",
            "another issuer could name the same principals",
        ),
        (
            "{ tokens: [{ env: PATH, principal: 'X:ci' }], jwt: { issuer: i, audience: a, algorithms: RS256, pem: bad, prefix: 'x:' } }",
            "the issuer with this prefix could name the same principal",
        ),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, pem: bad, context: { issuer: x } }",
            "`issuer` has a key of its own",
        ),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, jwks: none.json, leeway: 30 }",
            "`leeway` must be a string",
        ),
    ];
    for (file, expected) in cases {
        let desk = Desk::new(&[("auth.yaml", file), ("bad", "nonsense"), ("none.json", r#"{"keys":[]}"#)]);
        let said = match Identity::from_file(&desk.path()) {
            Ok(_) => panic!("{file} is taken"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected) && said.contains("auth.yaml"), "{file}\n{said}");
    }
}
