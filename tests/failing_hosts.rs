//! Stores and clocks that fail or behave unusually while a call executes.

use std::sync::Arc;
use std::time::Duration;

use callgate::OutcomeKind;
use callgate::ToolError;
use callgate::host::{
    BoxFuture, Clock, LimitAcquisition, LimitRefusal, LimitStore, ManualClock, StoreFuture,
};
use callgate::json::json;
use callgate::state::MemoryStore;
use jiff::Timestamp;

use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules, run};

/// A store that fails in ways that other tests do not cover.
enum Failing {
    /// It panics before it returns a future.
    AtOnce,
    /// It panics when a slot is released.
    GivingBack,
    /// It always reports an immediate retry, which never succeeds.
    Lying,
}

impl Alteration for Failing {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self {
            Self::AtOnce => panic!("a mistake in the store"),
            Self::GivingBack | Self::Lying => good,
        }
    }
    fn take<'a>(
        &'a self,
        good: StoreFuture<'a, Vec<LimitRefusal>>,
        _: &'a MemoryStore,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        let refusal = |index| LimitRefusal { index, retry_after: Some(Duration::ZERO) };
        match self {
            Self::Lying => Box::pin(async move { Ok((0..takes.len()).map(refusal).collect()) }),
            Self::AtOnce | Self::GivingBack => good,
        }
    }
    fn give_back(&self, _: &MemoryStore, _: &str) {
        panic!("a mistake in the store")
    }
}

#[test]
fn panicking_store_loses_no_outcome() {
    for (store, policy, expected) in [
        (Failing::AtOnce, "rate_limit: { limit: 1, per: 1h }", ("denied", "store_unavailable")),
        (
            Failing::AtOnce,
            "rate_limit: { limit: 1, per: 1h, on_store_error: allow }",
            ("executed", "unmatched"),
        ),
        (Failing::AtOnce, "cache: { ttl: 1h, invalidate_on: '*' }", ("executed", "unmatched")),
        (
            Failing::AtOnce,
            "around: { script: 'cache_set(1, 2, \"1h\"); if is_null(cache_get(1)) { next(input) }' }",
            ("executed", "unmatched"),
        ),
        (Failing::GivingBack, "concurrency: { max: 1 }", ("executed", "unmatched")),
    ] {
        let clock = noon();
        let text = format!("policies: [ {{ id: p, match: search, {policy} }} ]");
        let engine = rules(&text).clock(clock.clone()).store(Arc::new(Altered::by(store))).build();
        let tool = Tool::counting(&clock);
        let round = vec![call("search", json!({})), call("other", json!({}))];
        let outcomes = clock.block_on(engine.session().execute_round(round, &tool));
        assert_eq!(kind_and_code(&outcomes[0]), expected, "{policy}");
        assert_eq!(outcomes[1].outcome, OutcomeKind::Executed, "{policy}: a sibling is not lost");
    }
}

#[tokio::test]
async fn wait_ends_even_if_the_store_always_promises_a_retry() {
    let text = "policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1h, on_exceed: wait, max_wait: 20ms } } ]";
    let engine = rules(text).store(Arc::new(Altered::by(Failing::Lying))).build();
    let outcome = engine.session().execute(call("search", json!({})), &Tool::counting(&noon())).await;
    assert_eq!(kind_and_code(&outcome), ("denied", "rate_limited"));
}

/// A clock that tells the time but cannot sleep, like the system clock outside a runtime with timers.
struct ClockWithoutTimers(ManualClock);

impl Clock for ClockWithoutTimers {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        panic!("there is no timer")
    }
}

#[test]
fn clock_that_cannot_sleep_fails_only_its_call() {
    for (policy, expected, runs) in [
        ("timeout: 1s", ("indeterminate", "internal_error"), 1),
        ("retry: { attempts: 2, idempotent: true }", ("failed", "internal_error"), 1),
        (
            "rate_limit: { limit: 1, per: 1h, cost: 0.5, burst: 0.4, on_exceed: wait, max_wait: 3h }",
            ("denied", "rate_limited"),
            0,
        ),
        (
            "rate_limit: { limit: 1, per: 1h, count: attempts, on_exceed: wait, max_wait: 3h }",
            ("denied", "internal_error"),
            0,
        ),
    ] {
        let clock = noon();
        let text = format!(
            "policies: [ {{ id: p, match: search, {policy} }}, {{ id: seen, match: search, label: {{ add: [seen] }} }} ]"
        );
        let engine = rules(&text).clock(ClockWithoutTimers(clock.clone())).build();
        let tool = match policy.starts_with("retry") {
            true => Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("down")))]),
            false => Tool::scripted(&clock, [(Duration::from_secs(9), Ok(json!(1)))]),
        };
        if policy.contains("attempts: on") || policy.contains("count") {
            let quick = Tool::counting(&clock);
            clock.block_on(engine.session().execute(call("search", json!({})), &quick));
        }
        let mut session = engine.session();
        let other = Tool::counting(&clock);
        let outcome = clock.block_on(session.execute(call("search", json!({})), &tool));
        assert_eq!((kind_and_code(&outcome), tool.count()), (expected, runs), "{policy}: {outcome:?}");
        let labelled = session.state().document()["labels"] == json!(["seen"]);
        assert_eq!(labelled, runs > 0, "{policy}: what may have run counts as run");
        let next = clock.block_on(session.execute(call("other", json!({})), &other));
        assert_eq!(next.outcome, OutcomeKind::Executed);
    }
}

#[test]
fn limit_that_allows_on_store_error_does_not_affect_other_limits() {
    let clock = noon();
    let text = "policies:
      - { id: store, match: search, rate_limit: { limit: 5, per: 1h, on_store_error: allow } }
      - { id: run, match: search, rate_limit: { limit: 1, per: run } }";
    let engine = rules(text).clock(clock.clone()).store(Arc::new(Altered::by(Failing::AtOnce))).build();
    let tool = Tool::counting(&clock);
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    let ends: Vec<_> = outcomes.iter().map(kind_and_code).collect();
    assert_eq!(ends, [("executed", "unmatched"), ("denied", "rate_limited")]);
}

/// A slot is released just when another call is refused.
struct JustFreed;

impl Alteration for JustFreed {
    fn take<'a>(
        &'a self,
        good: StoreFuture<'a, Vec<LimitRefusal>>,
        inner: &'a MemoryStore,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        Box::pin(async move {
            let refusals = good.await?;
            if !refusals.is_empty() {
                inner.release(&takes[0].key);
            }
            Ok(refusals)
        })
    }
    fn give_back(&self, _: &MemoryStore, _: &str) {}
}

#[test]
fn slot_released_during_a_request_is_not_missed() {
    let clock = noon();
    let text =
        "policies: [ { id: p, match: search, concurrency: { max: 1, on_exceed: wait, max_wait: 1h } } ]";
    let store = Arc::new(Altered::by(JustFreed));
    let engine = rules(text).clock(clock.clone()).store(store).build();
    let (tool, start) = (Tool::counting(&clock), clock.now());
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    assert!(outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Executed), "{outcomes:?}");
    assert_eq!(clock.now(), start, "it waited although a slot was free");
}
