//! The approvals page: its files, signing in, and what protects its cookie.

use callgate::json::json;

use super::harness::{Reply, RunningServer, call};

const RULES: &str = "policies: [ { id: ask, match: pay, approval: { message: 'Pay?', expires: 1h } } ]";
const PAGE: &str = "content-type: application/json\r\nx-callgate-page: 1\r\n";

async fn sign_in(server: &RunningServer) -> String {
    let body = json!({ "token": server.token }).to_string();
    let reply = server.send("POST", "/v1/browser-session", PAGE, Some(&body)).await;
    assert_eq!(reply.status, 204, "{reply:?}");
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&server.token), "the token is not stored in the browser");
    cookie.split(';').next().unwrap().to_owned()
}

async fn list(server: &RunningServer, cookie: &str) -> Reply {
    server.send("GET", "/v1/approvals", &format!("cookie: {cookie}\r\n"), None).await
}

#[tokio::test]
async fn signs_in_and_out() {
    let server = RunningServer::new(RULES).await;
    let cookie = sign_in(&server).await;
    assert_eq!(list(&server, &cookie).await.status, 200);
    let out =
        server.send("DELETE", "/v1/browser-session", &format!("{PAGE}cookie: {cookie}\r\n"), None).await;
    assert_eq!(out.status, 204);
    assert_eq!(list(&server, &cookie).await.status, 403);
}

#[tokio::test]
async fn an_invalid_token_does_not_sign_in() {
    let server = RunningServer::new(RULES).await;
    let body = json!({ "token": "guess" }).to_string();
    assert_eq!(server.send("POST", "/v1/browser-session", PAGE, Some(&body)).await.status, 401);
    for cookie in ["callgate_session=guess", "callgate_session=", "callgate_session=a; callgate_session=b"] {
        assert_eq!(list(&server, cookie).await.status, 403, "{cookie}");
    }
}

#[tokio::test]
async fn nobody_sends_long_bodies_before_signing_in() {
    let server = RunningServer::new(RULES).await;
    let body = json!({ "token": "x".repeat(40_000) }).to_string();
    let reply = server.send("POST", "/v1/browser-session", PAGE, Some(&body)).await;
    assert_eq!((reply.status, &reply.body["code"]), (413, &json!("too_large")));
}

#[tokio::test]
async fn a_cookie_alone_answers_nothing() {
    let server = RunningServer::new(RULES).await;
    let cookie = sign_in(&server).await;
    server.post("/v1/calls", &call("c1", "pay", json!({}))).await;
    let pending = server.pending().await;
    let path = format!("/v1/approvals/{}/answers", pending[0]["key"].as_str().unwrap());
    let body = json!({ "decision": "approve", "digest": pending[0]["digest"] }).to_string();
    let json = "content-type: application/json\r\n";
    // Cross-site request forgery, also from another port of this machine, which is the same site.
    for headers in [
        format!("{json}cookie: {cookie}\r\n"),
        format!("{json}x-callgate-page: 1\r\norigin: http://localhost:3000\r\ncookie: {cookie}\r\n"),
    ] {
        let reply = server.send("POST", &path, &headers, Some(&body)).await;
        assert_eq!((reply.status, &reply.body["code"]), (403, &json!("not_from_page")), "{reply:?}");
    }
    let own = format!("{PAGE}origin: http://{}\r\ncookie: {cookie}\r\n", server.address);
    assert_eq!(server.send("POST", &path, &own, Some(&body)).await.status, 200);
}

#[tokio::test]
async fn files_of_the_page_allow_no_code_from_elsewhere() {
    let server = RunningServer::new(RULES).await;
    let page = server.send("GET", "/", "", None).await;
    let policy = page.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let html = page.body.as_str().unwrap();
    assert!(!html.contains("http") && !html.contains("style=") && !html.contains("onclick"), "{html}");
    for path in html.split('"').filter(|part| part.starts_with("/assets/")) {
        let file = server.send("GET", path, "", None).await;
        assert_eq!(file.status, 200, "{path}");
        let text = file.body.as_str().unwrap_or_default();
        assert!(!text.contains("innerHTML") && !text.contains("://"), "{path}");
    }
    assert_eq!(server.send("GET", "/assets/../Cargo.toml", "", None).await.status, 404);
}
