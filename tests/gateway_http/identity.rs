//! Authentication by bearer token, the principal that policies see, and identity files.

use std::fs;
use std::path::PathBuf;

use callgate::json::json;
use callgate_http::Authenticator;

use super::harness::{RunningGateway, Upstream};

/// The digest of `secret-of-ana`.
pub fn digest(token: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An identity file and the files that it refers to, in a temporary directory.
pub struct IdentityFiles(tempfile::TempDir);

impl IdentityFiles {
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

    pub fn identity(&self) -> Authenticator {
        Authenticator::from_file(&self.path()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Policies on the principal, role, tenant and team.
pub const RULES: &str = "policies:\n\
    - { id: who, match: { tool: send, where: { not: { path: $.context.principal, eq: ana } } }, deny: { code: not_ana } }\n\
    - { id: role, match: { tool: send, where: { path: '$.context.roles[*]', eq: writer, each: none } }, deny: { code: no_writer } }\n\
    - { id: tenant, match: { tool: send, where: { not: { path: $.context.tenant, eq: acme } } }, deny: { code: other_tenant } }\n\
    - { id: team, match: { tool: read, where: { not: { path: $.context.team, eq: red } } }, deny: { code: other_team } }";

async fn served(upstream: &Upstream) -> RunningGateway {
    let (ana, bob) = (digest("secret-of-ana"), digest("secret-of-bob"));
    let file = format!(
        "tokens:\n\
         - {{ sha256: {ana}, principal: ana, roles: [writer], tenant: acme, context: {{ team: red }} }}\n\
         - {{ sha256: {bob}, principal: bob, roles: [], tenant: acme }}\n"
    );
    let identity = IdentityFiles::new(&[("auth.yaml", &file)]).identity();
    RunningGateway::with(&upstream.url, RULES, |server| server.with_authenticator(identity)).await
}

#[tokio::test]
async fn requests_without_a_valid_token_are_rejected() {
    let upstream = Upstream::with_defaults().await;
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
            assert_eq!(served.send_without_body(verb, &headers).await.status, 401, "{verb}");
        }
    }
    assert!(upstream.requests().is_empty());
    let log = served.log.lock().unwrap().join("\n");
    assert!(log.contains("authentication failed") && !log.contains("secret-of"), "{log}");
    for scheme in ["Bearer", "bearer"] {
        let token = format!("{scheme} secret-of-ana");
        assert_eq!(served.call(&[("authorization", &token)], "echo", json!({})).await.status, 200);
    }
}

#[tokio::test]
async fn policies_see_the_authenticated_principal_not_client_claims() {
    let upstream = Upstream::with_defaults().await;
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
async fn session_is_accessible_only_to_its_caller() {
    let upstream = Upstream::with_defaults().await;
    let served = served(&upstream).await;
    let (ana, bob) = (("authorization", "Bearer secret-of-ana"), ("authorization", "Bearer secret-of-bob"));
    let session = served.initialize_session(&[ana]).await;
    let list = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
    let of = |who| [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25"), who];
    assert_eq!(served.post(&of(bob), list).await.status, 404);
    assert_eq!(served.send_without_body("GET", &of(bob)).await.status, 404);
    assert_eq!(served.send_without_body("DELETE", &of(bob)).await.status, 404);
    assert_eq!(served.post(&of(ana), list).await.status, 200);
}

#[tokio::test]
async fn labels_of_one_caller_do_not_affect_another() {
    let upstream = Upstream::with_defaults().await;
    let (ana, bob) = (digest("a"), digest("b"));
    let file = format!("tokens: [{{ sha256: {ana}, principal: ana }}, {{ sha256: {bob}, principal: bob }}]");
    let identity = IdentityFiles::new(&[("auth.yaml", &file)]).identity();
    let rules = "policies:\n\
        - { id: tainted, match: read, label: { add: [secret] } }\n\
        - { id: no-send, match: { tool: send, where: { path: '$.session.labels[*]', eq: secret } }, deny: {} }";
    let from = "header:x-conversation".parse().unwrap();
    let served = RunningGateway::with(&upstream.url, rules, |server| {
        server.with_authenticator(identity).with_session_name_source(from)
    })
    .await;
    let of = |token: &'static str| [("authorization", token), ("x-conversation", "same")];
    served.call(&of("Bearer a"), "read", json!({})).await;
    assert_eq!(served.call(&of("Bearer a"), "send", json!({})).await.code(), json!("denied"));
    assert_eq!(served.call(&of("Bearer b"), "send", json!({})).await.code(), json!(null));
}

#[tokio::test]
async fn public_listener_requires_authentication() {
    let upstream = Upstream::with_defaults().await;
    let log = std::sync::Arc::default();
    let gateway = std::sync::Arc::new(super::harness::gateway(&upstream.url, "policies: []", &log));
    let server = || callgate_mcp::HttpServer::new(std::sync::Arc::clone(&gateway));
    let (open, local) = ("0.0.0.0:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap());
    assert!(server().check_address(open).unwrap_err().contains("can be reached from other machines"));
    assert_eq!(server().check_address(local), Ok(()));
    let file = format!("tokens: [{{ sha256: {}, principal: ana }}]", digest("a"));
    let identity = IdentityFiles::new(&[("auth.yaml", &file)]).identity();
    assert_eq!(server().with_authenticator(identity).check_address(open), Ok(()));
}

#[test]
fn reports_errors_in_identity_files_with_their_position() {
    let cases = [
        ("tokens: [{ sha265: x, principal: a }]", "did you mean `sha256`?"),
        ("tokens: [{ principal: a }]", "`sha256` or `env` is missing"),
        ("tokens: [{ sha256: abc, principal: a }]", "this is not a SHA-256 digest"),
        ("tokens: [{ sha256: abc, env: X, principal: a }]", "only one of `sha256` or `env` is allowed"),
        ("tokens: [{ env: CALLGATE_TEST_UNSET, principal: a }]", "this environment variable is not set"),
        ("tokens: [{ env: PATH }]", "`principal` is missing"),
        (
            "tokens: [{ env: PATH, principal: a, context: { roles: [x] } }]",
            "`roles` is not allowed in `context`",
        ),
        ("tokens: [{ env: PATH, principal: a, context: x }]", "`context` must be a mapping"),
        ("callgate: 1", "no identities are configured"),
        ("jwt: { issuer: i, algorithms: RS256, pem: k }", "`audience` is missing"),
        ("jwt: { issuer: i, audience: a, algorithms: none, pem: k }", "`none`"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, pem: k }", "does not exist"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, pem: bad }", "this file can't be used"),
        ("jwt: { issuer: i, audience: a, algorithms: RS256, jwks: bad }", "this file can't be used"),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, jwks: none.json }",
            "this file has no signature key",
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
            "`issuer` is not allowed in `context`",
        ),
        (
            "jwt: { issuer: i, audience: a, algorithms: RS256, jwks: none.json, leeway: 30 }",
            "`leeway` must be a string",
        ),
    ];
    for (file, expected) in cases {
        let files =
            IdentityFiles::new(&[("auth.yaml", file), ("bad", "nonsense"), ("none.json", r#"{"keys":[]}"#)]);
        let said = match Authenticator::from_file(&files.path()) {
            Ok(_) => panic!("{file} is accepted"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected) && said.contains("auth.yaml"), "{file}\n{said}");
    }
}
