//! How runs end: once, from any point, and with deferred work done afterwards.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callgate::host::{Clock as _, HookFailure, Observer};
use callgate::json::json;
use callgate::lifecycle::{
    BeforeAction, Chunk, HookError, Middleware, ModelConfig, RunContext, RunEnd, RunStats, ToolHooks,
};
use callgate::message::History;
use callgate::state::MemoryStore;
use callgate::{ToolCall, ToolError, ToolExecutor, ToolResponse};

use super::{Listener, Log, abort_reason, ending, push_call, session, user};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

fn endings(log: &Log) -> Vec<String> {
    let told = |line: String| {
        let line = line.split_once('#')?.1.split_once(' ')?.1.split(" after ").next()?.to_owned();
        ["finished", "aborted", "failed"].iter().any(|word| line.starts_with(word)).then_some(line)
    };
    log.take().into_iter().filter_map(told).collect()
}

#[test]
fn only_the_first_ending_counts() {
    let clock = noon();
    let failed = RunEnd::Failed { error: "boom".into() };
    for (first, second, told) in
        [(ending(), failed.clone(), "finished stop"), (failed, ending(), "failed boom")]
    {
        let (mut session, log) = session("policies: []");
        session.begin(ModelConfig::default()).unwrap();
        let _ = clock.block_on(session.end(&first));
        let _ = clock.block_on(session.end(&second));
        let _ = session.close();
        drop(session);
        assert_eq!(endings(&log), [told]);
    }
}

#[test]
fn aborted_run_ends_as_aborted_whatever_the_host_reports() {
    let clock = noon();
    let (mut session, log) = session("policies: []");
    session.begin(ModelConfig::default()).unwrap();
    session.run().abort("the user left");
    session.run().abort("and something else");
    let _ = clock.block_on(session.end(&ending()));
    assert_eq!(endings(&log), ["aborted the user left"]);
}

#[test]
fn unended_run_is_reported_when_its_session_is_dropped() {
    let (mut closed, heard) = session("policies: []");
    closed.begin(ModelConfig::default()).unwrap();
    let _ = closed.close();
    assert_eq!(endings(&heard), ["aborted its session was closed"]);
    let (mut dropped, heard) = session("policies: []");
    dropped.begin(ModelConfig::default()).unwrap();
    drop(dropped);
    assert_eq!(endings(&heard), ["aborted its session was dropped"]);
    let (unbegun, heard) = session("policies: []");
    drop(unbegun);
    assert_eq!(endings(&heard), [""; 0]);
}

#[test]
fn aborted_run_starts_nothing() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let (mut session, _) = session("policies: []");
    let base = session.begin(ModelConfig::default()).unwrap();
    session.run().abort("enough");
    assert_eq!(abort_reason(session.chunk(Chunk::text("t", "x"))), "enough");
    assert_eq!(abort_reason(clock.block_on(session.before_model(base))), "enough");
    let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
    assert_eq!(kind_and_code(&outcome), ("halted", "session_halted"));
    let outcomes = clock.block_on(session.execute_round(vec![call("look", json!({}))], &tool));
    assert_eq!(kind_and_code(&outcomes[0]), ("halted", "session_halted"));
    assert_eq!(tool.count(), 0);
}

/// A tool that aborts the run while it runs, and never returns. It records its cancellation.
struct Endless {
    run: RunContext,
    cancelled: Arc<AtomicU32>,
}

struct CancelGuard(Arc<AtomicU32>);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl ToolExecutor for Endless {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        let _guard = CancelGuard(Arc::clone(&self.cancelled));
        self.run.abort("the user pressed stop");
        pending().await
    }
}

/// A tool that never answers.
struct Unanswering;

impl ToolExecutor for Unanswering {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        pending().await
    }
}

#[test]
fn running_tool_is_cancelled_on_abort_and_its_siblings_do_not_start() {
    for (once, kind) in [(false, "aborted"), (true, "indeterminate")] {
        let clock = noon();
        let tools: callgate::ToolDescriptor =
            callgate::json::from_value(json!({ "name": "pay", "once": once })).unwrap();
        let engine = rules("policies: []").tools([tools]).clock(clock.clone()).build();
        let mut session = engine.session().with_name("talk");
        session.begin(ModelConfig::default()).unwrap();
        let tool = Endless { run: session.run().clone(), cancelled: Arc::default() };
        let calls = vec![call("pay", json!({})), call("pay", json!({}))];
        let outcomes = clock.block_on(session.execute_round(calls, &tool));
        assert_eq!(kind_and_code(&outcomes[0]), (kind, "aborted"));
        assert!(outcomes[0].reason.message.contains("the user pressed stop"), "{:?}", outcomes[0].reason);
        assert_eq!(kind_and_code(&outcomes[1]), ("halted", "session_halted"));
        assert_eq!(tool.cancelled.load(Ordering::SeqCst), 1);
    }
}

/// A tool that fails, and meanwhile its user gives up.
struct Failing(RunContext);

impl ToolExecutor for Failing {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        self.0.abort("the user pressed stop");
        Err(ToolError::new("down"))
    }
}

#[test]
fn an_aborted_run_does_not_wait_for_the_next_attempt_of_a_call() {
    let clock = noon();
    let retry = "policies: [ { id: again, match: look, retry: { attempts: 2, backoff: { initial: 1h, max: 1h }, idempotent: true } } ]";
    let mut session = rules(retry).clock(clock.clone()).build().session();
    let tool = Failing(session.run().clone());
    let before = clock.now();
    let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
    assert_eq!((kind_and_code(&outcome), clock.now()), (("aborted", "aborted"), before));
}

#[test]
fn an_aborted_run_does_not_wait_for_limits() {
    for limit in [
        "rate_limit: { limit: 1, per: 1h, on_exceed: wait, max_wait: 2h }",
        "concurrency: { max: 1, on_exceed: wait, max_wait: 2h }",
    ] {
        let clock = noon();
        let engine =
            rules(&format!("policies: [ {{ id: one, match: look, {limit} }} ]")).clock(clock.clone()).build();
        let (mut first, mut second) = (engine.session(), engine.session());
        let (run, tool) = (second.run().clone(), Tool::counting(&clock));
        let before = clock.now();
        let outcome = clock.block_on(async {
            let holding = first.execute(call("look", json!({})), &Unanswering);
            let waiting = second.execute(call("look", json!({})), &tool);
            let aborting = async { run.abort("enough") };
            tokio::select! {
                biased;
                _ = holding => panic!("the tool does not answer"),
                (outcome, ()) = async { tokio::join!(waiting, aborting) } => outcome,
            }
        });
        assert_eq!((kind_and_code(&outcome), clock.now()), (("halted", "aborted"), before), "{limit}");
        assert_eq!(tool.count(), 0);
    }
}

#[test]
fn i7_cancelled_call_is_not_run_again() {
    let clock = noon();
    let store = Arc::new(MemoryStore::default());
    let pay: callgate::ToolDescriptor =
        callgate::json::from_value(json!({ "name": "pay", "once": true })).unwrap();
    let engine =
        || rules("policies: []").tools([pay.clone()]).clock(clock.clone()).store(store.clone()).build();
    let mut history = user("pay");
    push_call(&mut history, "c1", "pay", json!({}));
    let unsettled: History = history.clone();
    let mut first = engine().session().with_name("talk");
    first.begin(ModelConfig::default()).unwrap();
    let tool = Endless { run: first.run().clone(), cancelled: Arc::default() };
    clock.block_on(first.run_round(&mut history, &tool)).unwrap();
    // The process with the newer history is lost.
    let mut history = unsettled;
    let counting = Tool::counting(&clock);
    let round = clock.block_on(engine().session().with_name("talk").resume(&mut history, &counting)).unwrap();
    assert_eq!((round.outcomes[0].outcome.name(), counting.count()), ("indeterminate", 0));
}

#[test]
fn run_after_an_aborted_one_is_not_affected() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let (mut session, _) = session("policies: []");
    session.begin(ModelConfig::default()).unwrap();
    session.run().abort("enough");
    clock.block_on(session.execute(call("look", json!({})), &tool));
    let _ = clock.block_on(session.end(&ending()));
    session.begin(ModelConfig::default()).unwrap();
    assert_eq!(kind_and_code(&clock.block_on(session.execute(call("look", json!({})), &tool))).0, "executed");
}

#[test]
fn suspended_run_keeps_its_counts_when_it_is_resumed() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: cap, budget: { calls: 1, on_exceed: deny } }
  - { id: ask, match: pay, approval: {} }";
    for (name, kind) in [("pay", "denied"), ("look", "executed")] {
        let mut session = rules(text).clock(clock.clone()).build().session();
        let mut history = user("look and go on");
        session.begin(ModelConfig::default()).unwrap();
        let parts = [("c1", "look"), ("c2", name)]
            .map(|(id, tool)| callgate::message::Part::call(id, tool, json!({})));
        // A call that requires approval before the budget is exhausted.
        history.push(callgate::message::Message::new(
            callgate::message::Role::Assistant,
            parts.into_iter().rev().collect(),
        ));
        clock.block_on(session.run_round(&mut history, &tool)).unwrap();
        let _ = clock.block_on(session.end(&ending()));
        session.begin(ModelConfig::default()).unwrap();
        let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
        assert_eq!(outcome.outcome.name(), kind, "{name}");
    }
}

#[test]
fn abort_before_the_start_ends_the_first_run() {
    let (mut session, _) = session("policies: []");
    let held = session.run().clone();
    session.begin(ModelConfig::default()).unwrap();
    held.abort("from outside");
    assert_eq!(abort_reason(session.chunk(Chunk::text("t", "x"))), "from outside");
}

#[test]
fn deferred_work_runs_after_the_ending_and_cannot_fail_it() {
    let clock = noon();
    let log = Log::default();
    let listener = Listener { name: "ear", log: log.clone() };
    let mut session = rules("policies: []").middleware(listener).build().session();
    session.begin(ModelConfig::default()).unwrap();
    let (first, third) = (log.clone(), log.clone());
    session.run().defer(Box::pin(async move {
        first.record("first");
        Ok(())
    }));
    session.run().defer(Box::pin(async { Err("no network".into()) }));
    session.run().defer(Box::pin(async { panic!("clumsy") }));
    session.run().defer(Box::pin(async move {
        third.record("last");
        Ok(())
    }));
    let wrong = clock.block_on(async { session.end(&ending()).await.finish().await });
    assert_eq!(wrong, ["no network", "deferred work panicked"]);
    let heard = log.take();
    let ended = heard.iter().position(|line| line.contains("finished")).unwrap();
    assert_eq!(heard[ended + 1..], ["first", "last"]);
}

#[test]
fn turn_is_captured_once_retried_once_and_reported_on_failure() {
    let clock = noon();
    let kept = AtomicU32::new(0);
    let keep = |fails: u32| {
        let kept = &kept;
        move || {
            let time = kept.fetch_add(1, Ordering::SeqCst);
            async move { if time < fails { Err(format!("failure {time}").into()) } else { Ok(()) } }
        }
    };
    let (mut session, _) = session("policies: []");
    session.begin(ModelConfig::default()).unwrap();
    assert_eq!(
        clock.block_on(session.capture_turn(keep(2))),
        Err("failure 0; and once more: failure 1".into())
    );
    kept.store(0, Ordering::SeqCst);
    assert_eq!(clock.block_on(session.capture_turn(keep(1))), Ok(()));
    assert_eq!(clock.block_on(session.capture_turn(keep(9))), Ok(()));
    assert_eq!(kept.load(Ordering::SeqCst), 2);
    // The next run captures its own.
    session.begin(ModelConfig::default()).unwrap();
    let told = clock.block_on(session.capture_turn(|| async { panic!("clumsy") })).unwrap_err();
    assert_eq!(told.to_string().matches("capturing the turn panicked").count(), 2);
    assert_eq!(clock.block_on(session.capture_turn(|| async { Ok(()) })), Ok(()));
}

#[test]
fn policy_can_stop_the_run_at_any_point() {
    let clock = noon();
    let text = "policies:
  - id: not-when-frozen
    match: { where: [ { path: $.context.frozen, eq: true } ] }
    halt: { message: 'frozen for {{ context.tenant }}' }";
    let frozen = json!({ "frozen": true, "tenant": "acme" });
    let engine = rules(text).build();
    let mut session = engine.session().with_context(frozen);
    assert_eq!(abort_reason(session.begin(ModelConfig::default())), "frozen for acme");
    let mut going = engine.session().with_context(json!({ "frozen": false }));
    let base = going.begin(ModelConfig::default()).unwrap();
    clock.block_on(going.before_model(base)).unwrap();
    // An undecided condition stops it: a value that is not a boolean cannot be compared with one.
    let mut unclear = engine.session().with_context(json!({ "frozen": "yes", "tenant": "acme" }));
    assert_eq!(abort_reason(unclear.begin(ModelConfig::default())), "frozen for acme");
}

/// A hook that fails in this way when the run ends.
struct FailingHook(fn() -> Result<(), HookError>);

impl Middleware for FailingHook {
    fn id(&self) -> &str {
        "fails"
    }
    fn on_end(&self, _: &RunContext, _: &RunEnd, _: &RunStats) -> Result<(), HookError> {
        (self.0)()
    }
    fn on_session_end(&self, _: &RunContext) {
        panic!("a secret")
    }
}

/// The hook failures that observers receive.
#[derive(Clone, Default)]
struct Failures(Log);

impl Observer for Failures {
    fn on_outcome(&self, _: &callgate::Outcome) {}
    fn on_hook_failure(&self, failure: &HookFailure<'_>) {
        assert!(!failure.request_id.is_empty());
        self.0.record(format!("{} {}: {}", failure.hook, failure.point, failure.message));
    }
}

#[test]
fn end_hook_error_is_returned_and_reported_and_other_hooks_still_run() {
    let clock = noon();
    for (how, message) in
        [((|| Err("no database".into())) as fn() -> _, "no database"), (|| panic!("a secret"), "it panicked")]
    {
        let (log, failures) = (Log::default(), Failures::default());
        let engine = rules("policies: []").observer(failures.clone()).middleware(FailingHook(how));
        let engine = engine.middleware(Listener { name: "ear", log: log.clone() }).build();
        let mut session = engine.session();
        session.begin(ModelConfig::default()).unwrap();
        session.run().defer(Box::pin(async { Err("no mail".into()) }));
        let wrong = clock.block_on(async { session.end(&ending()).await.finish().await });
        let own = format!("the hook `fails` failed at the end of the run: {message}");
        assert_eq!(wrong, [own, "no mail".to_owned()]);
        assert_eq!(endings(&log), ["finished stop"]);
        assert_eq!(failures.0.take(), [format!("fails on_end: {message}")]);
        // The same when a session is closed or dropped.
        session.begin(ModelConfig::default()).unwrap();
        assert_eq!(clock.block_on(session.close().finish()).len(), 1);
        let told = [format!("fails on_end: {message}"), "fails on_session_end: it panicked".to_owned()];
        assert_eq!(failures.0.take(), told);
        session.begin(ModelConfig::default()).unwrap();
        drop(session);
        assert_eq!(failures.0.take(), [format!("fails on_end: {message}")]);
    }
}

#[test]
fn hook_panics_are_reported_with_their_point_and_without_their_message() {
    let clock = noon();
    type PanickingHook = fn(ToolHooks) -> ToolHooks;
    let cases: [(&str, PanickingHook); 5] = [
        ("concerns", |hook| hook.with_filter(|_| panic!("a secret"))),
        ("before", |hook| hook.before(|_| -> BeforeAction { panic!("a secret") })),
        ("around", |hook| hook.around(|_, _| panic!("a secret"))),
        ("on_error", |hook| hook.on_error(|_, _| panic!("a secret"))),
        ("after", |hook| hook.after(|_| panic!("a secret"))),
    ];
    for (point, hook) in cases {
        let failures = Failures::default();
        let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, Err(ToolError::new("down")))]);
        let engine =
            rules("policies: []").observer(failures.clone()).middleware(hook(ToolHooks::new("clumsy")));
        let outcome = clock.block_on(engine.build().session().execute(call("look", json!({})), &tool));
        assert!(!outcome.reason.message.contains("secret"), "{outcome:?}");
        let told = failures.0.take();
        assert!(
            !told.is_empty() && told.iter().all(|line| *line == format!("clumsy {point}: it panicked")),
            "{told:?}"
        );
        let ran = matches!(point, "on_error" | "after");
        assert_eq!(tool.count() > 0, ran, "{point}");
    }
}
