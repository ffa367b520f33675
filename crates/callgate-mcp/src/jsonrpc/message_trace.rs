//! The trace of a message (W3C Trace Context): `_meta`, or else the HTTP request, → the trace of its call; and the call's span → `_meta`.

use callgate::call::ToolCall;
use callgate::json::{Map, Value};

use super::JsonRpcMessage;

/// The name of a span, in `_meta` and as a header.
pub(crate) const TRACE_PARENT: &str = "traceparent";
/// The name of what tracing systems add to it.
pub(crate) const TRACE_STATE: &str = "tracestate";

/// The trace of the HTTP request that a message arrived in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageTrace {
    /// Its `traceparent`.
    pub(crate) parent: Option<String>,
    /// Its `tracestate`.
    pub(crate) state: Option<String>,
    /// The name of its MCP session in traces.
    pub(crate) mcp_session: Option<String>,
}

impl JsonRpcMessage {
    /// Sets the trace of the HTTP request that it arrived in.
    pub(crate) fn with_trace(self, trace: MessageTrace) -> Self {
        Self { trace: Some(Box::new(trace)), ..self }
    }

    /// Adds the message's trace to its call: the one in `_meta`, or else that of the HTTP request.
    pub(crate) fn set_trace_of(&self, call: &mut ToolCall) {
        let none = MessageTrace::default();
        let outer = self.trace.as_deref().unwrap_or(&none);
        let text = |name: &str| self.meta(name).and_then(Value::as_str);
        // A state belongs to the parent beside it.
        let (parent, state) = match text(TRACE_PARENT) {
            Some(parent) => (Some(parent), text(TRACE_STATE)),
            None => (outer.parent.as_deref(), outer.state.as_deref()),
        };
        call.set_request_trace(parent, state);
        if let Some(session) = &outer.mcp_session {
            call.trace.get_or_insert_default().mcp_session = Some(session.clone());
        }
    }

    /// Names the call's own span in `_meta`, if it has one, so that the spans of the server are its children.
    pub(crate) fn set_trace_from(&mut self, call: &ToolCall) {
        let Some(trace) = call.trace.as_deref() else { return };
        let Some(span) = &trace.span else { return };
        let mut meta = match self.param("_meta") {
            Some(Value::Object(meta)) => meta.clone(),
            Some(_) => return,
            None => Map::new(),
        };
        meta.insert(TRACE_PARENT.to_owned(), span.as_str().into());
        match &trace.state {
            Some(state) => meta.insert(TRACE_STATE.to_owned(), state.as_str().into()),
            None => meta.remove(TRACE_STATE),
        };
        self.set_param("_meta", Value::Object(meta));
    }
}
