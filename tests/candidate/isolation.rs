//! No candidate changes an outcome: not one that stops everything, not one that fails, not one that is slow.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use callgate::json::json;
use callgate::lifecycle::{BeforeAction, HookCall, Middleware};
use callgate::state::{MemoryStore, RecordStore};
use callgate::{
    BoxFuture, Engine, EngineEvent, EngineEventKind, ManualClock, Observer, Outcome, ToolCall, ToolExecutor,
    load_text,
};

use super::{CountedEcho, Differences, candidate};

const ACTIVE: &str = r#"
policies:
  - { id: no-rm, match: rm, deny: {} }
  - { id: two, match: mail, rate_limit: { limit: 2, per: 1h } }
  - { id: ask, match: pay, approval: {} }
  - { id: keep, match: lookup, cache: { ttl: 1h } }
  - { id: seen, match: lookup, label: { add: [seen] } }
"#;

/// Stops, changes, asks about and halts everything, with the ids of the active policies and much work.
const HOSTILE: &str = r#"
policies:
  - { id: no-rm, match: "*", halt: {} }
  - { id: two, match: "*", rate_limit: { limit: 1, per: 1h } }
  - { id: ask, match: "*", approval: {} }
  - { id: keep, match: "*", cache: { ttl: 1h, key: [ $.tool ] } }
  - { id: seen, match: "*", transform: { input: [ { path: $.input.x, set: 1 } ] } }
  - { id: spin, match: "*", around: { script: "let n = 0; while true { n += 1; } next(input)" } }
"#;

async fn outcomes_of(engine: &Engine, tools: &impl ToolExecutor) -> Vec<String> {
    let mut session = engine.session().with_name("one");
    let mut outcomes = Vec::new();
    for (index, tool) in
        ["rm", "mail", "mail", "mail", "pay", "lookup", "lookup", "read"].into_iter().enumerate()
    {
        let Outcome { outcome, input, output, reason, policies, .. } =
            session.execute(ToolCall::new(format!("c{index}"), tool, json!({})), tools).await;
        outcomes.push(format!("{outcome} {input} {output:?} {reason:?} {policies:?}"));
    }
    outcomes.push(session.state().document().to_string());
    outcomes
}

#[tokio::test]
async fn outcomes_tools_state_and_approvals_are_those_without_a_candidate() {
    let store = || Arc::new(MemoryStore::default());
    let (plain_store, other_store) = (store(), store());
    let (plain_tools, tools) = (CountedEcho::default(), CountedEcho::default());
    let clock = || ManualClock::new("2026-11-23T10:00:00Z".parse().unwrap());
    let plain = Engine::builder(load_text(ACTIVE).unwrap()).clock(clock());
    let plain = plain.store(plain_store.clone()).build();
    let candidate = candidate(HOSTILE);
    let engine = Engine::builder(load_text(ACTIVE).unwrap()).clock(clock());
    let engine = engine.store(other_store.clone()).candidate(&candidate).build();
    let expected = outcomes_of(&plain, &plain_tools).await;
    assert_eq!(outcomes_of(&engine, &tools).await, expected);
    candidate.finish();
    let summary = candidate.summary();
    assert!(summary.stricter > 0 && summary.compared == 8, "{summary:?}");
    assert_eq!(tools.calls(), plain_tools.calls());
    for space in callgate::host::space::ALL {
        let names = async |store: &MemoryStore| store.records(space, None, 100).await.unwrap().records.len();
        assert_eq!(names(&other_store).await, names(&plain_store).await, "{space}");
    }
    // What the candidate did has left nothing for later calls either.
    assert_eq!(outcomes_of(&engine, &tools).await, outcomes_of(&plain, &plain_tools).await);
}

/// Blocks the thread of a candidate when it reports its first call.
struct Blocked {
    waiting: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Observer for Blocked {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if matches!(event.kind, EngineEventKind::CandidateDecided(_))
            && let Some((waits, go_on)) = self.waiting.lock().unwrap().take()
        {
            waits.send(()).unwrap();
            go_on.recv().unwrap();
        }
    }
}

#[tokio::test]
async fn calls_do_not_wait_for_a_slow_candidate_and_what_it_skips_is_counted() {
    let candidate = candidate(
        "policies: [ { id: third, match: { tool: mail, where: { path: $.session.calls.mail, gte: 2 } }, deny: {} } ]",
    );
    let seen = Differences::default();
    let (waits, is_waiting) = channel();
    let (release, go_on) = channel();
    let engine = Engine::builder(load_text("policies: []").unwrap())
        .candidate(&candidate)
        .observer(Blocked { waiting: Mutex::new(Some((waits, go_on))) })
        .observer(seen.clone())
        .build();
    let tools = CountedEcho::default();
    let mut session = engine.session();
    session.execute(ToolCall::new("first", "mail", json!({})), &tools).await;
    is_waiting.recv().unwrap();
    for index in 0..1_500 {
        let call = ToolCall::new(format!("c{index}"), "mail", json!({}));
        assert_eq!(session.execute(call, &tools).await.reason.code, "unmatched");
    }
    release.send(()).unwrap();
    candidate.finish();
    let summary = candidate.summary();
    assert!(summary.skipped > 400, "{summary:?}");
    assert_eq!(summary.compared + summary.not_compared + summary.skipped, 1_501);
    let skipped = format!("skipped {}", summary.skipped);
    assert!(seen.take().contains(&skipped), "{skipped}");
    // The candidate lacks calls of the session, so it does not claim to know their number.
    seen.take();
    session.execute(ToolCall::new("last", "mail", json!({})), &tools).await;
    candidate.finish();
    assert_eq!(seen.take(), [] as [&str; 0]);
    assert_eq!(candidate.summary().not_compared, summary.not_compared + 1);
}

/// Blocks mail, and asks about payments.
struct Guard;

impl Middleware for Guard {
    fn id(&self) -> &str {
        "guard"
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, BeforeAction> {
        let action = match call.call.tool.as_str() {
            "mail" => BeforeAction::Block("no".to_owned()),
            "read" => BeforeAction::Edit(json!({ "edited": true })),
            _ => BeforeAction::Continue,
        };
        Box::pin(async move { action })
    }
}

#[tokio::test]
async fn what_hooks_decide_is_no_difference_and_the_candidate_sees_what_they_edit() {
    let candidate = candidate(
        "policies: [ { id: unedited, match: { tool: read, where: { path: $.input.edited, exists: false } }, deny: {} } ]",
    );
    let seen = Differences::default();
    let engine = Engine::builder(load_text("policies: []").unwrap());
    let engine = engine.candidate(&candidate).observer(seen.clone()).middleware(Guard).build();
    let mut session = engine.session();
    for tool in ["mail", "read"] {
        session.execute(ToolCall::new(tool, tool, json!({})), &CountedEcho::default()).await;
    }
    candidate.finish();
    assert_eq!(seen.take()[1..], [] as [&str; 0]);
    let summary = candidate.summary();
    assert_eq!((summary.compared, summary.not_compared), (1, 1));
}

#[tokio::test]
async fn events_of_a_candidate_show_nothing_that_the_active_rules_redact() {
    struct Everything(Arc<Mutex<String>>);
    impl Observer for Everything {
        fn on_event(&self, event: &EngineEvent<'_>) {
            if let EngineEventKind::CandidateDecided(_) = event.kind {
                *self.0.lock().unwrap() += &format!("{event:?}");
            }
        }
    }
    let active = "policies: [ { id: hide, match: '*', redact: { in: [input, output], detect: [email] } } ]";
    let candidate = candidate(
        "policies: [ { id: quotes, match: '*', deny: { message: 'no {{ input.to }}', code: no } } ]",
    );
    let text = Arc::new(Mutex::new(String::new()));
    let engine = Engine::builder(load_text(active).unwrap()).candidate(&candidate);
    let engine = engine.observer(Everything(Arc::clone(&text))).build();
    let call = ToolCall::new("c1", "mail", json!({ "to": "bob@example.org" }))
        .with_context(json!({ "principal": "ann", "note": "bob@example.org" }));
    engine.session().execute(call, &CountedEcho::default()).await;
    candidate.finish();
    let text = text.lock().unwrap();
    assert!(text.contains("quotes") && !text.contains("bob@example"), "{text}");
}
