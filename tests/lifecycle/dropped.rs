//! Futures that are dropped while a tool runs: what has begun does not run again, what has not goes on, and nothing stays taken.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};

use callgate::json::json;
use callgate::message::{CallPart, Content, History, Message, Role};
use callgate::{EngineBuilder, ToolAnswer, ToolCall, ToolError, ToolExecutor};

use super::user;
use crate::workshop::{Tool, call, ended, noon, rules};

/// Answers, but for the tool `hang`, which never comes back.
#[derive(Default)]
struct Hanging(AtomicU32);

impl ToolExecutor for &Hanging {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match call.tool.as_str() {
            "hang" => pending().await,
            _ => Ok(json!("once").into()),
        }
    }
}

/// Begins, comes to where it has to wait, and is dropped.
fn give_up(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn three() -> ([CallPart; 3], History) {
    let part = |id: &str, name: &str| CallPart { id: id.into(), name: name.into(), input: json!({}) };
    let calls = [part("c1", "look"), part("c2", "hang"), part("c3", "look")];
    let mut history = user("look, hang, look");
    let parts = calls.iter().map(|call| Content::Call(call.clone()).into()).collect();
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
fn a_round_that_is_dropped_is_taken_up_where_it_stopped() {
    let (clock, hanging) = (noon(), Hanging::default());
    let tool = Tool::counting(&clock);
    let mut session = engine().clock(clock.clone()).build().session();
    let (_, mut history) = three();
    let before = history.clone();
    give_up(session.round(&mut history, &&hanging));
    assert_eq!((hanging.0.load(Ordering::SeqCst), &history), (2, &before));
    // Dropped once more, before anything else begins.
    drop(session.round(&mut history.clone(), &&hanging));
    let round = clock.drive(session.round(&mut history, &tool)).unwrap();
    assert_eq!(round.outcomes.iter().map(ended).collect::<Vec<_>>(), TAKEN_UP);
    assert_eq!(round.outcomes[0].output, Some(json!("once")));
    assert_eq!(tool.count(), 1);
    assert!(history.calls_without_result().is_empty());
    // What is over stays over, and the budget has counted what was given up.
    assert!(clock.drive(session.round(&mut history, &tool)).unwrap().outcomes.is_empty());
    let outcome = clock.drive(session.execute(call("look", json!({})), &tool));
    assert_eq!(ended(&outcome), ("denied", "budget_exceeded"));
}

#[test]
fn an_armed_call_that_is_dropped_does_not_run_again() {
    let (clock, hanging) = (noon(), Hanging::default());
    for told in [true, false] {
        let armed = engine().clock(clock.clone()).build().session().arm(&hanging);
        let (calls, mut history) = three();
        hanging.0.store(0, Ordering::SeqCst);
        if told {
            clock.drive(armed.tell_round(&calls));
        }
        clock.drive(armed.call("c1", "look", json!({})));
        give_up(armed.call("c2", "hang", json!({})));
        let round = clock.drive(armed.suspend(&mut history)).unwrap();
        assert_eq!(round.outcomes.iter().map(ended).collect::<Vec<_>>(), TAKEN_UP, "{told}");
        assert_eq!(hanging.0.load(Ordering::SeqCst), 3);
        assert!(history.calls_without_result().is_empty());
    }
}

#[test]
fn a_call_that_is_dropped_has_counted_and_holds_nothing() {
    let (clock, hanging) = (noon(), Hanging::default());
    let tool = Tool::counting(&clock);
    let mut session = engine().clock(clock.clone()).build().session();
    give_up(session.execute(call("hang", json!({})), &&hanging));
    let ends: Vec<String> = (0..3)
        .map(|_| clock.drive(session.execute(call("look", json!({})), &tool)).outcome.to_string())
        .collect();
    assert_eq!(ends, ["executed", "executed", "denied"]);
}

/// Sessions, armed or not, can be held and driven by any thread.
#[test]
fn a_run_can_be_driven_from_any_thread() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn moved<T: Send>(_: &T) {}
    let (clock, tool) = (noon(), Tool::counting(&noon()));
    let engine = engine().clock(clock).build();
    let (mut session, mut history) = (engine.session(), user("look"));
    shared(&engine);
    shared(&session);
    moved(&session.execute(call("look", json!({})), &tool));
    moved(&session.round(&mut history, &tool));
    moved(&session.resume(&mut history, &tool));
    let armed = session.arm(tool);
    shared(&armed);
    moved(&armed.call("c1", "look", json!({})));
    moved(&armed.suspend(&mut history));
    moved(&armed.clone().disarm());
}
