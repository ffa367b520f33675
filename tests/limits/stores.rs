//! Limits and caches with an unavailable store.

use std::sync::Arc;

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
