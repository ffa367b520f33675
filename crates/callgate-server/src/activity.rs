//! What happened lately: an observer of the engine that keeps the last completed calls, and publishes events to open streams.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate::approval::LedgerKey;
use callgate::json::{Map, Value, json};
use callgate::{EngineEvent, EngineEventKind, Observer};
use tokio::sync::{Notify, broadcast};

use crate::approval_list::ApprovalList;
use crate::session_name::shown_name;

/// The number of entries that are kept.
const MAX_ENTRIES: usize = 5_000;
/// The longest argument list, result or error of an entry, in bytes of JSON: longer ones are left out, so that callers can't fill the
/// memory.
const MAX_CONTENT: usize = 4 << 10;
/// The number of events that a slow stream may be behind.
const MAX_BACKLOG: usize = 1_024;

/// The last completed calls and approval events, and the open streams.
pub(crate) struct Activity {
    entries: Mutex<Entries>,
    streams: broadcast::Sender<Arc<ActivityEntry>>,
    stream_opened: Notify,
    /// The approval requests, with what the events changed.
    pub(crate) approvals: ApprovalList,
}

#[derive(Default)]
struct Entries {
    last: VecDeque<Arc<ActivityEntry>>,
    /// The number of entries so far.
    count: u64,
}

/// One event.
#[derive(Debug)]
pub(crate) struct ActivityEntry {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The name of the event, as in decision logs.
    pub(crate) event: &'static str,
    /// The tenant of its call.
    pub(crate) tenant: Option<Value>,
    /// The session in the store.
    pub(crate) session: Option<String>,
    /// What happened, redacted.
    pub(crate) document: Value,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            streams: broadcast::channel(MAX_BACKLOG).0,
            stream_opened: Notify::new(),
            approvals: ApprovalList::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<ActivityEntry>> {
        let events = self.streams.subscribe();
        self.stream_opened.notify_one();
        events
    }

    /// Whether streams are open.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.receiver_count() > 0
    }

    /// Resolves when a stream has been opened since the last call.
    pub(crate) async fn stream_opened(&self) {
        self.stream_opened.notified().await;
    }

    /// The last entries for which `is_meant` holds, the newest first.
    pub(crate) fn last(
        &self,
        most: usize,
        is_meant: impl Fn(&ActivityEntry) -> bool,
    ) -> Vec<Arc<ActivityEntry>> {
        let entries = self.lock();
        entries.last.iter().rev().filter(|entry| is_meant(entry)).take(most).cloned().collect()
    }

    /// Adds an event that is none of the engine's, such as an answer that was given here.
    pub(crate) fn add(
        &self,
        event: &'static str,
        tenant: Option<Value>,
        session: Option<&str>,
        members: Map,
    ) {
        let mut document = json!({
            "event": event,
            "time": jiff::Timestamp::now().to_string(),
            "session": session.map(shown_name),
            "conversation": session,
        });
        if let Value::Object(all) = &mut document {
            all.extend(members);
        }
        let session = session.map(str::to_owned);
        let mut entries = self.lock();
        entries.count += 1;
        let number = entries.count;
        if let Value::Object(all) = &mut document {
            all.insert("number", json!(number));
        }
        let entry = Arc::new(ActivityEntry { number, event, tenant, session, document });
        if entries.last.len() >= MAX_ENTRIES {
            entries.last.pop_front();
        }
        entries.last.push_back(Arc::clone(&entry));
        // Below the lock, so that streams get the events in the order of their numbers. Nobody may be listening.
        let _ = self.streams.send(entry);
    }

    /// Tells open streams of a tenant that lists have changed. It is no entry, and has the number of the last one.
    pub(crate) fn announce(&self, event: &'static str, tenant: Option<Value>) {
        let document = json!({ "event": event, "time": jiff::Timestamp::now().to_string() });
        let entries = self.lock();
        let entry = ActivityEntry { number: entries.count, event, tenant, session: None, document };
        let _ = self.streams.send(Arc::new(entry));
    }
}

/// A part of an entry: null if it is too long to be kept.
fn content(value: &Value) -> Value {
    if callgate::json::approximate_size(value) > MAX_CONTENT { Value::Null } else { value.clone() }
}

/// The observer of an engine.
pub(crate) struct ActivityObserver(pub(crate) Arc<Activity>);

impl Observer for ActivityObserver {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let note_change = |approval_id: &str| {
            if let Some(run) = event.run {
                self.0.approvals.note_change(LedgerKey::of_approval(run.conversation, approval_id));
            }
        };
        let members = match &event.kind {
            EngineEventKind::CallCompleted(span) => {
                let outcome = span.outcome;
                json!({
                    "id": outcome.id,
                    "tool": outcome.tool,
                    "outcome": outcome.outcome,
                    "reason": outcome.reason,
                    "input": content(&outcome.input),
                    "output": outcome.output.as_ref().map(content),
                    "error": outcome.error.as_ref().map(|error| content(&json!(error))),
                    "policies": outcome.policies,
                    "approval": outcome.approval.as_ref().map(|request| request.approval_id.as_str()),
                    "duration_us": outcome.duration_us,
                })
            }
            EngineEventKind::ApprovalRequested(request) => {
                note_change(&request.approval_id);
                json!({ "id": request.tool_call_id, "tool": request.tool_name, "approval": request.approval_id,
                    "message": request.message })
            }
            EngineEventKind::ApprovalDecided(decision) => {
                note_change(&decision.approval_id);
                json!({ "id": decision.tool_call_id, "tool": decision.tool_name, "approval": decision.approval_id,
                    "approved": decision.approved, "code": decision.code, "by": decision.by, "comment": decision.reason })
            }
            EngineEventKind::Rules(_) => json!({ "revision": event.revision }),
            _ => return,
        };
        let tenant = event.call.and_then(|call| call.context.get("tenant")).cloned();
        let session = event.run.map(|run| run.session.unwrap_or(run.conversation));
        let Value::Object(members) = members else { return };
        self.0.add(callgate_log::event_name(&event.kind), tenant, session, members);
    }
}
