//! How runs end: once, from anywhere, and with what was put off done afterwards.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callgate::host::{HookFailure, Observer};
use callgate::json::json;
use callgate::lifecycle::{Before, Chunk, Config, Ending, Middleware, RunContext, RunStats, ToolHooks};
use callgate::message::History;
use callgate::state::MemoryStore;
use callgate::{ToolAnswer, ToolCall, ToolError, ToolExecutor};

use super::{Listener, Log, aborted, calling, ending, session, user};
use crate::workshop::{Tool, call, ended, noon, rules};

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
    let failed = Ending::Failed { error: "boom".into() };
    for (first, second, told) in
        [(ending(), failed.clone(), "finished stop"), (failed, ending(), "failed boom")]
    {
        let (mut session, log) = session("policies: []");
        session.begin(Config::default()).unwrap();
        let _ = clock.drive(session.end(&first));
        let _ = clock.drive(session.end(&second));
        let _ = session.close();
        drop(session);
        assert_eq!(endings(&log), [told]);
    }
}

#[test]
fn a_run_that_was_aborted_ends_so_whatever_the_host_took_it_for() {
    let clock = noon();
    let (mut session, log) = session("policies: []");
    session.begin(Config::default()).unwrap();
    session.run().abort("the user left");
    session.run().abort("and something else");
    let _ = clock.drive(session.end(&ending()));
    assert_eq!(endings(&log), ["aborted the user left"]);
}

#[test]
fn a_run_that_nobody_ends_is_told_of_when_its_session_goes() {
    let (mut closed, heard) = session("policies: []");
    closed.begin(Config::default()).unwrap();
    let _ = closed.close();
    assert_eq!(endings(&heard), ["aborted its session was closed"]);
    let (mut dropped, heard) = session("policies: []");
    dropped.begin(Config::default()).unwrap();
    drop(dropped);
    assert_eq!(endings(&heard), ["aborted its session was dropped"]);
    let (unbegun, heard) = session("policies: []");
    drop(unbegun);
    assert_eq!(endings(&heard), [""; 0]);
}

#[test]
fn an_aborted_run_begins_nothing() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let (mut session, _) = session("policies: []");
    let base = session.begin(Config::default()).unwrap();
    session.run().abort("enough");
    assert_eq!(aborted(session.chunk(Chunk::text("t", "x"))), "enough");
    assert_eq!(aborted(clock.drive(session.before_model(base))), "enough");
    let outcome = clock.drive(session.execute(call("look", json!({})), &tool));
    assert_eq!(ended(&outcome), ("halted", "session_halted"));
    let outcomes = clock.drive(session.execute_round(vec![call("look", json!({}))], &tool));
    assert_eq!(ended(&outcomes[0]), ("halted", "session_halted"));
    assert_eq!(tool.count(), 0);
}

/// A tool that ends the run while it runs, and never comes back. It notes that it is given up.
struct Endless {
    run: RunContext,
    given_up: Arc<AtomicU32>,
}

struct GivenUp(Arc<AtomicU32>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl ToolExecutor for Endless {
    async fn execute(&self, _: &ToolCall) -> Result<ToolAnswer, ToolError> {
        let _given_up = GivenUp(Arc::clone(&self.given_up));
        self.run.abort("the user pressed stop");
        pending().await
    }
}

#[test]
fn a_tool_that_runs_is_given_up_and_its_siblings_do_not_begin() {
    for (once, kind) in [(false, "aborted"), (true, "indeterminate")] {
        let clock = noon();
        let tools: callgate::ToolDescriptor =
            callgate::json::from_value(json!({ "name": "pay", "once": once })).unwrap();
        let engine = rules("policies: []").tools([tools]).clock(clock.clone()).build();
        let mut session = engine.session().named("talk");
        session.begin(Config::default()).unwrap();
        let tool = Endless { run: session.run().clone(), given_up: Arc::default() };
        let calls = vec![call("pay", json!({})), call("pay", json!({}))];
        let outcomes = clock.drive(session.execute_round(calls, &tool));
        assert_eq!(ended(&outcomes[0]), (kind, "aborted"));
        assert!(outcomes[0].reason.message.contains("the user pressed stop"), "{:?}", outcomes[0].reason);
        assert_eq!(ended(&outcomes[1]), ("halted", "session_halted"));
        assert_eq!(tool.given_up.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn i7_a_call_that_was_given_up_is_not_run_again() {
    let clock = noon();
    let store = Arc::new(MemoryStore::default());
    let pay: callgate::ToolDescriptor =
        callgate::json::from_value(json!({ "name": "pay", "once": true })).unwrap();
    let engine =
        || rules("policies: []").tools([pay.clone()]).clock(clock.clone()).store(store.clone()).build();
    let mut history = user("pay");
    calling(&mut history, "c1", "pay", json!({}));
    let unsettled: History = history.clone();
    let mut first = engine().session().named("talk");
    first.begin(Config::default()).unwrap();
    let tool = Endless { run: first.run().clone(), given_up: Arc::default() };
    clock.drive(first.round(&mut history, &tool)).unwrap();
    // The process that held the newer history is lost.
    let mut history = unsettled;
    let counting = Tool::counting(&clock);
    let round = clock.drive(engine().session().named("talk").resume(&mut history, &counting)).unwrap();
    assert_eq!((round.outcomes[0].outcome.name(), counting.count()), ("indeterminate", 0));
}

#[test]
fn a_run_after_an_aborted_one_is_not_stopped_by_that() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let (mut session, _) = session("policies: []");
    session.begin(Config::default()).unwrap();
    session.run().abort("enough");
    clock.drive(session.execute(call("look", json!({})), &tool));
    let _ = clock.drive(session.end(&ending()));
    session.begin(Config::default()).unwrap();
    assert_eq!(ended(&clock.drive(session.execute(call("look", json!({})), &tool))).0, "executed");
}

#[test]
fn a_run_that_waits_for_people_goes_on_with_its_counts_when_it_is_begun_again() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: cap, budget: { calls: 1, on_exceed: deny } }
  - { id: ask, match: pay, approval: {} }";
    for (name, kind) in [("pay", "denied"), ("look", "executed")] {
        let mut session = rules(text).clock(clock.clone()).build().session();
        let mut history = user("look and go on");
        session.begin(Config::default()).unwrap();
        let parts = [("c1", "look"), ("c2", name)]
            .map(|(id, tool)| callgate::message::Part::call(id, tool, json!({})));
        // One that asks before the budget is used up.
        history.push(callgate::message::Message::new(
            callgate::message::Role::Assistant,
            parts.into_iter().rev().collect(),
        ));
        clock.drive(session.round(&mut history, &tool)).unwrap();
        let _ = clock.drive(session.end(&ending()));
        session.begin(Config::default()).unwrap();
        let outcome = clock.drive(session.execute(call("look", json!({})), &tool));
        assert_eq!(outcome.outcome.name(), kind, "{name}");
    }
}

#[test]
fn what_took_the_first_run_before_it_began_ends_it_too() {
    let (mut session, _) = session("policies: []");
    let held = session.run().clone();
    session.begin(Config::default()).unwrap();
    held.abort("from outside");
    assert_eq!(aborted(session.chunk(Chunk::text("t", "x"))), "from outside");
}

#[test]
fn what_is_put_off_is_done_after_the_ending_and_fails_nothing() {
    let clock = noon();
    let log = Log::default();
    let listener = Listener { name: "ear", log: log.clone() };
    let mut session = rules("policies: []").middleware(listener).build().session();
    session.begin(Config::default()).unwrap();
    let (first, third) = (log.clone(), log.clone());
    session.run().defer(Box::pin(async move {
        first.note("first");
        Ok(())
    }));
    session.run().defer(Box::pin(async { Err("no network".to_owned()) }));
    session.run().defer(Box::pin(async { panic!("clumsy") }));
    session.run().defer(Box::pin(async move {
        third.note("last");
        Ok(())
    }));
    let wrong = clock.drive(async { session.end(&ending()).await.finish().await });
    assert_eq!(wrong, ["no network", "work that was put off panicked"]);
    let heard = log.take();
    let ended = heard.iter().position(|line| line.contains("finished")).unwrap();
    assert_eq!(heard[ended + 1..], ["first", "last"]);
}

#[test]
fn a_turn_is_kept_once_tried_twice_and_told_when_it_fails() {
    let clock = noon();
    let kept = AtomicU32::new(0);
    let keep = |fails: u32| {
        let kept = &kept;
        move || {
            let time = kept.fetch_add(1, Ordering::SeqCst);
            async move { if time < fails { Err(format!("failure {time}")) } else { Ok(()) } }
        }
    };
    let (mut session, _) = session("policies: []");
    session.begin(Config::default()).unwrap();
    assert_eq!(
        clock.drive(session.capture_turn(keep(2))),
        Err("failure 0; and once more: failure 1".to_owned())
    );
    kept.store(0, Ordering::SeqCst);
    assert_eq!(clock.drive(session.capture_turn(keep(1))), Ok(()));
    assert_eq!(clock.drive(session.capture_turn(keep(9))), Ok(()));
    assert_eq!(kept.load(Ordering::SeqCst), 2);
    // The next run keeps its own.
    session.begin(Config::default()).unwrap();
    let told = clock.drive(session.capture_turn(|| async { panic!("clumsy") })).unwrap_err();
    assert_eq!(told.matches("keeping the turn panicked").count(), 2);
    assert_eq!(clock.drive(session.capture_turn(|| async { Ok(()) })), Ok(()));
}

#[test]
fn a_policy_stops_the_run_wherever_it_stands() {
    let clock = noon();
    let text = "policies:
  - id: not-when-frozen
    match: { where: [ { path: $.context.frozen, eq: true } ] }
    halt: { message: 'frozen for {{ context.tenant }}' }";
    let frozen = json!({ "frozen": true, "tenant": "acme" });
    let engine = rules(text).build();
    let mut session = engine.session().with_context(frozen);
    assert_eq!(aborted(session.begin(Config::default())), "frozen for acme");
    let mut going = engine.session().with_context(json!({ "frozen": false }));
    let base = going.begin(Config::default()).unwrap();
    clock.drive(going.before_model(base)).unwrap();
    // When in doubt it stops: what is no boolean can't be compared with one.
    let mut unclear = engine.session().with_context(json!({ "frozen": "yes", "tenant": "acme" }));
    assert_eq!(aborted(unclear.begin(Config::default())), "frozen for acme");
}

/// A hook that fails in this way when it is told of the end.
struct Fails(fn() -> Result<(), String>);

impl Middleware for Fails {
    fn id(&self) -> &str {
        "fails"
    }
    fn on_end(&self, _: &RunContext, _: &Ending, _: &RunStats) -> Result<(), String> {
        (self.0)()
    }
    fn on_session_end(&self, _: &RunContext) {
        panic!("a secret")
    }
}

/// What observers are told of hooks that failed.
#[derive(Clone, Default)]
struct Failures(Log);

impl Observer for Failures {
    fn on_outcome(&self, _: &callgate::Outcome) {}
    fn on_hook_failure(&self, failure: &HookFailure<'_>) {
        assert!(!failure.request_id.is_empty());
        self.0.note(format!("{} {}: {}", failure.hook, failure.point, failure.message));
    }
}

#[test]
fn an_error_in_a_hook_at_the_end_is_returned_and_reported_and_keeps_no_other_from_being_told() {
    let clock = noon();
    for (how, message) in [
        ((|| Err("no database".to_owned())) as fn() -> _, "no database"),
        (|| panic!("a secret"), "it panicked"),
    ] {
        let (log, failures) = (Log::default(), Failures::default());
        let engine = rules("policies: []").observer(failures.clone()).middleware(Fails(how));
        let engine = engine.middleware(Listener { name: "ear", log: log.clone() }).build();
        let mut session = engine.session();
        session.begin(Config::default()).unwrap();
        session.run().defer(Box::pin(async { Err("no mail".to_owned()) }));
        let wrong = clock.drive(async { session.end(&ending()).await.finish().await });
        let own = format!("the hook `fails` failed at the end of the run: {message}");
        assert_eq!(wrong, [own, "no mail".to_owned()]);
        assert_eq!(endings(&log), ["finished stop"]);
        assert_eq!(failures.0.take(), [format!("fails on_end: {message}")]);
        // Of a session that is closed or dropped the same.
        session.begin(Config::default()).unwrap();
        assert_eq!(clock.drive(session.close().finish()).len(), 1);
        let told = [format!("fails on_end: {message}"), "fails on_session_end: it panicked".to_owned()];
        assert_eq!(failures.0.take(), told);
        session.begin(Config::default()).unwrap();
        drop(session);
        assert_eq!(failures.0.take(), [format!("fails on_end: {message}")]);
    }
}

#[test]
fn every_hook_that_panics_is_reported_with_its_point_and_without_its_words() {
    let clock = noon();
    type Clumsy = fn(ToolHooks) -> ToolHooks;
    let cases: [(&str, Clumsy); 5] = [
        ("concerns", |hook| hook.matching(|_| panic!("a secret"))),
        ("before", |hook| hook.before(|_| -> Before { panic!("a secret") })),
        ("around", |hook| hook.around(|_, _| panic!("a secret"))),
        ("on_error", |hook| hook.on_error(|_, _| panic!("a secret"))),
        ("after", |hook| hook.after(|_| panic!("a secret"))),
    ];
    for (point, hook) in cases {
        let failures = Failures::default();
        let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, Err(ToolError::new("down")))]);
        let engine =
            rules("policies: []").observer(failures.clone()).middleware(hook(ToolHooks::new("clumsy")));
        let outcome = clock.drive(engine.build().session().execute(call("look", json!({})), &tool));
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
