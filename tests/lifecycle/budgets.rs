//! Budgets of runs, conversations and principals.

use std::sync::Arc;

use callgate::host::{ManualClock, StateStore, StoreError, StoreFuture};
use callgate::json::json;
use callgate::lifecycle::{ModelConfig, RunEnd, Usage};
use callgate::message::History;
use callgate::seal::Keys;
use callgate::state::MemoryStore;
use callgate::{Engine, Session};

use super::{abort_reason, ending, push_call, user};
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

/// A store that is unavailable.
struct UnavailableStore;

impl Alteration for UnavailableStore {
    fn answer<'a, T: Send + 'a>(&'a self, _: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(std::future::ready(Err(StoreError::Unavailable("no answer".to_owned()))))
    }
}

fn budget(text: &str) -> String {
    format!("policies: [ {{ id: cap, budget: {{ {text} }} }} ]")
}

fn engine(text: &str, clock: &ManualClock, store: &Arc<dyn StateStore>) -> Engine {
    rules(text).clock(clock.clone()).store(Arc::clone(store)).build()
}

fn memory() -> Arc<dyn StateStore> {
    Arc::new(MemoryStore::default())
}

fn ana(engine: &Engine, talk: &str) -> Session {
    engine.session().with_name(talk).with_context(json!({ "principal": "ana" }))
}

/// One model call with this usage.
async fn turn(session: &mut Session, usage: Usage) -> Result<(), RunEnd> {
    session.before_model(ModelConfig::default()).await?;
    session.report_usage(usage);
    Ok(())
}

fn tokens(tokens: u64) -> Usage {
    Usage { prompt_tokens: tokens / 2, completion_tokens: tokens - tokens / 2, ..Usage::default() }
}

#[test]
fn nothing_starts_once_a_budget_is_exhausted() {
    let clock = noon();
    let paid = |cost: f64| Usage { cost: Some(cost), ..Usage::default() };
    for (bounds, usage, turns) in [
        ("tokens: 100", tokens(40), 3),
        ("tokens: 0", tokens(40), 0),
        ("cost: 0.3", paid(0.1), 3),
        ("iterations: 4", tokens(1), 4),
        ("tokens: 1000, iterations: 2", tokens(1), 2),
    ] {
        let mut session = engine(&budget(bounds), &clock, &memory()).session();
        session.begin(ModelConfig::default()).unwrap();
        for _ in 0..turns {
            clock.block_on(turn(&mut session, usage)).unwrap();
        }
        let reason = abort_reason(clock.block_on(turn(&mut session, usage)));
        assert!(reason.starts_with("the budget `cap` is used up"), "{bounds}: {reason}");
    }
}

#[test]
fn calls_are_counted_when_they_reach_their_tool() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: cap, budget: { calls: 2, on_exceed: deny, message: 'enough, {{ context.principal }}' } }
  - { id: no, match: forbidden, deny: {} }
  - { id: given, match: known, respond: { output: 1 } }
  - { id: ask, match: pay, approval: {} }";
    let mut session = ana(&engine(text, &clock, &memory()), "talk");
    let names = ["forbidden", "look", "known", "pay", "look", "look", "known", "pay"];
    let outcomes: Vec<_> =
        names.iter().map(|name| clock.block_on(session.execute(call(name, json!({})), &tool))).collect();
    let kinds: Vec<_> = outcomes.iter().map(|outcome| outcome.outcome.name()).collect();
    let expected = ["denied", "executed", "answered", "suspended", "executed", "denied", "denied", "denied"];
    assert_eq!((kinds, tool.count()), (expected.to_vec(), 2));
    assert_eq!(kind_and_code(&outcomes[5]), ("denied", "budget_exceeded"));
    assert_eq!(outcomes[5].reason.message, "enough, ana");
}

#[test]
fn one_of_five_parallel_calls_is_allowed() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let mut session = engine(&budget("calls: 1, on_exceed: deny"), &clock, &memory()).session();
    let calls = (0..5).map(|_| call("look", json!({}))).collect();
    let outcomes = clock.block_on(session.execute_round(calls, &tool));
    let denied =
        outcomes.iter().filter(|outcome| kind_and_code(outcome) == ("denied", "budget_exceeded")).count();
    assert_eq!((denied, tool.count()), (4, 1));
}

#[test]
fn exhausted_budget_halts_denies_or_finishes() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    for (then, kind) in [("halt", "halted"), ("deny", "denied"), ("finish", "denied")] {
        let mut session =
            engine(&budget(&format!("tokens: 10, on_exceed: {then}")), &clock, &memory()).session();
        session.begin(ModelConfig::default()).unwrap();
        clock.block_on(turn(&mut session, tokens(10))).unwrap();
        let next = clock.block_on(turn(&mut session, tokens(1)));
        match then {
            "halt" => drop(abort_reason(next)),
            "deny" => assert_eq!(next, Ok(())),
            _ => assert!(matches!(next, Err(RunEnd::Finished { .. })), "{next:?}"),
        }
        let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
        assert_eq!(outcome.outcome.name(), kind);
    }
    assert_eq!(tool.count(), 0);
}

#[test]
fn budget_applies_to_a_run_a_conversation_or_a_principal() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    for (per, kinds) in [
        ("run", ["executed", "executed", "executed", "executed"]),
        ("conversation", ["executed", "denied", "executed", "executed"]),
        ("principal", ["executed", "denied", "denied", "executed"]),
    ] {
        let text = budget(&format!("calls: 1, per: {per}, on_exceed: deny"));
        let engine = engine(&text, &clock, &memory());
        let bob = engine.session().with_name("third").with_context(json!({ "principal": "bob" }));
        let sessions = [ana(&engine, "one"), ana(&engine, "one"), ana(&engine, "two"), bob];
        for (mut session, kind) in sessions.into_iter().zip(kinds) {
            let outcome = clock.block_on(session.execute(call("look", json!({})), &tool));
            assert_eq!(outcome.outcome.name(), kind, "{per}");
        }
    }
}

#[test]
fn unknown_principal_has_no_budget() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let engine = engine(&budget("calls: 5, per: principal, on_exceed: deny"), &clock, &memory());
    let outcome = clock.block_on(engine.session().execute(call("look", json!({})), &tool));
    assert_eq!((kind_and_code(&outcome), tool.count()), (("denied", "store_unavailable"), 0));
}

#[test]
fn i8_unavailable_store_counts_as_an_exhausted_budget() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    for per in ["conversation", "principal"] {
        let store: Arc<dyn StateStore> = Arc::new(Altered::by(UnavailableStore));
        let engine = engine(&budget(&format!("calls: 5, per: {per}")), &clock, &store);
        let outcome = clock.block_on(ana(&engine, "talk").execute(call("look", json!({})), &tool));
        assert_eq!(kind_and_code(&outcome), ("halted", "store_unavailable"));
        let mut session = ana(&engine, "talk");
        session.begin(ModelConfig::default()).unwrap();
        abort_reason(clock.block_on(session.before_model(ModelConfig::default())));
    }
    assert_eq!(tool.count(), 0);
}

#[test]
fn shared_budget_is_exact() {
    let store = memory();
    let clock = noon();
    let engine = engine(&budget("calls: 50, per: principal, on_exceed: deny"), &clock, &store);
    let tool = Tool::counting(&clock);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (engine, tool, clock) = (&engine, &tool, &clock);
            scope.spawn(move || {
                let mut session = ana(engine, &format!("talk {thread}"));
                for _ in 0..10 {
                    clock.block_on(session.execute(call("look", json!({})), tool));
                }
            });
        }
    });
    assert_eq!(tool.count(), 50);
}

/// A store that yields to other tasks with each answer.
struct YieldingStore;

impl Alteration for YieldingStore {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
            good.await
        })
    }
}

#[tokio::test]
async fn budget_is_exact_even_if_all_check_before_any_acquires() {
    let clock = noon();
    let store: Arc<dyn StateStore> = Arc::new(Altered::by(YieldingStore));
    let engine = engine(&budget("calls: 1, per: principal, on_exceed: deny"), &clock, &store);
    let tool = Tool::counting(&clock);
    let mut sessions = ["a", "b", "c"].map(|talk| ana(&engine, talk));
    let [one, two, three] = &mut sessions;
    let outcomes = tokio::join!(
        one.execute(call("look", json!({})), &tool),
        two.execute(call("look", json!({})), &tool),
        three.execute(call("look", json!({})), &tool)
    );
    let outcomes = [outcomes.0, outcomes.1, outcomes.2];
    let denied =
        outcomes.iter().filter(|outcome| kind_and_code(outcome) == ("denied", "budget_exceeded")).count();
    assert_eq!((denied, tool.count()), (2, 1));
}

#[test]
fn several_budgets_apply_together_and_a_refused_call_consumes_none() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: talk, budget: { calls: 3, per: conversation, on_exceed: deny } }
  - { id: run, budget: { calls: 1, on_exceed: deny } }";
    let engine = engine(text, &clock, &memory());
    let kinds = |session: &mut Session| {
        let mut run = || clock.block_on(session.execute(call("look", json!({})), &tool)).outcome.name();
        [run(), run()]
    };
    for _ in 0..3 {
        assert_eq!(kinds(&mut ana(&engine, "one")), ["executed", "denied"]);
    }
    assert_eq!(kinds(&mut ana(&engine, "one")), ["denied", "denied"]);
}

#[test]
fn budget_applies_only_if_its_conditions_match() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - id: trial
    match: { where: [ { path: $.context.plan, eq: trial } ] }
    budget: { calls: 0, on_exceed: deny }";
    let engine = engine(text, &clock, &memory());
    for (plan, kind) in [(json!("trial"), "denied"), (json!("full"), "executed"), (json!(5), "denied")] {
        let mut session = engine.session().with_context(json!({ "plan": plan }));
        assert_eq!(clock.block_on(session.execute(call("look", json!({})), &tool)).outcome.name(), kind);
    }
}

#[test]
fn run_keeps_its_usage_on_resume_and_the_next_one_starts_at_zero() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: cap, budget: { calls: 2, on_exceed: deny } }
  - { id: ask, match: pay, approval: {} }";
    let engine = rules(text).clock(clock.clone()).keys(keys()).build();
    let look = |session: &mut Session, history: &mut History, id: &str| {
        push_call(history, id, "look", json!({}));
        clock.block_on(session.run_round(history, &tool)).unwrap().outcomes.remove(0).outcome.name()
    };
    let mut history = user("look and pay");
    let mut session = engine.session().with_name("talk");
    assert_eq!(look(&mut session, &mut history, "c1"), "executed");
    push_call(&mut history, "c2", "pay", json!({}));
    assert!(clock.block_on(session.run_round(&mut history, &tool)).unwrap().is_suspended());
    let id = history.find_approval_requests()[0].approval_id.clone();
    history.append_approval_response(callgate::message::approval_response(id, true)).unwrap();
    // Another process resumes the same run: nothing was released.
    let mut session = engine.session().with_name("talk");
    let round = clock.block_on(session.resume(&mut history, &tool)).unwrap();
    assert_eq!(round.outcomes[0].outcome.name(), "executed");
    assert_eq!(look(&mut session, &mut history, "c3"), "denied");
    // A new user message starts another run.
    history.push(user("and again").messages()[0].clone());
    let mut session = engine.session().with_name("talk");
    clock.block_on(session.resume(&mut history, &tool)).unwrap();
    assert_eq!(look(&mut session, &mut history, "c4"), "executed");
}

#[test]
fn unverified_history_has_no_budget_left() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let engine = rules(&budget("calls: 5, on_exceed: deny")).clock(clock.clone()).keys(keys()).build();
    let mut history = user("look");
    push_call(&mut history, "c1", "look", json!({}));
    clock.block_on(engine.session().with_name("talk").run_round(&mut history, &tool)).unwrap();
    // The client omits the sealed state.
    let kept = history.messages().iter().filter(|message| {
        message.parts().iter().all(|part| !matches!(part.content(), callgate::message::PartContent::State(_)))
    });
    let mut history = History::new(kept.cloned().collect());
    push_call(&mut history, "c2", "look", json!({}));
    let round = clock.block_on(engine.session().with_name("talk").run_round(&mut history, &tool)).unwrap();
    assert_eq!((kind_and_code(&round.outcomes[0]).0, tool.count()), ("denied", 1));
}

#[test]
fn approved_call_needs_remaining_budget() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let store = memory();
    let text = "policies:
  - { id: cap, budget: { calls: 1, per: conversation, on_exceed: deny } }
  - { id: ask, match: pay, approval: {} }";
    let engine = || rules(text).clock(clock.clone()).keys(keys()).store(Arc::clone(&store)).build();
    let mut history = user("pay");
    push_call(&mut history, "c1", "pay", json!({}));
    let mut session = engine().session().with_name("talk");
    clock.block_on(session.run_round(&mut history, &tool)).unwrap();
    clock.block_on(session.execute(call("look", json!({})), &tool));
    let id = history.find_approval_requests()[0].approval_id.clone();
    history.append_approval_response(callgate::message::approval_response(id, true)).unwrap();
    let round = clock.block_on(engine().session().with_name("talk").resume(&mut history, &tool)).unwrap();
    assert_eq!(kind_and_code(&round.outcomes[0]), ("denied", "budget_exceeded"));
    assert_eq!(tool.count(), 1);
}

#[test]
fn ended_session_leaves_no_usage_to_the_next_run() {
    let clock = noon();
    let mut session = engine(&budget("iterations: 1"), &clock, &memory()).session();
    for _ in 0..2 {
        session.begin(ModelConfig::default()).unwrap();
        clock.block_on(turn(&mut session, tokens(1))).unwrap();
        abort_reason(clock.block_on(turn(&mut session, tokens(1))));
        let _ = clock.block_on(session.end(&ending()));
    }
}
