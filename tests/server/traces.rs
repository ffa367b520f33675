//! The trace that a request names: headers, and members of the line protocol.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callgate::json::json;
use callgate::{EngineEvent, EngineEventKind, Observer};

use super::harness::{RunningServer, call};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The `traceparent` and the `tracestate` of a call.
type NamedTrace = (Option<String>, Option<String>);

/// Records the trace of each decided call, by its id.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<BTreeMap<String, NamedTrace>>>);

impl Observer for Traces {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let (EngineEventKind::CallDecided(_), Some(call)) = (&event.kind, &event.call) {
            let state = call.trace.and_then(|trace| trace.state.clone());
            let trace = (call.trace_parent.map(str::to_owned), state);
            self.0.lock().unwrap().insert(call.id.to_owned(), trace);
        }
    }
}

#[tokio::test]
async fn calls_belong_to_the_trace_of_their_request() {
    let traces = Traces::default();
    let server = RunningServer::with_observer("policies: []", traces.clone()).await;
    let headers = [
        format!("traceparent: {PARENT}\r\ntracestate: vendor=1\r\n"),
        format!("traceparent: {PARENT}\r\n"),
        // Without a valid parent, a state belongs to nothing.
        "tracestate: vendor=1\r\n".to_owned(),
        format!("traceparent: {PARENT}x\r\ntracestate: vendor=1\r\n"),
        format!("traceparent: {PARENT}\r\ntracestate: {}\r\n", "a=1,".repeat(400)),
        format!("traceparent: {PARENT}\r\ntracestate: a=1\r\ntracestate: b=2\r\n"),
    ];
    for (number, headers) in headers.iter().enumerate() {
        let body = call(&format!("c{number}"), "look", json!({})).to_string();
        let headers = format!("content-type: application/json\r\n{headers}");
        let reply = server.send("POST", "/v1/calls", &headers, Some(&body)).await;
        assert_eq!(reply.body["status"], "execute", "{reply:?}");
        server.report(&reply, json!({ "output": null })).await;
    }
    let found = traces.0.lock().unwrap().clone();
    let states: Vec<Option<&str>> = found.values().map(|(_, state)| state.as_deref()).collect();
    assert_eq!(states, [Some("vendor=1"), None, None, None, None, None], "{found:?}");
    assert!(
        found.values().enumerate().all(|(number, (parent, _))| parent.is_some() == (number != 2)),
        "{found:?}"
    );
}
