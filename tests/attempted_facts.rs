//! Facts with `when: attempted`: they are stored when a tool starts, however the call ends, and by a process that ends meanwhile.

use std::future::{Future, pending};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use callgate::host::{RecordKey, StateStore, StoreError, StoreFuture};
use callgate::json::{Value, json};
use callgate::{Session, ToolCall, ToolError, ToolExecutor, ToolResponse};

use crate::corrupted_stores::{Alteration, Altered, Shared};
use crate::fixtures::{Tool, call, keys, kind_and_code, noon, rules};

const REFUNDS: &str = "policies:
  - { id: charges, match: get_charge, fact: { name: charge, key: input.id, value: result } }
  - { id: forget, match: refund, fact: { name: charge, key: input.id, forget: true, when: attempted } }
  - { id: started, match: refund, fact: { name: started, collect: input.id, when: attempted } }
  - { id: known, match: refund, require: { values: ['session.facts.charge[input.id]'] } }
";

struct Hanging;

impl ToolExecutor for Hanging {
    async fn execute(&self, _: &ToolCall) -> Result<ToolResponse, ToolError> {
        pending().await
    }
}

fn drop_when_pending(future: impl Future) {
    let mut future = Box::pin(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn facts(session: &Session) -> &Value {
    &session.state().document()["facts"]
}

#[test]
fn a_call_that_was_dropped_while_its_tool_ran_has_stored_its_facts() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let mut session = rules(REFUNDS).clock(clock.clone()).build().session();
    clock.block_on(session.execute(call("get_charge", json!({"id": "c1"})), &tool));
    drop_when_pending(session.execute(call("refund", json!({"id": "c1"})), &Hanging));
    assert_eq!(facts(&session), &json!({"charge": {}, "started": ["c1"]}));
    let again = clock.block_on(session.execute(call("refund", json!({"id": "c1"})), &tool));
    assert_eq!(kind_and_code(&again), ("denied", "missing"));
}

/// As if the process ended while the tool ran. Sessions of either kind: recorded ones, and concurrent ones.
#[test]
fn another_process_knows_the_facts_of_a_call_that_never_ended() {
    for recorded in [true, false] {
        let clock = noon();
        let tool = Tool::counting(&clock);
        let store: Arc<dyn StateStore> = Arc::new(Altered::by(Shared));
        let session = || {
            let engine = rules(REFUNDS).keys(keys()).clock(clock.clone()).store(store.clone()).build();
            engine.session().with_name("s")
        };
        let look = ToolCall::new("a", "get_charge", json!({"id": "c1"}));
        let refund = ToolCall::new("b", "refund", json!({"id": "c1"}));
        let again = ToolCall::new("c", "refund", json!({"id": "c1"}));
        let outcome = if recorded {
            let mut session_one = session().with_call_recording();
            clock.block_on(session_one.execute(look, &tool));
            drop_when_pending(session_one.execute(refund, &Hanging));
            std::mem::forget(session_one);
            clock.block_on(session().with_call_recording().execute(again, &tool))
        } else {
            let session_one = session().concurrent();
            clock.block_on(session_one.execute(look, &tool));
            drop_when_pending(session_one.execute(refund, &Hanging));
            clock.block_on(session().concurrent().execute(again, &tool))
        };
        assert_eq!(kind_and_code(&outcome), ("denied", "missing"), "{recorded}");
        assert_eq!(tool.count(), 1);
    }
}

/// A shared store that cannot write the state of sessions.
struct Unwritable;

impl Alteration for Unwritable {
    fn write_record<'a>(&'a self, good: StoreFuture<'a, bool>, key: RecordKey<'a>) -> StoreFuture<'a, bool> {
        match key.space {
            "sessions" => Box::pin(async { Err(StoreError::Unavailable("not now".to_owned())) }),
            _ => good,
        }
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[test]
fn a_call_whose_start_cannot_be_stored_does_not_start() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let store: Arc<dyn StateStore> = Arc::new(Altered::by(Unwritable));
    let engine = rules(REFUNDS).keys(keys()).clock(clock.clone()).store(store).build();
    let mut session = engine.session().with_name("s");
    clock.block_on(session.execute(call("get_charge", json!({"id": "c1"})), &tool));
    let refused = clock.block_on(session.execute(call("refund", json!({"id": "c1"})), &tool));
    assert_eq!(kind_and_code(&refused), ("denied", "store_unavailable"));
    assert_eq!((tool.count(), &session.state().document()["calls"]), (1, &json!({"get_charge": 1})));
}

/// Each run with other arguments is an attempt of its own; a run with the same ones is not.
#[test]
fn a_script_that_calls_a_tool_with_other_arguments_stores_a_fact_for_each() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies:
  - { id: f, match: pay, fact: { name: paid, key: input.to, value: '(session.facts.paid[input.to] ?? 0) + 1', when: attempted } }
  - { id: s, match: pay, around: { script: 'next(#{ to: \"a\" }); next(#{ to: \"a\" }); next(#{ to: \"b\" })' } }
";
    let mut session = rules(text).clock(clock.clone()).build().session();
    let outcome = clock.block_on(session.execute(call("pay", json!({"to": "x"})), &tool));
    assert_eq!((kind_and_code(&outcome), tool.count()), (("executed", "unmatched"), 3));
    assert_eq!(facts(&session), &json!({"paid": {"a": 1, "b": 1}}));
}

#[test]
fn a_retried_call_stores_its_fact_once_and_a_failed_one_keeps_it() {
    let clock = noon();
    let failing = || [(Duration::ZERO, Err(ToolError::new("500")))];
    let tool = Tool::scripted(&clock, failing());
    let text = "policies:
  - { id: f, match: pay, fact: { name: tries, value: '(session.facts.tries ?? 0) + 1', when: attempted } }
  - { id: r, match: pay, retry: { attempts: 3, idempotent: true } }
";
    let mut session = rules(text).clock(clock.clone()).build().session();
    let outcome = clock.block_on(session.execute(call("pay", json!({})), &tool));
    assert_eq!((kind_and_code(&outcome), tool.count()), (("failed", "tool_error"), 3));
    assert_eq!(facts(&session), &json!({"tries": 1}));
}

/// No call that does not reach its tool is an attempt.
#[test]
fn refused_answered_and_cached_calls_store_nothing() {
    for kind in
        ["deny: {}", "approval: {}", "respond: { output: 1 }", "rate_limit: { limit: 1, per: 1h, cost: 2 }"]
    {
        let fact = "when: attempted } }";
        let text = format!(
            "policies: [ {{ id: f, match: pay, fact: {{ name: tries, value: input, {fact}, {{ id: p, match: pay, {kind} }} ]"
        );
        let clock = noon();
        let tool = Tool::counting(&clock);
        let mut session = rules(&text).clock(clock.clone()).build().session();
        clock.block_on(session.execute(call("pay", json!({})), &tool));
        assert_eq!((facts(&session), tool.count()), (&json!({}), 0), "{kind}");
    }
    let text = "policies:
  - { id: f, match: look, fact: { name: looks, value: '(session.facts.looks ?? 0) + 1', when: attempted } }
  - { id: c, match: look, cache: { ttl: 1h, scope: shared } }
";
    let clock = noon();
    let tool = Tool::counting(&clock);
    let mut session = rules(text).clock(clock.clone()).build().session();
    for _ in 0..2 {
        clock.block_on(session.execute(call("look", json!({})), &tool));
    }
    assert_eq!((facts(&session), tool.count()), (&json!({"looks": 1}), 1));
}
