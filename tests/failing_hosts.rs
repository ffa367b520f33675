//! Stores and clocks that fail, or do what they rarely do, while a call is executed.

use std::sync::Arc;
use std::time::Duration;

use callgate::OutcomeKind;
use callgate::ToolError;
use callgate::host::{
    BoxFuture, CacheEntry, CacheSpace, Clock, Lookup, ManualClock, Refusal, StateStore, StoreFuture, Take,
};
use callgate::state::MemoryStore;
use jiff::Timestamp;
use serde_json::json;

use crate::workshop::{Tool, call, ended, noon, rules, run};

/// A store that fails, in the ways in which the one of the other tests does not.
enum Failing {
    /// Before there is a future.
    AtOnce,
    /// When a slot is given back.
    GivingBack,
    /// It says that there is enough at once, and there never is.
    Lying,
}

impl StateStore for Failing {
    fn take<'a>(&'a self, _: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        match self {
            Self::AtOnce => panic!("a mistake in the store"),
            Self::GivingBack => Box::pin(async { Ok(Vec::new()) }),
            Self::Lying => Box::pin(async {
                let refusal = |index| Refusal { index, retry_after: Some(Duration::ZERO) };
                Ok((0..takes.len()).map(refusal).collect())
            }),
        }
    }
    fn give_back(&self, _: &str) {
        panic!("a mistake in the store")
    }
    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    fn cache_get<'a>(&'a self, _: Timestamp, _: CacheSpace<'a>, _: &'a str) -> StoreFuture<'a, Lookup> {
        panic!("a mistake in the store")
    }
    fn cache_put<'a>(&'a self, _: CacheSpace<'a>, _: &'a str, _: CacheEntry, _: u64) -> StoreFuture<'a, ()> {
        panic!("a mistake in the store")
    }
    fn cache_clear<'a>(&'a self, _: &'a str) -> StoreFuture<'a, ()> {
        panic!("a mistake in the store")
    }
}

#[test]
fn a_store_that_panics_takes_no_outcome_with_it() {
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
        let engine = rules(&text).clock(clock.clone()).store(Arc::new(store)).build();
        let tool = Tool::counting(&clock);
        let round = vec![call("search", json!({})), call("other", json!({}))];
        let outcomes = clock.drive(engine.session().execute_round(round, &tool));
        assert_eq!(ended(&outcomes[0]), expected, "{policy}");
        assert_eq!(outcomes[1].outcome, OutcomeKind::Executed, "{policy}: a sibling is not lost");
    }
}

#[tokio::test]
async fn waiting_ends_though_the_store_always_promises() {
    let text = "policies: [ { id: p, match: search, rate_limit: { limit: 1, per: 1h, on_exceed: wait, max_wait: 20ms } } ]";
    let engine = rules(text).store(Arc::new(Failing::Lying)).build();
    let outcome = engine.session().execute(call("search", json!({})), &Tool::counting(&noon())).await;
    assert_eq!(ended(&outcome), ("denied", "rate_limited"));
}

/// A clock that can tell the time and can't wait, as the machine's clock outside of a runtime with timers.
struct Sleepless(ManualClock);

impl Clock for Sleepless {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        panic!("there is no timer")
    }
}

#[test]
fn a_clock_that_can_not_wait_costs_its_call_and_no_other() {
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
        let engine = rules(&text).clock(Sleepless(clock.clone())).build();
        let tool = match policy.starts_with("retry") {
            true => Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("down")))]),
            false => Tool::scripted(&clock, [(Duration::from_secs(9), Ok(json!(1)))]),
        };
        if policy.contains("attempts: on") || policy.contains("count") {
            let quick = Tool::counting(&clock);
            clock.drive(engine.session().execute(call("search", json!({})), &quick));
        }
        let mut session = engine.session();
        let other = Tool::counting(&clock);
        let outcome = clock.drive(session.execute(call("search", json!({})), &tool));
        assert_eq!((ended(&outcome), tool.count()), (expected, runs), "{policy}: {outcome:?}");
        let labelled = session.state().document()["labels"] == json!(["seen"]);
        assert_eq!(labelled, runs > 0, "{policy}: what may have run counts as run");
        let next = clock.drive(session.execute(call("other", json!({})), &other));
        assert_eq!(next.outcome, OutcomeKind::Executed);
    }
}

#[test]
fn without_its_store_a_limit_that_lets_pass_takes_no_other_with_it() {
    let clock = noon();
    let text = "policies:
      - { id: store, match: search, rate_limit: { limit: 5, per: 1h, on_store_error: allow } }
      - { id: run, match: search, rate_limit: { limit: 1, per: run } }";
    let engine = rules(text).clock(clock.clone()).store(Arc::new(Failing::AtOnce)).build();
    let tool = Tool::counting(&clock);
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    let ends: Vec<_> = outcomes.iter().map(ended).collect();
    assert_eq!(ends, [("executed", "unmatched"), ("denied", "rate_limited")]);
}

/// Somebody gives a slot back just when another one is refused.
struct JustFreed(MemoryStore);

impl StateStore for JustFreed {
    fn take<'a>(&'a self, now: Timestamp, takes: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        Box::pin(async move {
            let refusals = self.0.take(now, takes).await?;
            if !refusals.is_empty() {
                self.0.give_back(&takes[0].key);
            }
            Ok(refusals)
        })
    }
    fn give_back(&self, _: &str) {}
    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        self.0.slot_freed()
    }
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, Lookup> {
        self.0.cache_get(now, space, key)
    }
    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.0.cache_put(space, key, entry, generation)
    }
    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.0.cache_clear(space)
    }
}

#[test]
fn a_slot_that_comes_free_while_it_is_asked_for_is_not_missed() {
    let clock = noon();
    let text =
        "policies: [ { id: p, match: search, concurrency: { max: 1, on_exceed: wait, max_wait: 1h } } ]";
    let store = Arc::new(JustFreed(MemoryStore::default()));
    let engine = rules(text).clock(clock.clone()).store(store).build();
    let (tool, start) = (Tool::counting(&clock), clock.now());
    let outcomes = run(&clock, &mut engine.session(), &tool, &vec![call("search", json!({})); 2]);
    assert!(outcomes.iter().all(|outcome| outcome.outcome == OutcomeKind::Executed), "{outcomes:?}");
    assert_eq!(clock.now(), start, "it waited for what was there");
}
