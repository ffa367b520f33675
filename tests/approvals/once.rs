//! At-most-once execution: concurrent processes, crashes, and stores that fail between the claim and the settling of a call.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use callgate::call::SingleUseGuarantee;
use callgate::host::{StateStore, StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::message::{History, Message, Part, ResponsePart, Role, approval_response};
use callgate::{Engine, ToolCall, ToolDescriptor, ToolError, ToolExecutor, ToolResponse};
use callgate_sqlite::SqliteStore;

use super::scene::{REFUNDS, Scene, Shared};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, kind_and_code, rules};

fn refund() -> Value {
    json!({ "amount": 250 })
}

fn descriptor(more: Value) -> ToolDescriptor {
    let mut tool = json!({ "name": "refund" });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    callgate::json::from_value(tool).unwrap()
}

/// A slow tool.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>);

impl ToolExecutor for Slow {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(30)).await;
        Ok(json!({ "run": count + 1 }).into())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// A tool that takes half a second.
#[derive(Default)]
struct HalfSecond(AtomicUsize);

impl ToolExecutor for HalfSecond {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(json!("done").into())
    }
}

/// I2. Two processes attempt a call and wait for a slot. One gets it and runs the call; the other one gives up meanwhile.
#[test]
fn a_refusal_does_not_replace_the_claim_of_a_process_that_runs_the_call() {
    let engine = rules(
        "policies:\n  - { id: one, match: pay, concurrency: { max: 1, on_exceed: wait, max_wait: 750ms } }",
    )
    .build();
    let tool = HalfSecond::default();
    let attempt = async |id: &str, after: Duration| {
        tokio::time::sleep(after).await;
        let mut session = engine.session().with_name(id).with_call_recording();
        session.execute(ToolCall::new(id, "pay", json!({})), &tool).await
    };
    let soon = Duration::from_millis(20);
    block_on(async {
        tokio::join!(attempt("first", Duration::ZERO), attempt("c1", soon), attempt("c1", soon));
        let outcome = attempt("c1", Duration::ZERO).await;
        assert_eq!(kind_and_code(&outcome).0, "executed", "{outcome:?}");
        assert!(outcome.replayed);
    });
    assert_eq!(tool.0.load(Ordering::SeqCst), 2);
}

/// I2, I4. Of several processes that resume one history at once, one runs the call, and all report its result.
#[test]
fn i4_one_of_several_processes_runs_a_call_and_all_report_its_result() {
    const PROCESSES: usize = 4;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state.db");
    let in_memory: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
    let opened = || -> Arc<dyn StateStore> { Arc::new(SqliteStore::open(&path).unwrap()) };
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
        let mut session = engine().session().with_name("talk");
        assert!(block_on(session.run_round(&mut history, &tool)).unwrap().is_suspended());
        history.append_approval_response(approval_response("approval_c1", true)).unwrap();
        let start = Barrier::new(PROCESSES);
        let rounds: Vec<_> = thread::scope(|scope| {
            let run = || {
                let (mut history, engine) = (history.clone(), engine());
                start.wait();
                let mut session = engine.session().with_name("talk");
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
            assert_eq!(kind_and_code(outcome), ("executed", "approved"));
            assert_eq!(outcome.output, Some(json!({ "run": 1 })));
            assert_eq!(outcome.approved.as_ref().unwrap().used_once_by, SingleUseGuarantee::Store);
            assert!(history.calls_without_result().is_empty());
        }
    }
}

/// Resumes the session in a process that dies while the tool runs.
fn crash(scene: &mut Scene) {
    let hour = [(Duration::from_secs(3600), Ok(json!("late"))), (Duration::ZERO, Ok(json!("again")))];
    scene.tool = Tool::scripted(&scene.clock, hour);
    let (mut session, mut history) = (scene.session(), scene.history.clone());
    let running = pin!(session.resume(&mut history, &scene.tool));
    assert!(running.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(scene.tool.count(), 1);
}

/// I7. A call whose execution never returned has an unknown outcome and does not run again.
#[test]
fn i7_call_that_started_and_never_ended_is_not_run_again() {
    for mut scene in Scene::each(REFUNDS, &refund()) {
        scene.approve();
        let before = scene.history.clone();
        crash(&mut scene);
        for _ in 0..2 {
            scene.history = before.clone();
            let outcome = scene.outcome();
            assert_eq!(kind_and_code(&outcome), ("indeterminate", "unfinished"));
            assert_eq!(scene.results().len(), 1);
            assert!(scene.resume().outcomes.is_empty());
        }
        // Nor does a denial change that: it comes too late.
        scene.history = before;
        scene.answer(approval_response("approval_c1", false));
        assert_eq!(kind_and_code(&scene.outcome()), ("indeterminate", "unfinished"));
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. An idempotent tool is the exception: it runs again as it was approved.
#[test]
fn i7_idempotent_tool_runs_again_as_approved() {
    let editable = REFUNDS.replace("expires: 24h", "edits: [$.input.amount]");
    for edited in [false, true] {
        let mut scene = Scene::asked(&editable, refund());
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        let input = if edited { json!({ "amount": 120 }) } else { refund() };
        scene.answer(ResponsePart { edited_input: edited.then(|| input.clone()), ..scene.approval() });
        let before = scene.history.clone();
        crash(&mut scene);
        let outcome = scene.outcome();
        assert_eq!(kind_and_code(&outcome), ("executed", "approved"), "{outcome:?}");
        assert_eq!(scene.tool.inputs(), [input.clone(), input]);
        // Once it has returned, the call is complete.
        scene.history = before;
        let told = scene.outcome();
        assert!(told.replayed && kind_and_code(&told) == ("executed", "approved"));
        assert_eq!(scene.tool.count(), 2);
    }
}

/// I7. A call that current rules stop does not run again, and is never reported as not having run.
#[test]
fn i7_idempotent_tool_is_not_rerun_if_rules_stop_it_now() {
    for policy in ["{ id: no, match: refund, deny: {} }", "{ id: more, match: refund, approval: {} }"] {
        let mut scene = Scene::refund(250);
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        scene.approve();
        crash(&mut scene);
        scene.rules = format!("{REFUNDS}  - {policy}\n");
        assert_eq!(kind_and_code(&scene.outcome()), ("indeterminate", "unfinished"), "{policy}");
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. A call that was approved for another principal does not run again, and is never reported as not having run.
#[test]
fn i7_idempotent_tool_is_not_rerun_for_another_principal() {
    for context in [json!({ "principal": "bob", "tenant": "acme" }), json!({ "tenant": "acme" })] {
        let mut scene = Scene::refund(250);
        scene.tools = vec![descriptor(json!({ "idempotent": true }))];
        scene.approve();
        crash(&mut scene);
        scene.context = context.clone();
        assert_eq!(kind_and_code(&scene.outcome()), ("indeterminate", "unfinished"), "{context}");
        assert_eq!(scene.tool.count(), 1);
    }
}

/// I7. A tool marked as once is claimed even if no approval is required.
#[test]
fn i7_tool_marked_once_is_not_run_again_after_a_crash() {
    for (idempotent, outcome, runs) in [(false, "indeterminate", 1), (true, "executed", 2)] {
        for by_round in [true, false] {
            let mut scene = Scene::new(REFUNDS);
            scene.tools = vec![descriptor(json!({ "once": true, "idempotent": idempotent }))];
            scene.model_calls(&[("c1", "refund", json!({ "amount": 1 }))]);
            let hour = [(Duration::from_secs(3600), Ok(json!("late"))), (Duration::ZERO, Ok(json!("again")))];
            scene.tool = Tool::scripted(&scene.clock, hour);
            {
                let (mut session, mut history) = (scene.session(), scene.history.clone());
                let running = pin!(session.run_round(&mut history, &scene.tool));
                assert!(running.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
            let round = if by_round { scene.round() } else { scene.resume() };
            assert_eq!(round.outcomes[0].outcome.name(), outcome, "{idempotent} {by_round}");
            assert_eq!((scene.tool.count(), scene.results().len()), (runs, 1), "{idempotent} {by_round}");
        }
    }
}

/// I7. After a timeout, without a crash, the effect of the tool is unknown as well.
#[test]
fn i7_approved_call_that_times_out_is_indeterminate() {
    let timed = format!("{REFUNDS}  - {{ id: limit, match: refund, timeout: 1m }}\n");
    for mut scene in Scene::each(&timed, &refund()) {
        scene.approve();
        let before = scene.history.clone();
        scene.tool = Tool::scripted(&scene.clock, [(Duration::from_secs(3600), Ok(json!("late")))]);
        assert_eq!(kind_and_code(&scene.outcome()), ("indeterminate", "timeout"));
        scene.history = before;
        let again = scene.outcome();
        assert!(again.replayed && kind_and_code(&again) == ("indeterminate", "timeout"));
        assert_eq!(scene.tool.count(), 1);
    }
}

/// A shared store that fails on demand.
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

/// A tool during whose execution the store becomes unavailable.
struct Cutting(Arc<AtomicBool>, Tool);

impl ToolExecutor for Cutting {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.store(true, Ordering::SeqCst);
        self.1.execute(call).await
    }
}

/// I8. Without its store an approved call stays pending; nothing is lost, and nothing runs.
#[test]
fn i8_approved_call_stays_pending_without_its_store() {
    let away = Arc::new(AtomicBool::new(false));
    let mut scene = Scene::new(REFUNDS);
    scene.store = Arc::new(Altered::by(Failing(Arc::clone(&away))));
    scene.ask(refund());
    scene.approve();
    away.store(true, Ordering::SeqCst);
    assert_eq!(scene.outcome().outcome.name(), "suspended");
    assert_eq!((scene.tool.count(), scene.results().len()), (0, 0));
    // Nor is a new request created that the store cannot record.
    scene.model_calls(&[("c2", "refund", refund())]);
    assert_eq!(kind_and_code(&scene.round().outcomes[0]), ("denied", "store_unavailable"));
    away.store(false, Ordering::SeqCst);
    assert_eq!(kind_and_code(&scene.outcome()), ("executed", "approved"));
    assert_eq!(scene.tool.count(), 1);
}

/// I7. A call whose completion could not be recorded has run all the same: its result stands, and it never runs again.
#[test]
fn i7_call_whose_end_could_not_be_recorded_is_not_run_again() {
    let away = Arc::new(AtomicBool::new(false));
    let mut scene = Scene::new(REFUNDS);
    scene.store = Arc::new(Altered::by(Failing(Arc::clone(&away))));
    scene.ask(refund());
    scene.approve();
    let before = scene.history.clone();
    let cutting = Cutting(Arc::clone(&away), scene.tool.clone());
    let mut session = scene.session();
    let round = scene.clock.block_on(session.resume(&mut scene.history, &cutting)).unwrap();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("executed", "approved"));
    assert!(scene.resume().outcomes.is_empty());
    away.store(false, Ordering::SeqCst);
    scene.history = before;
    assert_eq!(kind_and_code(&scene.outcome()), ("indeterminate", "unfinished"));
    assert_eq!(scene.tool.count(), 1);
}

/// I2. Without a shared store the history prevents the reuse of an approval, and outcomes say so.
#[test]
fn i2_outcomes_report_what_prevents_reuse_of_an_approval() {
    for (shared, by) in [(false, SingleUseGuarantee::History), (true, SingleUseGuarantee::Store)] {
        let mut scene = Scene::new(REFUNDS);
        if shared {
            scene = scene.with_shared_store();
        }
        scene.ask(refund());
        scene.approve();
        assert_eq!(scene.outcome().approved.unwrap().used_once_by, by);
    }
}
