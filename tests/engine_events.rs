//! Observers receive every event of an engine, in order, redacted; calls wait for those that must record them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use callgate::json::json;
use callgate::state::MemoryStore;
use callgate::{
    BoxFuture, Effect, Engine, EngineEvent, EngineEventKind, Observer, ObserverError, OutcomeKind,
    RulesEvent, ToolCall, ToolError, ToolExecutor, ToolResponse, load_text,
};

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(call.input.clone().into())
    }
}

/// One line for each event.
#[derive(Clone, Default)]
struct EventLines {
    lines: Arc<Mutex<Vec<String>>>,
    is_full: Arc<AtomicBool>,
}

impl EventLines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl Observer for EventLines {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let what = match &event.kind {
            EngineEventKind::CallDecided(decided) => {
                let policies: Vec<_> = decided.policies.iter().map(|policy| policy.id.as_str()).collect();
                format!("decided {:?} {} {policies:?} {}", decided.effect, decided.reason.code, decided.input)
            }
            EngineEventKind::CallStarted(start) => format!("started {}", start.args),
            EngineEventKind::CallCompleted(span) => {
                format!("completed {} {:?}", span.outcome.outcome, span.shown)
            }
            EngineEventKind::ApprovalRequested(request) => format!("requested {:?}", request.policies),
            EngineEventKind::LimitRefused(refused) => {
                format!("limit {} shadow={}", refused.policy, refused.shadow)
            }
            EngineEventKind::CacheHit(hit) => format!("cache {}", hit.policy),
            EngineEventKind::Rules(RulesEvent::Applied { confirmed, .. }) => {
                format!("rules applied {confirmed}")
            }
            EngineEventKind::Rules(change) => format!("rules {change:?}"),
            other => format!("{other:?}"),
        };
        let call = event.call.map(|call| format!("{}/{} ", call.id, call.context.get("principal").is_some()));
        self.lines.lock().unwrap().push(format!("{}{what}", call.unwrap_or_default()));
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        let result = match self.is_full.load(Ordering::SeqCst) {
            true => Err(ObserverError("the disk is full".to_owned())),
            false => Ok(()),
        };
        Some(Box::pin(async { result }))
    }
}

const RULES: &str = r#"
policies:
  - { id: no-rm, match: rm, deny: { message: "never" } }
  - { id: hide-pin, match: "*", redact: { in: [input, output], detect: [email] } }
  - { id: two, match: limited, rate_limit: { limit: 2, per: 1h } }
  - { id: one, match: limited, mode: shadow, rate_limit: { limit: 1, per: 1h } }
  - { id: keep, match: cached, cache: { ttl: 1h } }
  - { id: ask, match: pay, approval: {} }
"#;

fn engine(lines: &EventLines) -> Engine {
    Engine::builder(load_text(RULES).unwrap())
        .store(Arc::new(MemoryStore::default()))
        .observer(lines.clone())
        .build()
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, json!({ "pin": "bob@example.org" }))
        .with_context(json!({ "principal": "ann", "note": "bob@example.org" }))
}

#[tokio::test]
async fn every_event_of_a_call_is_reported_in_order_and_redacted() {
    let lines = EventLines::default();
    let engine = engine(&lines);
    assert_eq!(lines.take(), ["rules Loaded"]);
    let mut session = engine.session();
    let mut events_of = async |call: ToolCall| {
        session.execute(call, &Echo).await;
        lines.take()
    };
    let masked = r#"{"pin":"[email]"}"#;
    let decided =
        |effect: &str, code: &str, policies: &str| format!("decided {effect} {code} {policies} {masked}");
    let run = |id: &str, policies: &str| format!("{id}/true {}", decided("Run", "unmatched", policies));
    let completed = |id: &str, kind: &str| format!("{id}/true completed {kind} Some({masked:?})");
    let started = |id: &str| format!("{id}/true started {masked}");

    assert_eq!(
        events_of(call("a", "rm")).await,
        [
            format!("a/true {}", decided("Deny", "denied", r#"["no-rm"]"#)),
            "a/true completed denied Some(\"never\")".to_owned()
        ]
    );
    let limits = r#"["two", "one"]"#;
    assert_eq!(
        events_of(call("b", "limited")).await,
        [run("b", limits), started("b"), completed("b", "executed")]
    );
    let second = events_of(call("c", "limited")).await;
    assert_eq!(second[0], "c/true limit one shadow=true");
    assert_eq!(second[1..], [run("c", limits), started("c"), completed("c", "executed")]);
    let third = events_of(call("d", "limited")).await;
    assert_eq!(third[0], "d/true limit two shadow=false");
    assert!(third[1].starts_with("d/true decided Deny rate_limited"), "{third:?}");
    assert!(third[2].starts_with("d/true completed denied"), "{third:?}");

    events_of(call("e", "cached")).await;
    let hit = events_of(call("f", "cached")).await;
    assert!(hit.contains(&"f/true cache keep".to_owned()), "{hit:?}");
    assert!(hit.last().is_some_and(|last| last.starts_with("f/true completed cached")), "{hit:?}");

    let asked = events_of(call("g", "pay")).await;
    assert!(asked[0].starts_with("g/true decided Suspend approval_required"), "{asked:?}");
    assert_eq!(asked[1..], ["g/true requested [\"ask\"]", "g/true completed suspended None"]);
}

#[tokio::test]
async fn the_context_of_an_event_shows_no_redacted_argument() {
    struct Contexts(Arc<Mutex<Vec<String>>>);
    impl Observer for Contexts {
        fn on_event(&self, event: &EngineEvent<'_>) {
            self.0.lock().unwrap().extend(event.call.map(|call| call.context.to_string()));
        }
    }
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(Contexts(Arc::clone(&contexts))).build();
    engine.session().execute(call("a", "read"), &Echo).await;
    let contexts = contexts.lock().unwrap();
    assert_eq!(contexts.len(), 3);
    assert!(
        contexts.iter().all(|context| !context.contains("bob@example.org") && context.contains("ann")),
        "{contexts:?}"
    );
}

#[tokio::test]
async fn a_call_that_cannot_be_recorded_is_denied_before_its_tool_runs() {
    let lines = EventLines::default();
    let engine = engine(&lines);
    lines.is_full.store(true, Ordering::SeqCst);
    let outcome = engine.session().execute(call("a", "read"), &Echo).await;
    assert_eq!((outcome.outcome, &*outcome.reason.code), (OutcomeKind::Denied, "log_unavailable"));
    assert!(outcome.reason.message.contains("the disk is full"), "{}", outcome.reason.message);
    assert!(!lines.take().iter().any(|line| line.contains("started")));
    lines.is_full.store(false, Ordering::SeqCst);
    let outcome = engine.session().execute(call("b", "read"), &Echo).await;
    assert_eq!(outcome.outcome, OutcomeKind::Executed);
}

/// Records when it is flushed, and cannot record the start of a call if `loses_starts`.
#[derive(Clone, Default)]
struct FlushOrder {
    steps: Arc<Mutex<Vec<&'static str>>>,
    loses_starts: bool,
}

impl Observer for FlushOrder {
    fn on_event(&self, event: &EngineEvent<'_>) {
        self.steps.lock().unwrap().push(match &event.kind {
            EngineEventKind::CallDecided(_) => "decided",
            EngineEventKind::CallStarted(_) => "started",
            EngineEventKind::CallCompleted(_) => "completed",
            _ => return,
        });
    }

    fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
        Some(Box::pin(async {
            let mut steps = self.steps.lock().unwrap();
            let is_lost = self.loses_starts && steps.last() == Some(&"started");
            steps.push("flushed");
            if is_lost { Err(ObserverError("the disk is full".to_owned())) } else { Ok(()) }
        }))
    }
}

impl ToolExecutor for FlushOrder {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.steps.lock().unwrap().push("tool");
        Ok(call.input.clone().into())
    }
}

#[tokio::test]
async fn what_happened_to_a_call_is_recorded_before_its_tool_runs_and_before_its_outcome_is_returned() {
    let order = FlushOrder::default();
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(order.clone()).build();
    let take = || std::mem::take(&mut *order.steps.lock().unwrap());
    let executed = ["decided", "flushed", "started", "flushed", "tool", "completed", "flushed"];
    engine.session().execute(call("a", "read"), &order).await;
    assert_eq!(take(), executed);
    engine.session().concurrent().execute(call("a", "read"), &order).await;
    assert_eq!(take(), executed);
    engine.session().execute_round(vec![call("a", "read")], &order).await;
    assert_eq!(take(), executed);
    engine.session().execute(call("b", "rm"), &order).await;
    assert_eq!(take(), ["decided", "completed", "flushed"]);
    engine.session().execute(call("c", "pay"), &order).await;
    assert_eq!(take(), ["decided", "completed", "flushed"]);
}

#[tokio::test]
async fn a_call_whose_start_cannot_be_recorded_is_denied_before_its_tool_runs() {
    let order = FlushOrder { loses_starts: true, ..FlushOrder::default() };
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(order.clone()).build();
    let outcome = engine.session().execute(call("a", "read"), &order).await;
    assert_eq!((outcome.outcome, &*outcome.reason.code), (OutcomeKind::Denied, "log_unavailable"));
    assert!(!order.steps.lock().unwrap().contains(&"tool"));
}

#[tokio::test]
async fn an_observer_that_panics_while_it_flushes_denies() {
    struct Panics;
    impl Observer for Panics {
        fn flush(&self) -> Option<BoxFuture<'_, Result<(), ObserverError>>> {
            panic!("disk")
        }
    }
    let engine = Engine::builder(load_text(RULES).unwrap()).observer(Panics).build();
    let outcome = engine.session().execute(call("a", "read"), &Echo).await;
    assert_eq!((outcome.outcome, &*outcome.reason.code), (OutcomeKind::Denied, "log_unavailable"));
}

#[test]
fn changes_of_the_rules_are_reported() {
    let lines = EventLines::default();
    let engine = engine(&lines);
    lines.take();
    engine.replace(load_text("policies: []").unwrap());
    assert_eq!(lines.take(), ["rules applied false"]);
    assert_eq!(Effect::Run, engine.decide(&call("a", "rm"), &callgate::SessionState::default()).effect());
}
