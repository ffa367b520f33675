//! Servers that need the caller's own token: pass-through by audience, and token exchange (RFC 8693) against a real authorization server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use callgate::json::{Value, json};
use callgate_http::{IdentityFile, TokenExchangeSettings};
use callgate_mcp::{HttpSpec, Transport, UpstreamAuth};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{NO_RULES, ReceivedRequest, RunningGateway, Upstream, gateway_to, response};
use super::identity::IdentityFiles;
use crate::packages;

const GATEWAY: &str = "https://gateway.test/mcp";
const SERVER: &str = "https://up.test/mcp";
const SECRET: &str = "the secret: of+gateway";

/// A running Node program that prints its URL.
struct Program {
    url: String,
    child: Child,
}

impl Program {
    fn start(script: &str, arguments: &[&str]) -> Self {
        let folder = crate::fixtures::root().join("tests/upstream_auth");
        let home = packages::node("upstream-auth", &folder);
        for script in ["authorization_server.mjs", "mcp_server.mjs"] {
            // Modules find their packages beside them.
            let text = std::fs::read(folder.join(script)).unwrap();
            let copy = home.join(format!(".{script}-{}", std::process::id()));
            std::fs::write(&copy, text).unwrap();
            std::fs::rename(copy, home.join(script)).unwrap();
        }
        let mut child = Command::new("node")
            .arg(home.join(script))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "{script} did not start");
        Self { url: url.trim().to_owned(), child }
    }

    async fn get(&self, path: &str) -> String {
        let host = self.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(host).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: {host}\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).await.unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A user's token for an audience, as after a sign-in.
    async fn token(&self, user: &str, audience: &str) -> String {
        self.get(&format!("/user-token?sub={user}&aud={audience}")).await
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running gateway, and its identity file.
struct Served {
    gateway: RunningGateway,
    _identity: IdentityFiles,
}

impl std::ops::Deref for Served {
    type Target = RunningGateway;

    fn deref(&self) -> &RunningGateway {
        &self.gateway
    }
}

/// A gateway for users of an authorization server, in front of a server that needs their tokens.
async fn gateway(issuer: &str, server: &str, auth: UpstreamAuth) -> Served {
    let file = format!(
        "jwt: {{ issuer: '{issuer}', audience: ['{GATEWAY}', '{SERVER}'], algorithms: RS256, jwks_url: '{issuer}/jwks' }}\n"
    );
    let files = IdentityFiles::new(&[("auth.yaml", &file)]);
    let identity = IdentityFile::open(&files.path()).unwrap();
    let spec = HttpSpec { url: server.to_owned(), headers: Vec::new(), auth: Some(auth) };
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let gateway = gateway_to(Transport::Http(spec), NO_RULES, &log);
    let gateway =
        RunningGateway::from_gateway(gateway, log, |server| server.with_identity_file(identity)).await;
    Served { gateway, _identity: files }
}

fn exchange_at(endpoint: &str) -> UpstreamAuth {
    UpstreamAuth::TokenExchange(TokenExchangeSettings {
        endpoint: endpoint.to_owned(),
        client_id: "gateway".to_owned(),
        client_secret: SECRET.to_owned(),
        audience: Vec::new(),
        resource: vec![SERVER.to_owned()],
        scope: Some("read".to_owned()),
    })
}

/// Calls `whoami` in a session; returns the text of the result, or the message of the error.
async fn whoami(served: &RunningGateway, token: &str) -> Result<String, String> {
    let authorization = format!("Bearer {token}");
    let initialize = super::harness::initialize().to_string();
    let greeted = served.post(&[("authorization", &authorization)], &initialize).await;
    let Some(session) = greeted.header("mcp-session-id").map(str::to_owned) else { return Err(greeted.body) };
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    call(served, &headers).await
}

async fn call(served: &RunningGateway, headers: &[(&str, &str)]) -> Result<String, String> {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "whoami", "arguments": {} } });
    let answer = served.post(headers, &call.to_string()).await;
    let message = answer.events().pop().unwrap_or_else(|| answer.json());
    let text = message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    match message["result"]["isError"] == true || text.is_empty() {
        true => Err(message.to_string()),
        false => Ok(text),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_receives_exchanged_tokens_of_the_caller() {
    let issuer = Program::start("authorization_server.mjs", &[]);
    let server = Program::start("mcp_server.mjs", &[&issuer.url, SERVER]);
    let served = gateway(&issuer.url, &server.url, exchange_at(&format!("{}/token", issuer.url))).await;
    let (ana, bob) = (issuer.token("ana", GATEWAY).await, issuer.token("bob", GATEWAY).await);
    let authorization = format!("Bearer {ana}");
    let session = served.initialize_session(&[("authorization", &authorization)]).await;
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let first = call(&served, &headers).await.unwrap();
    assert!(first.starts_with("ana [read] "), "{first}");
    assert_eq!(call(&served, &headers).await.unwrap(), first, "the token is cached");
    assert_eq!(issuer.get("/exchanges").await, "1");
    let other = whoami(&served, &bob).await.unwrap();
    assert!(other.starts_with("bob [read] "), "{other}");
    assert_eq!(issuer.get("/exchanges").await, "2", "tokens are not shared between callers");
    // The authorization server refuses, and repeats the token in its description.
    let mallory = issuer.token("mallory", GATEWAY).await;
    let refused = whoami(&served, &mallory).await.unwrap_err();
    assert!(refused.contains("400 (invalid_target)"), "{refused}");
    let log = served.log.lock().unwrap().join("\n");
    for secret in [&ana, &bob, &mallory, SECRET] {
        let part = secret.rsplit('.').next().unwrap();
        assert!(!log.contains(part) && !refused.contains(part), "{log}\n{refused}");
    }
    // The server accepts no token of the gateway's own audience, so the caller's token did not reach it.
    let served =
        gateway(&issuer.url, &server.url, UpstreamAuth::PassThrough { audience: GATEWAY.to_owned() }).await;
    assert!(whoami(&served, &ana).await.unwrap_err().contains("401"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_passed_through_to_its_audience_only() {
    let issuer = Program::start("authorization_server.mjs", &[]);
    let server = Program::start("mcp_server.mjs", &[&issuer.url, SERVER]);
    let auth = UpstreamAuth::PassThrough { audience: SERVER.to_owned() };
    let served = gateway(&issuer.url, &server.url, auth.clone()).await;
    let ana = issuer.token("ana", SERVER).await;
    assert!(whoami(&served, &ana).await.unwrap().starts_with("ana "));
    // Nothing is sent to the server for a token of another audience, not even an anonymous request.
    let upstream = Upstream::with_defaults().await;
    let served = gateway(&issuer.url, &upstream.url, auth).await;
    for audience in [GATEWAY, "https://gateway.test/mcp,https://up.test/mcp", "https://up.test/mcp/"] {
        let token = issuer.token("ana", audience).await;
        let refused = whoami(&served, &token).await.unwrap_err();
        assert!(!refused.contains(&token), "{refused}");
    }
    let refused = whoami(&served, &issuer.token("ana", GATEWAY).await).await.unwrap_err();
    assert!(refused.contains("its audience is another one"), "{refused}");
    assert!(upstream.requests().is_empty());
}

/// A token endpoint that gives this response, and counts its requests.
async fn endpoint(status: u16, body: impl Fn(usize) -> String + Send + Sync + 'static) -> Upstream {
    let count = Mutex::new(0);
    Upstream::new(move |_: &ReceivedRequest| {
        let mut count = count.lock().unwrap();
        *count += 1;
        Some(response(status, "content-type: application/json\r\n", &body(*count)))
    })
    .await
}

fn issued(number: usize, seconds: u64) -> String {
    json!({ "access_token": format!("issued-{number}"), "token_type": "Bearer", "expires_in": seconds,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" })
    .to_string()
}

/// The authorization headers that a server received for calls.
fn received(upstream: &Upstream) -> Vec<String> {
    let calls = upstream.requests_for("tools/call").into_iter();
    calls.map(|call| call.header("authorization").unwrap_or("none").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_exchange_denies() {
    let issuer = Program::start("authorization_server.mjs", &[]);
    let ana = issuer.token("ana", GATEWAY).await;
    let upstream = Upstream::with_defaults().await;
    for (status, body) in [
        (500, String::new()),
        (302, String::new()),
        (200, "not json".to_owned()),
        (200, json!({ "token_type": "Bearer" }).to_string()),
        (200, json!({ "access_token": "a\r\nx-admin: yes", "token_type": "Bearer" }).to_string()),
        (200, json!({ "access_token": "a", "token_type": "DPoP" }).to_string()),
        (200, "x".repeat(1 << 20)),
    ] {
        let text = body.clone();
        let endpoint = endpoint(status, move |_| text.clone()).await;
        let served = gateway(&issuer.url, &upstream.url, exchange_at(&endpoint.url)).await;
        let refused = whoami(&served, &ana).await.unwrap_err();
        let log = || served.gateway.log.lock().unwrap().join("\n");
        assert!(refused.contains("the token exchange failed"), "{status} {body:.80}: {refused} {}", log());
    }
    let served = gateway(&issuer.url, &upstream.url, exchange_at("http://127.0.0.1:9/token")).await;
    assert!(whoami(&served, &ana).await.unwrap_err().contains("the token exchange failed"));
    assert!(upstream.requests().is_empty(), "nothing is sent without a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_share_an_exchange_and_rejected_tokens_are_forgotten() {
    let issuer = Program::start("authorization_server.mjs", &[]);
    let authorization = format!("Bearer {}", issuer.token("ana", GATEWAY).await);
    let tokens = endpoint(200, |number| issued(number, 300)).await;
    let upstream = Upstream::new(|got| {
        let is_refused =
            got.method() == "tools/call" && got.header("authorization") == Some("Bearer issued-1");
        is_refused.then(|| response(401, "", ""))
    })
    .await;
    let served = gateway(&issuer.url, &upstream.url, exchange_at(&tokens.url)).await;
    let headers = [("authorization", authorization.as_str())];
    let calls = (0..8).map(|_| served.call(&headers, "echo", json!({})));
    let refused = futures_join(calls.collect()).await;
    assert!(refused.iter().any(|answer| answer.contains("401")), "{refused:?}");
    assert!(tokens.requests().len() <= 2, "{}", tokens.requests().len());
    assert!(!served.call(&headers, "echo", json!({})).await.body.contains("isError"));
    assert_eq!(received(&upstream).last().map(String::as_str), Some("Bearer issued-2"));
}

/// Runs all calls; returns the bodies of the responses.
async fn futures_join(calls: Vec<impl Future<Output = super::harness::Response>>) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut pending: Vec<_> = calls.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        pending.retain_mut(|call| match call.as_mut().poll(context) {
            std::task::Poll::Ready(answer) => {
                bodies.push(answer.body);
                false
            }
            std::task::Poll::Pending => true,
        });
        if pending.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    bodies
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_sent_with_the_token_that_it_came_with() {
    let issuer = Program::start("authorization_server.mjs", &[]);
    let tokens = endpoint(200, |number| issued(number, 300)).await;
    let upstream = Upstream::with_defaults().await;
    let served = gateway(&issuer.url, &upstream.url, exchange_at(&tokens.url)).await;
    // Two tokens of one caller, who has one connection.
    for _ in 0..2 {
        let authorization = format!("Bearer {}", issuer.token("ana", GATEWAY).await);
        let headers = [("authorization", authorization.as_str())];
        for _ in 0..2 {
            served.call(&headers, "echo", json!({})).await;
        }
    }
    assert_eq!(
        received(&upstream),
        ["Bearer issued-1", "Bearer issued-1", "Bearer issued-2", "Bearer issued-2"]
    );
    // What clients send themselves does not reach it.
    assert!(
        upstream
            .requests()
            .iter()
            .all(|got| got.header("authorization").unwrap().starts_with("Bearer issued-"))
    );
    let form: Vec<Value> =
        tokens.requests().iter().map(|got| got.header("authorization").unwrap().into()).collect();
    assert_eq!(form[0], "Basic Z2F0ZXdheTp0aGUrc2VjcmV0JTNBK29mJTJCZ2F0ZXdheQ==");
}

#[test]
fn a_configuration_that_would_show_a_token_to_others_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gateway.yaml");
    let exchange = "token_exchange: { endpoint: 'https://login.test/token', client_id: g, client_secret: '${SECRET}', resource: 'https://up.test' }";
    let read = |server: &str| {
        std::fs::write(&file, format!("servers: [{{ name: a, {server} }}]\n")).unwrap();
        let environment = |name: &str| (name == "SECRET").then(|| "secret-of-the-gateway".to_owned());
        let read = callgate_mcp::Config::read(&file, environment);
        read.map_err(|error| callgate::diagnostic::render::text(&error.diagnostics, &error.sources, false))
    };
    let config = read(&format!("url: 'https://up.test/mcp', auth: {{ {exchange} }}")).unwrap();
    assert!(!format!("{config:?}").contains("secret-of-the-gateway"), "{config:?}");
    for (server, problem) in [
        (
            "url: 'http://up.test/mcp', auth: { pass_through: { audience: a } }".to_owned(),
            "tokens can't be sent",
        ),
        (format!("command: [server], auth: {{ {exchange} }}"), "can't be used with `command`"),
        (
            format!("url: 'https://up.test', auth: {{ {exchange}, pass_through: {{ audience: a }} }}"),
            "exactly one",
        ),
        ("url: 'https://up.test', auth: {}".to_owned(), "exactly one"),
        (
            format!(
                "url: 'https://up.test', auth: {{ {} }}",
                exchange.replace("https://login", "http://login")
            ),
            "must begin with `https://`",
        ),
        (
            format!(
                "url: 'https://up.test', auth: {{ {} }}",
                exchange.replace(", resource: 'https://up.test'", "")
            ),
            "any server",
        ),
        (
            format!("url: 'https://up.test', auth: {{ {} }}", exchange.replace("SECRET", "MISSING")),
            "`MISSING` is not set",
        ),
        (
            format!("url: 'https://up.test', headers: {{ authorization: x }}, auth: {{ {exchange} }}"),
            "set by `headers` and by `auth`",
        ),
    ] {
        let found = read(&server).unwrap_err();
        assert!(found.contains(problem), "{server}: {found}");
    }
}

#[test]
fn a_gateway_without_authenticated_clients_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gateway.yaml");
    std::fs::write(
        &file,
        "servers: [{ name: a, url: 'https://up.test/mcp', auth: { pass_through: { audience: a } } }]\n",
    )
    .unwrap();
    for listen in [&[][..], &["--listen", "127.0.0.1:0"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
        let (printed, done) = packages::run(command.arg("proxy").arg("--config").arg(&file).args(listen), "");
        assert!(!done && printed.contains("needs the tokens of callers"), "{printed}");
    }
    let rules = directory.path().join("rules.yaml");
    std::fs::write(&rules, NO_RULES).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgate"));
    let serve = command
        .args(["serve", "--policies"])
        .arg(&rules)
        .args(["--listen", "127.0.0.1:0", "--servers"])
        .arg(&file);
    let (printed, done) = packages::run(serve, "");
    assert!(!done && printed.contains("which only `callgate proxy` has"), "{printed}");
}
