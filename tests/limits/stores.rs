//! Limits and caches with an unavailable store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use callgate::host::{StoreError, StoreFuture};
use callgate::json::json;

use super::EXECUTED;
use crate::corrupted_stores::{Alteration, Altered};
use crate::fixtures::{Tool, call, kind_and_code, noon, rules};

/// A store that is unavailable, in one of several ways.
#[derive(Clone, Copy)]
enum Broken {
    Errors,
    Panics,
    Hangs,
}

impl Alteration for Broken {
    fn answer<'a, T: Send + 'a>(&'a self, _: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            match self {
                Self::Errors => Err(StoreError::Unavailable("connection refused".to_owned())),
                Self::Panics => panic!("a mistake in the store"),
                Self::Hangs => std::future::pending().await,
            }
        })
    }
}

#[test]
fn without_its_store_a_limit_denies_by_default_and_a_cache_is_bypassed() {
    for store in [Broken::Errors, Broken::Panics, Broken::Hangs] {
        for (policy, expected) in [
            ("rate_limit: { limit: 5, per: 1m }", ("denied", "store_unavailable")),
            ("concurrency: { max: 5 }", ("denied", "store_unavailable")),
            ("rate_limit: { limit: 5, per: 1m, on_exceed: halt }", ("halted", "store_unavailable")),
            ("rate_limit: { limit: 5, per: 1m, on_store_error: allow }", EXECUTED),
            ("rate_limit: { limit: 5, per: run }", EXECUTED),
            ("cache: { ttl: 1m, invalidate_on: search }", EXECUTED),
        ] {
            let clock = noon();
            let text = format!("policies: [ {{ id: p, match: search, {policy} }} ]");
            let engine = rules(&text).clock(clock.clone()).store(Arc::new(Altered::by(store))).build();
            let tool = Tool::counting(&clock);
            let outcome = clock.block_on(engine.session().execute(call("search", json!({})), &tool));
            assert_eq!(kind_and_code(&outcome), expected, "{policy}");
            assert_eq!(tool.count(), usize::from(expected == EXECUTED));
        }
    }
}

/// A store that fails once.
struct FailsOnce(AtomicBool);

impl Alteration for FailsOnce {
    fn answer<'a, T: Send + 'a>(&'a self, good: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        match self.0.swap(false, Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::Unavailable("not now".to_owned())) }),
            false => good,
        }
    }
}

/// Attempts are counted first. If that fails, the limits of executions are not asked any more, and one of them may have halted the run.
#[test]
fn a_failure_for_one_limit_halts_if_a_limit_that_is_not_asked_may_do_so() {
    for (executions, expected) in [
        ("rate_limit: { limit: 1, per: 1h, on_exceed: halt }", ("halted", "store_unavailable")),
        (
            "rate_limit: { limit: 1, per: 1h, on_exceed: halt, on_store_error: allow }",
            ("denied", "store_unavailable"),
        ),
        ("rate_limit: { limit: 1, per: run, on_exceed: halt }", ("halted", "rate_limited")),
        ("rate_limit: { limit: 2, per: run, on_exceed: halt }", ("denied", "store_unavailable")),
        ("rate_limit: { limit: 1, per: 1h }", ("denied", "store_unavailable")),
    ] {
        let clock = noon();
        let text = format!(
            "policies: [ {{ id: e, match: search, {executions} }},
                         {{ id: a, match: search, rate_limit: {{ limit: 9, per: 1h, count: attempts }} }} ]"
        );
        let store = Arc::new(Altered::by(FailsOnce(AtomicBool::new(false))));
        let engine = rules(&text).clock(clock.clone()).store(store.clone()).build();
        let (mut session, tool) = (engine.session(), Tool::counting(&clock));
        let mut search = || clock.block_on(session.execute(call("search", json!({})), &tool));
        assert_eq!(kind_and_code(&search()), EXECUTED, "{executions}");
        store.by.0.store(true, Ordering::SeqCst);
        assert_eq!(kind_and_code(&search()), expected, "{executions}");
        assert_eq!(tool.count(), 1, "{executions}");
    }
}
