//! Events → one span `execute_tool` for each call, by the semantic conventions for GenAI and MCP, with events for decisions and
//! approvals, and a link from a resumed call to the span that requested its approval.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use callgate::call::{ApprovalDecision, TraceParent};
use callgate::json::json;
use callgate::{CallIdentity, EngineEvent, EngineEventKind, Outcome, OutcomeKind, ToolCallSpan};
use callgate_log::{Content, event_name};
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

use super::scope::scope;

/// The number of calls whose events are collected, and of requests that later calls link to, in one part of the conversations.
const MAX_CALLS: usize = 1_000;
/// The number of events of a span.
const MAX_EVENTS: usize = 32;
/// The longest attribute, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 8 << 10;
/// The longest part of a span's name that a model chooses, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// After how long a call without an outcome may be forgotten, because its future was dropped.
const STALE_AFTER: Duration = Duration::from_secs(3_600);

/// The name of a call, or of an approval request: its conversation and its id.
type Key = (String, String);

/// Collects the events of calls until they have an outcome, for a part of the conversations.
pub(super) struct ToolSpans {
    content: Content,
    open: HashMap<Key, OpenSpan>,
    /// The spans that requested approval, by request.
    requests: HashMap<Key, SpanContext>,
    ids: RandomIdGenerator,
}

/// A call without an outcome.
struct OpenSpan {
    context: SpanContext,
    parent: Option<SpanContext>,
    seen: SystemTime,
    events: Vec<Event>,
    links: Vec<Link>,
}

impl ToolSpans {
    pub(super) fn new(content: Content) -> Self {
        Self { content, open: HashMap::new(), requests: HashMap::new(), ids: RandomIdGenerator::default() }
    }

    /// Records an event. Returns the span that it belongs to, and that span if the event ends it.
    pub(super) fn record(&mut self, event: &EngineEvent<'_>) -> (Option<SpanContext>, Option<SpanData>) {
        let (Some(run), Some(call)) = (event.run, event.call) else { return (None, None) };
        // Candidate rules decide when the call has ended, and its span with it.
        if matches!(event.kind, EngineEventKind::CandidateDecided(_)) {
            return (None, None);
        }
        let key = (run.conversation.to_owned(), call.id.to_owned());
        let time = SystemTime::from(event.time);
        let mut span = match self.open.remove(&key) {
            Some(span) => span,
            None => self.open_span(&call, time),
        };
        let context = span.context.clone();
        match &event.kind {
            EngineEventKind::CallCompleted(completed) => {
                return (Some(context), Some(self.end(event, completed, span)));
            }
            EngineEventKind::ApprovalRequested(request) => {
                let request = (run.conversation.to_owned(), request.approval_id.clone());
                if self.requests.len() < MAX_CALLS {
                    self.requests.insert(request, context.clone());
                }
            }
            EngineEventKind::ApprovalDecided(ApprovalDecision { approval_id, .. }) => {
                let request = (run.conversation.to_owned(), approval_id.clone());
                if let Some(requested) = self.requests.remove(&request) {
                    span.links.push(Link::new(requested, vec![text("callgate.approval.id", approval_id)], 0));
                }
            }
            _ => {}
        }
        if span.events.len() < MAX_EVENTS
            && let Some(attributes) = event_attributes(&event.kind)
        {
            let name = format!("callgate.{}", event_name(&event.kind));
            span.events.push(Event::new(name, time, attributes, 0));
        }
        if self.open.len() >= MAX_CALLS {
            let is_recent = |seen: SystemTime| time.duration_since(seen).is_ok_and(|age| age < STALE_AFTER);
            self.open.retain(|_, span| is_recent(span.seen));
        }
        // Beyond that, the events of a call are in spans of their own.
        if self.open.len() < MAX_CALLS {
            self.open.insert(key, span);
        }
        (Some(context), None)
    }

    fn open_span(&self, call: &CallIdentity<'_>, seen: SystemTime) -> OpenSpan {
        let parent = call.trace_parent.and_then(TraceParent::parse);
        // The state belongs to the parent.
        let state = call.trace.and_then(|trace| trace.state.as_deref());
        let state = parent.and(state).and_then(|state| state.parse().ok()).unwrap_or_default();
        let parent = parent.map(|parent| span_context(&parent, true, TraceState::clone(&state)));
        let own = call.trace.and_then(|trace| TraceParent::parse(trace.span.as_deref()?));
        let context = match own {
            Some(own) => span_context(&own, false, state),
            None => {
                let trace_id = parent.as_ref().map_or_else(|| self.ids.new_trace_id(), SpanContext::trace_id);
                SpanContext::new(trace_id, self.ids.new_span_id(), TraceFlags::SAMPLED, false, state)
            }
        };
        OpenSpan { context, parent, seen, events: Vec::new(), links: Vec::new() }
    }

    fn end(&self, event: &EngineEvent<'_>, completed: &ToolCallSpan<'_>, span: OpenSpan) -> SpanData {
        let outcome = completed.outcome;
        let end_time = SystemTime::from(event.time);
        let start_time = end_time.checked_sub(Duration::from_micros(outcome.duration_us)).unwrap_or(end_time);
        let tool = event.call.map_or("", |call| call.tool);
        let mut events = SpanEvents::default();
        events.events = span.events;
        let mut links = SpanLinks::default();
        links.links = span.links;
        SpanData {
            span_context: span.context,
            parent_span_is_remote: span.parent.is_some(),
            parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| parent.span_id()),
            span_kind: SpanKind::Internal,
            name: format!("execute_tool {}", shortened(tool, MAX_NAME_BYTES)).into(),
            start_time,
            end_time,
            attributes: self.attributes(event, outcome),
            dropped_attributes_count: 0,
            events,
            links,
            status: match is_error(outcome.outcome) {
                // The message may quote arguments.
                true => Status::error(""),
                false => Status::Unset,
            },
            instrumentation_scope: scope(),
        }
    }

    fn attributes(&self, event: &EngineEvent<'_>, outcome: &Outcome) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("callgate.outcome", outcome.outcome.name()),
            text("callgate.reason.code", &outcome.reason.code),
            text("callgate.rules.revision", event.revision),
        ];
        if let Some(call) = &event.call {
            attributes.push(text("gen_ai.tool.name", call.tool));
            attributes.push(text("gen_ai.tool.call.id", call.id));
            if let Some(server) = call.server {
                attributes.push(KeyValue::new("mcp.method.name", "tools/call"));
                attributes.push(text("callgate.server", server));
            }
            if let Some(session) = call.trace.and_then(|trace| trace.mcp_session.as_deref()) {
                attributes.push(text("mcp.session.id", session));
            }
            if let Some(principal) = call.context.get("principal").and_then(|principal| principal.as_str()) {
                attributes.push(text("user.id", principal));
            }
        }
        if let Some(run) = &event.run {
            attributes.push(text("gen_ai.conversation.id", run.session.unwrap_or(run.conversation)));
        }
        if let Some(policy) = &outcome.reason.policy {
            attributes.push(text("callgate.reason.policy", policy));
        }
        if is_error(outcome.outcome) {
            attributes.push(text("error.type", &outcome.reason.code));
        }
        if self.content == Content::Redacted {
            attributes.push(text("gen_ai.tool.call.arguments", &outcome.input.to_string()));
            if let Some(output) = &outcome.output {
                attributes.push(text("gen_ai.tool.call.result", &output.to_string()));
            }
        }
        attributes
    }
}

fn span_context(span: &TraceParent, is_remote: bool, state: TraceState) -> SpanContext {
    let (trace_id, span_id) = (TraceId::from_bytes(span.trace_id), SpanId::from_bytes(span.span_id));
    SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, is_remote, state)
}

/// The attributes of an event within a span. `None` for what the span itself says.
fn event_attributes(kind: &EngineEventKind<'_>) -> Option<Vec<KeyValue>> {
    Some(match kind {
        EngineEventKind::CallDecided(decided) => {
            let mut attributes = vec![
                text("callgate.effect", json!(decided.effect).as_str().unwrap_or_default()),
                text("callgate.reason.code", &decided.reason.code),
            ];
            attributes
                .extend(decided.reason.policy.as_ref().map(|policy| text("callgate.reason.policy", policy)));
            attributes
        }
        EngineEventKind::CallStarted(_) => Vec::new(),
        EngineEventKind::ApprovalRequested(request) => vec![
            text("callgate.approval.id", &request.approval_id),
            list("callgate.approval.policies", &request.policies),
        ],
        EngineEventKind::ApprovalDecided(decision) => vec![
            text("callgate.approval.id", &decision.approval_id),
            KeyValue::new("callgate.approval.approved", decision.approved),
            text("callgate.approval.code", &decision.code),
            list("callgate.approval.by", &decision.by),
        ],
        EngineEventKind::LimitRefused(refused) => {
            vec![text("callgate.policy", refused.policy), KeyValue::new("callgate.shadow", refused.shadow)]
        }
        EngineEventKind::CacheHit(hit) => vec![text("callgate.policy", hit.policy)],
        EngineEventKind::HookFailed(failure) => {
            vec![text("callgate.hook", failure.hook), KeyValue::new("callgate.hook.point", failure.point)]
        }
        _ => return None,
    })
}

/// Whether the model did not get what it asked for. A pending approval is no error.
fn is_error(kind: OutcomeKind) -> bool {
    use OutcomeKind::{Answered, Cached, Executed, Recovered, Suspended};
    !matches!(kind, Executed | Cached | Answered | Recovered | Suspended)
}

fn text(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, shortened(value, MAX_ATTRIBUTE_BYTES).to_owned())
}

fn list(key: &'static str, values: &[String]) -> KeyValue {
    let values = values.iter().take(MAX_EVENTS).map(|value| StringValue::from(value.clone())).collect();
    KeyValue::new(key, Value::Array(Array::String(values)))
}

/// The first bytes of a string, at a boundary of characters.
fn shortened(value: &str, bytes: usize) -> &str {
    value.get(..value.floor_char_boundary(bytes)).unwrap_or(value)
}
