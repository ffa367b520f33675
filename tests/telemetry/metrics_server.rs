//! The metrics of a running gateway: who can read them, and when it is ready.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use callgate::Engine;
use callgate::host::{Account, CombinedStore, StoreFuture};
use callgate::host::{ConditionalWrite, Record, RecordKey, RecordPage, RecordStore, StateStore, StoreError};
use callgate::json::json;
use callgate::load_text;
use callgate::state::MemoryStore;
use callgate_http::{BearerSecret, HealthProbe, MetricsServer};
use callgate_mcp::{Gateway, HttpSpec, ServerSpec, Transport};
use callgate_telemetry::{CONTENT_TYPE, Metrics};
use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::value;
use crate::gateway_http::harness::{RunningGateway, Upstream, response};

const TOKEN: &str = "0123456789abcdef-token";

/// A gateway with metrics.
pub struct MonitoredGateway {
    pub gateway: RunningGateway,
    pub metrics: Metrics,
    pub metrics_address: String,
}

impl MonitoredGateway {
    pub async fn new(url: &str, store: Arc<dyn StateStore>, secret: Option<BearerSecret>) -> Self {
        let metrics = Metrics::new();
        let rules = load_text("policies: [ { id: no-send, match: send, deny: {} } ]").unwrap();
        let engine = Engine::builder(rules).observer(metrics.clone()).build();
        let reach = Transport::Http(HttpSpec { url: url.to_owned(), headers: Vec::new(), auth: None });
        let spec = ServerSpec::new("server", reach);
        let listed = metrics.clone();
        let gateway = Gateway::new(engine, [spec]).with_tools_listener(move |server, tools| {
            listed.add_tools(server, tools.iter().map(|tool| tool.name.as_str()));
        });
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut probe = None;
        let gateway = RunningGateway::from_gateway_with(gateway, log, |gateway, server| {
            let health = HealthProbe::new(store, {
                let gateway = Arc::clone(gateway);
                move || gateway.servers_up().into_iter().map(|(_, is_up)| is_up).collect()
            });
            probe = Some(health.clone());
            server.with_health_probe(health)
        })
        .await;
        let source = metrics.clone();
        let mut server =
            MetricsServer::new(move || source.render(Timestamp::now()), CONTENT_TYPE, probe.unwrap());
        if let Some(secret) = secret {
            server = server.with_secret(secret);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let metrics_address = listener.local_addr().unwrap().to_string();
        tokio::spawn(server.serve(listener));
        Self { gateway, metrics, metrics_address }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        get(&self.metrics_address, path, headers).await
    }
}

/// Sends a GET request; `headers` replace the default `Host`.
pub async fn get(address: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut all = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n");
    if headers.iter().all(|(name, _)| *name != "host") {
        all += &format!("host: {address}\r\n");
    }
    for (name, value) in headers {
        all += &format!("{name}: {value}\r\n");
    }
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all((all + "\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

pub fn memory() -> Arc<dyn StateStore> {
    Arc::new(MemoryStore::default())
}

#[tokio::test]
async fn calls_of_a_gateway_are_in_its_metrics() {
    let upstream = Upstream::with_defaults().await;
    let served = MonitoredGateway::new(&upstream.url, memory(), None).await;
    for tool in ["echo", "send", "invented"] {
        served.gateway.call(&[], tool, json!({})).await;
    }
    let (status, text) = served.get("/metrics", &[]).await;
    assert_eq!(status, 200);
    for (tool, outcome) in [("echo", "executed"), ("send", "denied")] {
        let series = format!(r#"callgate_calls_total{{server="server",tool="{tool}",outcome="{outcome}"}}"#);
        assert_eq!(value(&text, &series), Some(1.0), "{series}\n{text}");
    }
}

#[tokio::test]
async fn web_pages_and_rebound_names_cannot_read_metrics() {
    let upstream = Upstream::with_defaults().await;
    let served = MonitoredGateway::new(&upstream.url, memory(), None).await;
    for headers in [
        vec![("host", "rebound.example.com")],
        vec![("host", "")],
        vec![("origin", "https://page.example.com")],
        vec![("origin", "null")],
        vec![("host", "localhost"), ("host", "rebound.example.com")],
    ] {
        for path in ["/metrics", "/healthz", "/readyz"] {
            let (status, text) = served.get(path, &headers).await;
            assert!(matches!(status, 400 | 403), "{path} {headers:?}: {status}");
            assert!(!text.contains("callgate_"), "{path} {headers:?}");
        }
    }
}

#[tokio::test]
async fn a_token_protects_the_metrics_and_leaves_probes_open() {
    let upstream = Upstream::with_defaults().await;
    let secret = BearerSecret::new(&format!("{TOKEN}\n")).unwrap();
    let served = MonitoredGateway::new(&upstream.url, memory(), Some(secret)).await;
    let right = format!("Bearer {TOKEN}");
    assert_eq!(served.get("/metrics", &[("authorization", &right)]).await.0, 200);
    let prefix = format!("Bearer {}", TOKEN.strip_suffix("n").unwrap());
    let basic = format!("Basic {TOKEN}");
    for wrong in [
        vec![],
        vec![("authorization", prefix.as_str())],
        vec![("authorization", "Bearer ")],
        vec![("authorization", TOKEN)],
        vec![("authorization", basic.as_str())],
        vec![("authorization", right.as_str()), ("authorization", right.as_str())],
    ] {
        let (status, text) = served.get("/metrics", &wrong).await;
        assert_eq!(status, 401, "{wrong:?}");
        assert!(!text.contains("callgate_"), "{wrong:?}");
    }
    assert_eq!(served.get("/healthz", &[]).await, (200, "ok\n".to_owned()));
    assert_eq!(served.get("/readyz", &[]).await, (200, "ready\n".to_owned()));
}

#[test]
fn a_short_token_is_rejected() {
    assert!(BearerSecret::new("secret\n").unwrap_err().contains("shorter than 16"));
}

#[tokio::test]
async fn clients_of_the_gateway_reach_probes_and_no_metrics() {
    let upstream = Upstream::with_defaults().await;
    let served = MonitoredGateway::new(&upstream.url, memory(), None).await;
    let address = &served.gateway.address;
    assert_eq!(get(address, "/metrics", &[]).await.0, 404);
    assert_eq!(get(address, "/healthz", &[]).await, (200, "ok\n".to_owned()));
    assert_eq!(get(address, "/readyz", &[]).await, (200, "ready\n".to_owned()));
    assert_eq!(served.get("/mcp", &[]).await.0, 404);
}

#[tokio::test]
async fn a_gateway_is_not_ready_while_its_only_server_fails() {
    let upstream = Upstream::new(|got| (got.method() == "tools/call").then(|| response(503, "", ""))).await;
    let served = MonitoredGateway::new(&upstream.url, memory(), None).await;
    assert_eq!(served.get("/readyz", &[]).await.0, 200);
    served.gateway.call(&[], "echo", json!({})).await;
    assert_eq!(served.get("/readyz", &[]).await, (503, "not ready: servers\n".to_owned()));
    // It answers, if only with a list.
    let list = crate::gateway_http::harness::stateless_request(2, "tools/list", json!({}));
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    served.gateway.post(&headers, &list.to_string()).await;
    assert_eq!(served.get("/readyz", &[]).await.0, 200);
}

/// A store whose records can't be read.
struct BrokenRecords;

fn broken<'a, T: Send + 'a>() -> StoreFuture<'a, T> {
    Box::pin(async { Err(StoreError::Unavailable("down: host db.internal".to_owned())) })
}

impl RecordStore for BrokenRecords {
    fn record<'a>(&'a self, _: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        broken()
    }

    fn write_record<'a>(&'a self, _: Timestamp, _: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        broken()
    }

    fn records<'a>(&'a self, _: &'a str, _: Option<&'a str>, _: usize) -> StoreFuture<'a, RecordPage> {
        broken()
    }

    fn has_lost_records<'a>(&'a self, _: &'a Account) -> StoreFuture<'a, bool> {
        broken()
    }
}

#[tokio::test]
async fn a_gateway_is_not_ready_without_its_store_and_names_no_cause() {
    let upstream = Upstream::with_defaults().await;
    let store = Arc::new(CombinedStore::new(memory()).with_records(Arc::new(BrokenRecords)));
    let served = MonitoredGateway::new(&upstream.url, store, None).await;
    assert_eq!(served.get("/readyz", &[]).await, (503, "not ready: store\n".to_owned()));
    assert_eq!(served.get("/healthz", &[]).await.0, 200);
}

#[tokio::test]
async fn the_command_line_serves_metrics_of_a_gateway_over_stdio() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .args(["proxy", "--metrics", "0", "--upstream", "http://127.0.0.1:9/mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_once("http://").unwrap().1.trim().trim_end_matches("/metrics").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let (status, text) = get(&address, "/metrics", &[]).await;
    assert_eq!(status, 200);
    assert_eq!(value(&text, r#"callgate_rules_reload_accepted{bundle="gateway"}"#), Some(1.0), "{text}");
    assert!(text.contains("callgate_upstream_up{"), "{text}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn metrics_for_other_machines_need_a_token() {
    let output = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .args(["proxy", "--metrics", "0.0.0.0:0", "--upstream", "http://127.0.0.1:9/mcp"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed.contains("can be read without a token"), "{printed}");
}
