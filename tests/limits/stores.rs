//! Limits and caches whose store does not answer.

use std::sync::Arc;

use callgate::host::{
    BoxFuture, CacheEntry, CacheSpace, Lookup, Refusal, StateStore, StoreError, StoreFuture, Take,
};
use serde_json::json;

use super::EXECUTED;
use crate::workshop::{Tool, call, ended, noon, rules};

/// A store that is down, in one of the ways in which it can be.
#[derive(Clone, Copy)]
enum Broken {
    Errors,
    Panics,
    Hangs,
}

impl Broken {
    fn answer<'a, T: Send + 'a>(self) -> StoreFuture<'a, T> {
        Box::pin(async move {
            match self {
                Self::Errors => Err(StoreError("connection refused".to_owned())),
                Self::Panics => panic!("a mistake in the store"),
                Self::Hangs => std::future::pending().await,
            }
        })
    }
}

impl StateStore for Broken {
    fn take<'a>(&'a self, _: jiff::Timestamp, _: &'a [Take]) -> StoreFuture<'a, Vec<Refusal>> {
        self.answer()
    }
    fn give_back(&self, _: &str) {}
    fn slot_freed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    fn cache_get<'a>(&'a self, _: jiff::Timestamp, _: CacheSpace<'a>, _: &'a str) -> StoreFuture<'a, Lookup> {
        self.answer()
    }
    fn cache_put<'a>(&'a self, _: CacheSpace<'a>, _: &'a str, _: CacheEntry, _: u64) -> StoreFuture<'a, ()> {
        self.answer()
    }
    fn cache_clear<'a>(&'a self, _: &'a str) -> StoreFuture<'a, ()> {
        self.answer()
    }
}

#[test]
fn without_its_store_a_limit_denies_unless_it_says_otherwise_and_a_cache_is_passed_by() {
    for store in [Broken::Errors, Broken::Panics, Broken::Hangs] {
        for (policy, expected) in [
            ("rate_limit: { limit: 5, per: 1m }", ("denied", "store_unavailable")),
            ("concurrency: { max: 5 }", ("denied", "store_unavailable")),
            ("rate_limit: { limit: 5, per: 1m, on_store_error: allow }", EXECUTED),
            ("rate_limit: { limit: 5, per: run }", EXECUTED),
            ("cache: { ttl: 1m, invalidate_on: search }", EXECUTED),
        ] {
            let clock = noon();
            let text = format!("policies: [ {{ id: p, match: search, {policy} }} ]");
            let engine = rules(&text).clock(clock.clone()).store(Arc::new(store)).build();
            let tool = Tool::counting(&clock);
            let outcome = clock.drive(engine.session().execute(call("search", json!({})), &tool));
            assert_eq!(ended(&outcome), expected, "{policy}");
            assert_eq!(tool.count(), usize::from(expected == EXECUTED));
        }
    }
}
