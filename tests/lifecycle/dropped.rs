//! Futures that are dropped while a tool runs: started calls do not run again, others run on resume, and nothing stays acquired.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use callgate::json::json;
use callgate::message::{CallPart, History, Message, PartContent, Role};
use callgate::{EngineBuilder, ToolCall, ToolError, ToolExecutor, ToolResponse};

use super::user;
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

/// Answers, except for the tool `hang`, which never returns.
#[derive(Default)]
struct Hanging(AtomicU32);

impl ToolExecutor for &Hanging {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match call.tool.as_str() {
            "hang" => pending().await,
            _ => Ok(json!("once").into()),
        }
    }
}

/// Starts, runs until it has to wait, and is dropped.
fn drop_when_pending(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn three() -> ([CallPart; 3], History) {
    let part = |id: &str, name: &str| CallPart { id: id.into(), name: name.into(), input: json!({}) };
    let calls = [part("c1", "look"), part("c2", "hang"), part("c3", "look")];
    let mut history = user("look, hang, look");
    let parts = calls.iter().map(|call| PartContent::Call(call.clone()).into()).collect();
    history.push(Message::new(Role::Assistant, parts));
    (calls, history)
}

fn engine() -> EngineBuilder {
    rules(
        "policies: [ { id: one, concurrency: { max: 1 } }, { id: few, budget: { calls: 3, on_exceed: deny } } ]",
    )
}

const TAKEN_UP: [(&str, &str); 3] =
    [("executed", "unmatched"), ("indeterminate", "unfinished"), ("executed", "unmatched")];

#[test]
fn dropped_round_resumes_where_it_stopped() {
    let (clock, hanging) = (noon(), Hanging::default());
    let tool = Tool::counting(&clock);
    let mut session = engine().clock(clock.clone()).build().session();
    let (_, mut history) = three();
    let before = history.clone();
    drop_when_pending(session.run_round(&mut history, &&hanging));
    assert_eq!((hanging.0.load(Ordering::SeqCst), &history), (2, &before));
    // Dropped again, before any other call starts.
    drop(session.run_round(&mut history.clone(), &&hanging));
    let round = clock.block_on(session.run_round(&mut history, &tool)).unwrap();
    assert_eq!(round.outcomes.iter().map(kind_and_code).collect::<Vec<_>>(), TAKEN_UP);
    assert_eq!(round.outcomes[0].output, Some(json!("once")));
    assert_eq!(tool.count(), 1);
    assert!(history.calls_without_result().is_empty());
    // Completed calls stay completed, and the budget counted the cancelled call.
    assert!(clock.block_on(session.run_round(&mut history, &tool)).unwrap().outcomes.is_empty());
    let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
    assert_eq!(kind_and_code(&outcome), ("denied", "budget_exceeded"));
}

#[test]
fn dropped_armed_call_does_not_run_again() {
    let (clock, hanging) = (noon(), Hanging::default());
    for told in [true, false] {
        let armed = engine().clock(clock.clone()).build().session().into_sdk_session(&hanging);
        let (calls, mut history) = three();
        hanging.0.store(0, Ordering::SeqCst);
        if told {
            clock.block_on(armed.announce_round(&calls));
        }
        clock.block_on(armed.call("c1", "look", json!({})));
        drop_when_pending(armed.call("c2", "hang", json!({})));
        let round = clock.block_on(armed.suspend(&mut history)).unwrap();
        assert_eq!(round.outcomes.iter().map(kind_and_code).collect::<Vec<_>>(), TAKEN_UP, "{told}");
        assert_eq!(hanging.0.load(Ordering::SeqCst), 3);
        assert!(history.calls_without_result().is_empty());
    }
}

#[test]
fn dropped_call_is_counted_and_holds_nothing() {
    let (clock, hanging) = (noon(), Hanging::default());
    let tool = Tool::counting(&clock);
    let mut session = engine().clock(clock.clone()).build().session();
    drop_when_pending(session.execute(call("hang", json!({})), &&hanging));
    let ends: Vec<String> = (0..3)
        .map(|_| clock.block_on(session.execute(call("look", json!({})), &tool)).outcome.to_string())
        .collect();
    assert_eq!(ends, ["executed", "executed", "denied"]);
}

/// Sessions, armed or not, are `Send` and can be driven from any thread.
#[test]
fn run_can_be_driven_from_any_thread() {
    fn assert_send_sync<T: Send + Sync>(_: &T) {}
    fn assert_send<T: Send>(_: &T) {}
    let (clock, tool) = (noon(), Tool::counting(&noon()));
    let engine = engine().clock(clock).build();
    let (mut session, mut history) = (engine.session(), user("look"));
    assert_send_sync(&engine);
    assert_send_sync(&session);
    assert_send(&session.execute(call("look", json!({})), &tool));
    assert_send(&session.run_round(&mut history, &tool));
    assert_send(&session.resume(&mut history, &tool));
    let armed = session.into_sdk_session(tool);
    assert_send_sync(&armed);
    assert_send(&armed.call("c1", "look", json!({})));
    assert_send(&armed.suspend(&mut history));
    assert_send(&armed.clone().into_session());
}
