//! At most once: several processes at once, crashes and stores that fail between the claim and the settling of a call.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use callgate::call::UsedOnceBy;
use callgate::host::{StateStore, StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::message::{History, Message, Part, ResponsePart, Role, approval_response};
use callgate::state::FileStore;
use callgate::{Engine, ToolAnswer, ToolCall, ToolDescriptor, ToolError, ToolExecutor};

use super::scene::{REFUNDS, Scene, Shared};
use crate::altered_stores::{Alteration, Altered};
use crate::workshop::{Tool, ended, rules};

fn refund() -> Value {
    json!({ "amount": 250 })
}

fn descriptor(more: Value) -> ToolDescriptor {
    let mut tool = json!({ "name": "refund" });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    callgate::json::from_value(tool).unwrap()
}

/// A tool that takes its time.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>);

impl ToolExecutor for Slow {
    async fn execute(&self, _: &ToolCall) -> Result<ToolAnswer, ToolError> {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(30)).await;
        Ok(json!({ "run": count + 1 }).into())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// I2, I4. Of several processes that take one history up at the same moment, one runs the call, and all tell its result.
#[test]
fn i4_of_several_processes_one_runs_a_call_and_all_tell_its_result() {
    const PROCESSES: usize = 4;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state.db");
    let in_memory: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
    let opened = || -> Arc<dyn StateStore> { Arc::new(FileStore::open(&path).unwrap()) };
    for in_file in [false, true] {
        let store = || if in_file { opened() } else { Arc::clone(&in_memory) };
        let engine = || -> Engine {
            rules(&REFUNDS.replace(", expires: 24h", ""))
                .store(store())
                .keys(Scene::new("policies: []").keys())
                .build()
        };
        let tool = Slow::default();
        let call = Part::call("c1", "refund", refund());
        let mut history = History::new(vec![Message::new(Role::Assistant, vec![call])]);
        let mut session = engine().session().named("talk");
        assert!(block_on(session.round(&mut history, &tool)).unwrap().is_suspended());
        history.append_approval_response(approval_response("approval_c1", true)).unwrap();
        let start = Barrier::new(PROCESSES);
        let rounds: Vec<_> = thread::scope(|scope| {
            let run = || {
                let (mut history, engine) = (history.clone(), engine());
                start.wait();
                let mut session = engine.session().named("talk");
                let mut round = block_on(session.resume(&mut history, &tool)).unwrap();
                assert_eq!(round.outcomes.len(), 1);
                (round.outcomes.remove(0), history)
            };
            let threads: Vec<_> = (0..PROCESSES).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(tool.0.load(Ordering::SeqCst), 1, "in a file: {in_file}");
        assert_eq!(rounds.iter().filter(|(outcome, _)| !outcome.replayed).count(), 1);
        for (outcome, history) in &rounds {
            assert_eq!(ended(outcome), ("executed", "approved"));
            assert_eq!(outcome.output, Some(json!({ "run": 1 })));
            assert_eq!(outcome.approved.as_ref().unwrap().used_once_by, UsedOnceBy::Store);
            assert!(history.calls_without_result().is_empty());
        }
    }
}

/// The session is taken up, and its process dies while the tool runs.
fn crash(scene: &mut Scene) {
    let hour = [(Duration::from_secs(3600), Ok(json!("late"))), (Duration::ZERO, Ok(json!("again")))];
    scene.tool = Tool::scripted(&scene.clock, hour);
    let (mut session, mut history) = (scene.session(), scene.history.clone());
    let running = pin!(session.resume(&mut history, &scene.tool));
    assert!(running.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(scene.tool.count(), 1);
}

/// I7. Of a call whose run nobody came back from it is not known how it ended, and it is not run again.
#[test]
fn i7_a_call_that_began_and_did_not_end_is_not_run_again() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        let before = scene.history.clone();
        crash(&mut scene);
        for _ in 0..2 {
            scene.history = before.clone();
            let outcome = scene.outcome();
            assert_eq!(ended(&outcome), ("indeterminate", "unfinished"));
            assert_eq!(scene.results().len(), 1);
            assert!(scene.resume().outcomes.is_empty());
        }
        // Nor by a denial, which comes too late.
        scene.history = before;
        scene.answer(approval_response("approval_c1", false));
        assert_eq!(ended(&scene.outcome()), ("indeterminate", "unfinished"));
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. But for a tool that may run twice: it runs as it was approved.
#[test]
fn i7_a_tool_that_may_run_twice_runs_again_as_it_was_approved() {
    let editable = REFUNDS.replace("expires: 24h", "edits: [$.input.amount]");
    for edited in [false, true] {
        let mut scene = Scene::asked(&editable, refund());
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        let input = if edited { json!({ "amount": 120 }) } else { refund() };
        scene.answer(ResponsePart { edited_input: edited.then(|| input.clone()), ..scene.yes() });
        let before = scene.history.clone();
        crash(&mut scene);
        let outcome = scene.outcome();
        assert_eq!(ended(&outcome), ("executed", "approved"), "{outcome:?}");
        assert_eq!(scene.tool.inputs(), [input.clone(), input]);
        // Once it has come back, it is over.
        scene.history = before;
        let told = scene.outcome();
        assert!(told.replayed && ended(&told) == ("executed", "approved"));
        assert_eq!(scene.tool.count(), 2);
    }
}

/// I7. What may not run by the rules of now does not run again, and nobody says that it did not run at all.
#[test]
fn i7_a_tool_that_may_run_twice_does_not_where_the_rules_stop_it_now() {
    for policy in ["{ id: no, match: refund, deny: {} }", "{ id: more, match: refund, approval: {} }"] {
        let mut scene = Scene::refund(250);
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        scene.approve();
        crash(&mut scene);
        scene.rules = format!("{REFUNDS}  - {policy}\n");
        assert_eq!(ended(&scene.outcome()), ("indeterminate", "unfinished"), "{policy}");
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. What was approved for somebody else does not run again, and nobody says that it did not run at all.
#[test]
fn i7_a_tool_that_may_run_twice_does_not_for_somebody_else() {
    for context in [json!({ "principal": "bob", "tenant": "acme" }), json!({ "tenant": "acme" })] {
        let mut scene = Scene::refund(250);
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        scene.approve();
        crash(&mut scene);
        scene.context = context.clone();
        assert_eq!(ended(&scene.outcome()), ("indeterminate", "unfinished"), "{context}");
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. A tool that is marked so is claimed also where nobody is asked.
#[test]
fn i7_a_tool_marked_once_is_not_run_again_after_a_crash() {
    for (idempotent, outcome, runs) in [(false, "indeterminate", 1), (true, "executed", 2)] {
        for by_round in [true, false] {
            let mut scene = Scene::new(REFUNDS);
            scene.tools = vec![descriptor(json!({ "once": true, "idempotent": idempotent }))];
            scene.model_calls(&[("c1", "refund", json!({ "amount": 1 }))]);
            let hour = [(Duration::from_secs(3600), Ok(json!("late"))), (Duration::ZERO, Ok(json!("again")))];
            scene.tool = Tool::scripted(&scene.clock, hour);
            {
                let (mut session, mut history) = (scene.session(), scene.history.clone());
                let running = pin!(session.round(&mut history, &scene.tool));
                assert!(running.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            let round = if by_round { scene.round() } else { scene.resume() };
            assert_eq!(round.outcomes[0].outcome.name(), outcome, "{idempotent} {by_round}");
            assert_eq!((scene.tool.count(), scene.results().len()), (runs, 1), "{idempotent} {by_round}");
        }
    }
}

/// I7. A timeout is no crash, and yet nobody knows what the tool did.
#[test]
fn i7_an_approved_call_that_is_given_up_is_indeterminate_and_over() {
    let timed = format!("{REFUNDS}  - {{ id: limit, match: refund, timeout: 1m }}\n");
    for mut scene in Scene::each(&timed, &refund()) {
        scene.approve();
        let before = scene.history.clone();
        scene.tool = Tool::scripted(&scene.clock, [(Duration::from_secs(3600), Ok(json!("late")))]);
        assert_eq!(ended(&scene.outcome()), ("indeterminate", "timeout"));
        scene.history = before;
        let again = scene.outcome();
        assert!(again.replayed && ended(&again) == ("indeterminate", "timeout"));
        assert_eq!(scene.tool.count(), 1);
    }
}

/// A store that several share, and that fails while it is told to.
struct Failing(Arc<AtomicBool>);

impl Alteration for Failing {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self.0.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::Unavailable("it is away".to_owned())) }),
            false => good,
        }
    }
    fn is_shared(&self) -> bool {
        false
    }
}

/// A tool during whose run the store goes away.
struct Cutting(Arc<AtomicBool>, Tool);

impl ToolExecutor for Cutting {
    async fn execute(&self, call: &ToolCall) -> Result<ToolAnswer, ToolError> {
        self.0.store(true, Ordering::SeqCst);
        self.1.execute(call).await
    }
}

/// I8. Without its store an answered call waits; nothing is lost, and nothing runs.
#[test]
fn i8_without_its_store_an_answered_call_goes_on_waiting() {
    let away = Arc::new(AtomicBool::new(false));
    let mut scene = Scene::new(REFUNDS);
    scene.store = Arc::new(Altered::by(Failing(Arc::clone(&away))));
    scene.ask(refund());
    scene.approve();
    away.store(true, Ordering::SeqCst);
    assert_eq!(scene.outcome().outcome.name(), "suspended");
    assert_eq!((scene.tool.count(), scene.results().len()), (0, 0));
    // Nor is anyone asked whom the store can't be told of.
    scene.model_calls(&[("c2", "refund", refund())]);
    assert_eq!(ended(&scene.round().outcomes[0]), ("denied", "store_unavailable"));
    away.store(false, Ordering::SeqCst);
    assert_eq!(ended(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.count(), 1);
}

/// I7. What can't be noted as settled has run all the same: its result stands, and it never runs again.
#[test]
fn i7_a_call_whose_end_could_not_be_noted_is_not_run_again() {
    let away = Arc::new(AtomicBool::new(false));
    let mut scene = Scene::new(REFUNDS);
    scene.store = Arc::new(Altered::by(Failing(Arc::clone(&away))));
    scene.ask(refund());
    scene.approve();
    let before = scene.history.clone();
    let cutting = Cutting(Arc::clone(&away), scene.tool.clone());
    let mut session = scene.session();
    let round = scene.clock.drive(session.resume(&mut scene.history, &cutting)).unwrap();
    assert_eq!(ended(&round.outcomes[0]), ("executed", "approved"));
    assert!(scene.resume().outcomes.is_empty());
    away.store(false, Ordering::SeqCst);
    scene.history = before;
    assert_eq!(ended(&scene.outcome()), ("indeterminate", "unfinished"));
    assert_eq!(scene.tool.count(), 1);
}

/// I2. Without a shared store it is the history that keeps an answer from being used twice, and outcomes say so.
#[test]
fn i2_outcomes_say_what_keeps_an_answer_from_being_used_twice() {
    for (shared, by) in [(false, UsedOnceBy::History), (true, UsedOnceBy::Store)] {
        let mut scene = Scene::new(REFUNDS);
        if shared {
            scene = scene.sharing();
        }
        scene.ask(refund());
        scene.approve();
        assert_eq!(scene.outcome().approved.unwrap().used_once_by, by);
    }
}
