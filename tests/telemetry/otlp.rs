//! Traces, metrics and logs over OTLP, as a collector receives them: spans, their parents, events and links, log records, series, and what
//! happens without a collector.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use callgate::json::json;
use callgate::message::{Dialect, History, approval_response};
use callgate::{Engine, Keys, OutcomeKind, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text};
use callgate_log::{Content, EventFormat, LogEntry};
use callgate_telemetry::{Metrics, OtlpExporter};
use jiff::Timestamp;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;

use super::collector::{Collector, attribute, hex, text};
use crate::fixtures;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

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

#[test]
fn metrics_are_sent_with_the_names_and_labels_that_prometheus_reads() {
    let collector = Collector::default();
    let exporter = exporter(&collector.start(), Content::Digests);
    let metrics = Metrics::new();
    metrics.add_tools("", ["rm"]);
    exporter.send_metrics({
        let metrics = metrics.clone();
        move || metrics.render(Timestamp::now())
    });
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(metrics).build();
    let mut session = engine.session();
    runtime().block_on(async {
        for id in ["c1", "c2"] {
            session.execute(ToolCall::new(id, "rm", json!({ "path": "/secret" })), &Echo).await;
        }
    });
    exporter.close();
    let calls = collector.metric("callgate_calls");
    let Some(metric::Data::Sum(sum)) = calls.data else { panic!("{calls:?}") };
    let [point] = &sum.data_points[..] else { panic!("{sum:?}") };
    assert_eq!(point.value, Some(number_data_point::Value::AsDouble(2.0)));
    assert_eq!(attribute(&point.attributes, "outcome"), Some("denied"));
    assert!(sum.is_monotonic && point.start_time_unix_nano < point.time_unix_nano);
    let duration = collector.metric("callgate_decision_duration_seconds");
    let Some(metric::Data::Histogram(histogram)) = duration.data else { panic!("{duration:?}") };
    assert_eq!(histogram.data_points[0].count, 2);
}

#[test]
fn a_trace_state_is_kept_with_a_valid_parent_only() {
    let parent = format!("00-{TRACE}-{PARENT}-01");
    for (parent, state, expected) in [
        (Some(parent.clone()), "a=1,b@c=2", "a=1,b@c=2"),
        (Some(parent.clone()), "no list of members", ""),
        (Some("00-zz".to_owned()), "a=1", ""),
        (None, "a=1", ""),
    ] {
        let mut call = ToolCall::new("c1", "read", json!({}));
        call.trace_parent = parent;
        call.trace.get_or_insert_default().state = Some(state.to_owned());
        let (spans, _) = export_call(call, Content::Digests);
        assert_eq!(spans[0].trace_state, expected, "{state}");
    }
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
    // Nothing is sent, and closing it ends nevertheless.
    exporter.close();
    assert_eq!(exporter.lost(), 1 + 4 * 3_000);
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
    assert!(collector.metric("callgate_calls").data.is_some());
    let names: Vec<String> = collector.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["execute_tool rm"]);
    let (status, printed) = run("otlp:ftp://collector");
    assert_eq!(status, Some(2));
    assert!(printed.contains("is not the URL of a collector"), "{printed}");
}
