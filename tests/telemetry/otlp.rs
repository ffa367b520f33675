//! Traces and logs over OTLP, as a collector receives them: spans, their parents, events and links, log records, and what happens without
//! a collector.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use callgate::json::{Value, json};
use callgate::message::{Dialect, History, approval_response};
use callgate::{Engine, Keys, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};
use callgate_log::{Content, EventFormat, LogEntry};
use callgate_mcp::{Gateway, HttpSpec, ServerSpec, Transport};
use callgate_telemetry::OtlpExporter;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::fixtures;
use crate::gateway_http::harness::{RunningGateway, Upstream, stateless_request};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector: decodes what it receives.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    records: Arc<Mutex<Vec<LogRecord>>>,
}

impl Collector {
    /// Starts it; returns its URL.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let collector = collector.clone();
                std::thread::spawn(move || collector.serve(stream.unwrap()));
            }
        });
        url
    }

    fn serve(&self, mut stream: TcpStream) {
        while let Some((path, body)) = read_request(&mut stream) {
            match path.as_str() {
                "/v1/traces" => {
                    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                    self.spans.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
                }
                "/v1/logs" => {
                    let request = ExportLogsServiceRequest::decode(body.as_slice()).unwrap();
                    let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
                    self.records.lock().unwrap().extend(scopes.flat_map(|scope| scope.log_records));
                }
                other => panic!("a request for {other}"),
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }

    fn records(&self) -> Vec<LogRecord> {
        self.records.lock().unwrap().clone()
    }
}

/// The path and the body of the next request. `None` at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    Some((head.split(' ').nth(1).unwrap().to_owned(), body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(value: &Option<AnyValue>) -> Option<&str> {
    match value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| attribute.key == key).and_then(|attribute| text(&attribute.value))
}

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(call.input.clone().into())
    }
}

fn exporter(url: &str, content: Content) -> OtlpExporter {
    OtlpExporter::new(url, EventFormat::new(content, fixtures::keys())).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

const RULES: &str = "policies: [ { id: no-rm, match: rm, deny: { message: 'not {{ input.path }}' } }, { id: ask, match: pay, approval: {} } ]";

/// The spans and records of one call.
fn export_call(call: ToolCall, content: Content) -> (Vec<Span>, Vec<LogRecord>) {
    let collector = Collector::default();
    let exporter = exporter(&collector.start(), content);
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(exporter.clone()).build();
    runtime().block_on(engine.session().with_name("chat 7").execute(call, &Echo));
    exporter.close();
    assert_eq!(exporter.lost(), 0);
    (collector.spans(), collector.records())
}

#[test]
fn a_call_is_a_span_by_the_semantic_conventions() {
    let call = ToolCall::new("c1", "rm", json!({ "path": "/secret" }))
        .with_server("files")
        .with_context(json!({ "principal": "ann" }))
        .with_trace_parent(format!("00-{TRACE}-{PARENT}-01"));
    let (spans, records) = export_call(call, Content::Digests);
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((span.name.as_str(), hex(&span.trace_id).as_str()), ("execute_tool rm", TRACE));
    assert_eq!(hex(&span.parent_span_id), PARENT);
    assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    for (key, expected) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "rm"),
        ("gen_ai.tool.call.id", "c1"),
        ("gen_ai.conversation.id", "chat 7"),
        ("mcp.method.name", "tools/call"),
        ("callgate.outcome", "denied"),
        ("callgate.reason.policy", "no-rm"),
        ("error.type", "denied"),
        ("user.id", "ann"),
    ] {
        assert_eq!(attribute(&span.attributes, key), Some(expected), "{key}: {span:#?}");
    }
    let decided = span.events.iter().find(|event| event.name == "callgate.call_decided").unwrap();
    assert_eq!(attribute(&decided.attributes, "callgate.reason.policy"), Some("no-rm"));
    assert_eq!(attribute(&decided.attributes, "callgate.effect"), Some("deny"));
    // The records are the lines of the decision log, in the span of the call.
    let lines: Vec<LogEntry> =
        records.iter().map(|record| LogEntry::parse(text(&record.body).unwrap()).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line.event.as_str()).collect();
    assert_eq!(names, ["rules_loaded", "call_decided", "call_completed"]);
    assert_eq!(records[2].event_name, "call_completed");
    assert_eq!(records[2].span_id, span.span_id);
    let sent = format!("{spans:?}{records:?}");
    assert!(!sent.contains("/secret"), "arguments are sent without being asked for: {sent}");
}

#[test]
fn content_is_sent_as_redacted_only_if_asked_for() {
    let call = ToolCall::new("c1", "read", json!({ "path": "/public" }));
    let (spans, _) = export_call(call, Content::Redacted);
    let arguments = attribute(&spans[0].attributes, "gen_ai.tool.call.arguments");
    assert_eq!(arguments, Some(r#"{"path":"/public"}"#));
}

#[test]
fn a_resumed_call_links_to_the_span_that_requested_approval() {
    let collector = Collector::default();
    let exporter = exporter(&collector.start(), Content::Digests);
    let engine = Engine::builder(load_text(RULES).unwrap())
        .keys(Keys::random().unwrap())
        .observer(exporter.clone())
        .build();
    let mut history = History::read(
        Dialect::OpenaiChat,
        &json!([{ "role": "user", "content": "pay" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "pay", "arguments": "{}" } } ] }]),
    )
    .unwrap();
    runtime().block_on(async {
        let round = engine.session().with_name("chat").run_round(&mut history, &Echo).await.unwrap();
        assert!(round.is_suspended());
        let request = history.find_approval_requests()[0].clone();
        history.append_approval_response(approval_response(request.approval_id, true)).unwrap();
        let round = engine.session().with_name("chat").resume(&mut history, &Echo).await.unwrap();
        assert_eq!(round.outcomes[0].outcome, OutcomeKind::Executed);
    });
    exporter.close();
    let spans = collector.spans();
    let [asked, resumed] = spans.as_slice() else { panic!("{spans:#?}") };
    assert_eq!(attribute(&asked.attributes, "callgate.outcome"), Some("suspended"));
    assert_eq!(attribute(&resumed.attributes, "callgate.outcome"), Some("executed"));
    let [link] = resumed.links.as_slice() else { panic!("{resumed:#?}") };
    assert_eq!((&link.trace_id, &link.span_id), (&asked.trace_id, &asked.span_id));
    for (span, event) in [(asked, "callgate.approval_requested"), (resumed, "callgate.approval_answered")] {
        assert!(span.events.iter().any(|found| found.name == event), "{event}: {span:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_continues_the_trace_of_meta_or_else_of_the_header() {
    let upstream = Upstream::with_defaults().await;
    let collector = Collector::default();
    let exporter = exporter(&collector.start(), Content::Digests);
    let engine = Engine::builder(load_text("policies: []").unwrap()).observer(exporter.clone()).build();
    let reach = Transport::Http(HttpSpec { url: upstream.url.clone(), headers: Vec::new() });
    let spec = ServerSpec { name: "server".to_owned(), prefix: None, reach, rules: None };
    let served =
        RunningGateway::from_gateway(Gateway::new(engine, [spec]), Arc::default(), |server| server).await;
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
        let mut params = json!({ "name": "echo", "arguments": {} });
        params["_meta"] = json!({ "traceparent": meta });
        let body = stateless_request(id, "tools/call", params).to_string();
        let mut all =
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
        all.extend(headers.iter().map(|header| ("traceparent", *header)));
        let response = served.post(&all, &body).await;
        assert_eq!(response.status, 200, "{headers:?} {meta}: {response:?}");
    }
    tokio::task::spawn_blocking(move || exporter.close()).await.unwrap();
    let parents: Vec<Option<String>> = collector
        .spans()
        .iter()
        .map(|span| (!span.parent_span_id.is_empty()).then(|| hex(&span.parent_span_id)))
        .collect();
    let expected: Vec<Option<String>> = cases.iter().map(|(.., parent)| parent.map(str::to_owned)).collect();
    assert_eq!(parents, expected);
}

#[test]
fn without_a_collector_calls_run_and_what_is_lost_is_counted() {
    let refused = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let exporter = exporter(&refused, Content::Digests);
    let engine = Engine::builder(load_text("policies: []").unwrap()).observer(exporter.clone()).build();
    let outcome = runtime().block_on(engine.session().execute(ToolCall::new("c1", "read", json!({})), &Echo));
    assert_eq!(outcome.outcome, OutcomeKind::Executed);
    exporter.close();
    // One span; the rules, the decision, the start and the outcome as records.
    assert_eq!(exporter.lost(), 5);
}

#[test]
fn a_collector_that_never_answers_delays_no_call() {
    // It accepts connections, and reads nothing.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = exporter(&format!("http://{}", listener.local_addr().unwrap()), Content::Digests);
    let engine = Engine::builder(load_text("policies: []").unwrap()).observer(exporter.clone()).build();
    let mut session = engine.session();
    runtime().block_on(async {
        // More than the queue holds.
        for number in 0..3_000 {
            let call = ToolCall::new(format!("c{number}"), "read", json!({}));
            assert_eq!(session.execute(call, &Echo).await.outcome, OutcomeKind::Executed);
        }
    });
    assert!(exporter.lost() > 0);
}

#[test]
fn a_log_destination_is_a_collector() {
    let collector = Collector::default();
    let url = collector.start();
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.yaml");
    std::fs::write(&rules, "policies: [ { id: no-rm, match: rm, deny: {} } ]").unwrap();
    let run = |destination: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_callgate"))
            .args(["run", "--log", destination, "--policies"])
            .arg(&rules)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(br#"{"tool":"rm","input":{}}"#).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&format!("otlp:{url}")), (Some(0), String::new()));
    let names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["execute_tool rm"]);
    let (status, printed) = run("otlp:ftp://collector");
    assert_eq!(status, Some(2));
    assert!(printed.contains("is not the URL of a collector"), "{printed}");
}
