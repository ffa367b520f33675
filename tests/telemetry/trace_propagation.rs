//! Traces across a gateway: the span of a client, the one of the call, and what the server receives.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use callgate::Engine;
use callgate::engine::load_text;
use callgate::json::{Value, json};
use callgate_log::{Content, EventFormat};
use callgate_mcp::{Gateway, HttpSpec, ServerSpec, Transport};
use callgate_telemetry::OtlpExporter;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::collector::{Collector, attribute, hex};
use crate::fixtures;
use crate::gateway_http::harness::{RunningGateway, Upstream, initialize, stateless_request};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A gateway whose spans a collector gets.
struct TracedGateway {
    upstream: Upstream,
    collector: Collector,
    exporter: OtlpExporter,
    served: RunningGateway,
}

impl TracedGateway {
    async fn new(adapt: impl FnOnce(Gateway) -> Gateway) -> Self {
        let upstream = Upstream::with_defaults().await;
        let collector = Collector::default();
        let format = EventFormat::new(Content::Digests, fixtures::keys());
        let exporter = OtlpExporter::new(&collector.start(), format).unwrap();
        let engine = Engine::builder(load_text("policies: []").unwrap()).observer(exporter.clone()).build();
        let reach = Transport::Http(HttpSpec { url: upstream.url.clone(), headers: Vec::new(), auth: None });
        let spec = ServerSpec::new("server", reach);
        let gateway = adapt(Gateway::new(engine, [spec]));
        let served = RunningGateway::from_gateway(gateway, Arc::default(), |server| server).await;
        Self { upstream, collector, exporter, served }
    }

    /// Calls a tool with these headers and this `_meta`, without a session.
    async fn call(&self, id: i64, headers: &[(&str, &str)], meta: Value) {
        let params = json!({ "name": "echo", "arguments": {}, "_meta": meta });
        let body = stateless_request(id, "tools/call", params).to_string();
        let mut all =
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
        all.extend(headers);
        let response = self.served.post(&all, &body).await;
        assert_eq!(response.status, 200, "{headers:?}: {response:?}");
    }

    /// The spans, in the order of the calls.
    async fn spans(&self) -> Vec<Span> {
        let exporter = self.exporter.clone();
        tokio::task::spawn_blocking(move || exporter.close()).await.unwrap();
        self.collector.spans()
    }

    /// `_meta` of each call, as the server received it.
    fn received(&self) -> Vec<Value> {
        let requests = self.upstream.requests_for("tools/call");
        requests.into_iter().map(|got| got.body["params"]["_meta"].clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_continues_the_trace_of_meta_or_else_of_the_header() {
    let gateway = TracedGateway::new(|gateway| gateway).await;
    let (of_header, of_meta) = ("1111111111111111", "2222222222222222");
    let header = format!("00-{TRACE}-{of_header}-01");
    let meta = json!(format!("00-{TRACE}-{of_meta}-00"));
    let huge = "0".repeat(1 << 16);
    let cases: Vec<(Vec<&str>, Value, Option<&str>)> = vec![
        (vec![&header], Value::Null, Some(of_header)),
        (vec![&header], meta.clone(), Some(of_meta)),
        (vec![], meta, Some(of_meta)),
        (vec![], Value::Null, None),
        (vec!["00-zz"], Value::Null, None),
        (vec![&header, &header], Value::Null, None),
        (vec![], json!(huge), None),
        (vec![], json!({ "nested": [1] }), None),
        (vec![], json!("00-\u{0}\u{ffff}"), None),
    ];
    for (id, (headers, meta, _)) in (1..).zip(&cases) {
        let headers: Vec<_> = headers.iter().map(|header| ("traceparent", *header)).collect();
        gateway.call(id, &headers, json!({ "traceparent": meta })).await;
    }
    let parents: Vec<Option<String>> = gateway
        .spans()
        .await
        .iter()
        .map(|span| (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)))
        .collect();
    let expected: Vec<Option<String>> = cases.iter().map(|(.., parent)| parent.map(str::to_owned)).collect();
    assert_eq!(parents, expected);
    // Nobody asked the gateway to name its spans: servers receive what clients sent.
    let received: Vec<Value> = gateway.received().iter().map(|meta| meta["traceparent"].clone()).collect();
    assert_eq!(received, cases.into_iter().map(|(_, meta, _)| meta).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_continues_the_span_of_its_call() {
    let gateway = TracedGateway::new(Gateway::with_trace_propagation).await;
    let parent = format!("00-{TRACE}-1111111111111111-00");
    let state = "vendor=a,other=b";
    gateway.call(1, &[], json!({ "traceparent": parent, "tracestate": state, "example.org/own": 7 })).await;
    gateway.call(2, &[("traceparent", &parent), ("tracestate", state)], json!({})).await;
    // A state without its parent, and a parent that is none, belong to no trace.
    gateway.call(3, &[], json!({ "tracestate": state })).await;
    gateway.call(4, &[("tracestate", state)], json!({ "traceparent": "00-zz", "tracestate": state })).await;
    // A state of the header does not belong to the parent in `_meta`.
    gateway
        .call(5, &[("traceparent", &parent), ("tracestate", state)], json!({ "traceparent": parent }))
        .await;
    let spans = gateway.spans().await;
    let received = gateway.received();
    assert_eq!((spans.len(), received.len()), (5, 5));
    for (span, meta) in spans.iter().zip(&received) {
        let own = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
        assert_eq!(meta["traceparent"].as_str(), Some(own.as_str()), "{span:?}");
        assert!(meta["io.modelcontextprotocol/protocolVersion"].is_string(), "{meta}");
    }
    let states: Vec<Option<&str>> = received.iter().map(|meta| meta["tracestate"].as_str()).collect();
    assert_eq!(states, [Some(state), Some(state), None, None, None]);
    assert_eq!(
        spans.iter().map(|span| span.trace_state.as_str()).collect::<Vec<_>>(),
        [state, state, "", "", ""]
    );
    let traces: Vec<bool> = spans.iter().map(|span| hex(&span.trace_id) == TRACE).collect();
    assert_eq!(traces, [true, true, false, false, true]);
    assert_eq!(received[0]["example.org/own"], json!(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_of_a_call_is_recognizable_and_its_id_secret() {
    let gateway = TracedGateway::new(|gateway| gateway).await;
    let sessions =
        [gateway.served.initialize_session(&[]).await, gateway.served.initialize_session(&[]).await];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;
    for session in [&sessions[0], &sessions[1], &sessions[0]] {
        let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
        assert_eq!(gateway.served.post(&headers, call).await.status, 200);
    }
    gateway.call(9, &[("mcp-session-id", "chosen")], json!({})).await;
    let spans = gateway.spans().await;
    let names: Vec<Option<&str>> =
        spans.iter().map(|span| attribute(&span.attributes, "mcp.session.id")).collect();
    assert!(names[0].is_some_and(|name| name.len() == 32), "{names:?}");
    assert_eq!((names[0], names[3]), (names[2], None), "a request without a session has none");
    assert_ne!(names[0], names[1]);
    let sent = format!("{spans:?}{:?}", gateway.collector.records());
    assert!(
        sessions.iter().all(|session| !sent.contains(session.as_str())),
        "whoever has the id can use the session"
    );
}

/// A server that answers a call with its `_meta`.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "0"}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": message.get("params", {}).get("_meta", {}).get("traceparent", "none")}]},
    }.get(message["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// The span that the server of a gateway receives, with this option.
fn span_told_by_proxy(option: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server.py"), SERVER).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
        .arg("proxy")
        .args(option)
        .args(["--", "python3", "server.py"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        callgate::json::parse(&line).unwrap()
    };
    ask(initialize());
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": {} } });
    let told = ask(call)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    drop(input);
    assert!(child.wait().unwrap().success());
    told
}

#[test]
fn the_gateway_names_its_spans_to_servers_if_a_collector_gets_them() {
    let collector = Collector::default();
    let told = span_told_by_proxy(&["--log", &format!("otlp:{}", collector.start())]);
    let [span] = &collector.spans()[..] else { panic!("{:?}", collector.spans()) };
    assert_eq!(told, format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)));
    assert!(collector.metric("callgate_calls").data.is_some(), "its metrics are sent, too");
    assert_eq!(span_told_by_proxy(&[]), "none");
}
