//! A hostile caller invents keys, requests and sessions through the whole engine, and an honest one is served as before.

use std::sync::Arc;

use callgate::host::StateStore;
use callgate::json::{Value, json};
use callgate::seal::Keys;
use callgate::state::{Capacity, MemoryStore};
use callgate::{Engine, Outcome, ToolCall};
use callgate_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::fixtures::{Tool, kind_and_code, noon, rules};

const SMALL: Capacity = Capacity { limits: 60, records: 60, cached: 60 };

/// Both stores, with small quotas.
fn stores() -> (Vec<Arc<dyn StateStore>>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = SqliteStore::open_with(&directory.path().join("state.db"), SMALL).unwrap();
    (vec![Arc::new(MemoryStore::with_capacity(SMALL)), Arc::new(file)], directory)
}

struct World {
    engine: Engine,
    tool: Tool,
}

impl World {
    /// A process with this store.
    fn over(store: &Arc<dyn StateStore>, text: &str) -> Self {
        let clock = noon();
        let keys = Keys::parse(&"5a".repeat(32)).unwrap();
        let engine = rules(text).clock(clock.clone()).store(Arc::clone(store)).keys(keys).build();
        Self { tool: Tool::counting(&clock), engine }
    }

    /// A call in one of the caller's own sessions, as the gateway makes it.
    fn call(&self, who: &str, session: &str, tool: &str, input: Value) -> Outcome {
        let context = json!({ "tenant": who, "principal": who });
        let session =
            self.engine.session().with_name(format!("{who}/{session}")).with_context(context.clone());
        let call = ToolCall::new("", tool, input).with_context(context);
        let session = session.concurrent_for(who, |_| None);
        // The clock stands still: the store answers from its own thread.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(session.execute(call, &self.tool))
    }
}

fn is_denied(outcome: &Outcome) -> bool {
    outcome.outcome.name() == "denied"
}

#[test]
fn caller_that_invents_limit_keys_exhausts_only_its_own_quota() {
    let (stores, _directory) = stores();
    for store in &stores {
        let world = World::over(
            store,
            "policies: [ { id: p, match: pay, rate_limit: { limit: 1, per: 1d, key: $.input.to } } ]",
        );
        let pays = |who: &str, to: &str| world.call(who, "s", "pay", json!({ "to": to }));
        assert_eq!(kind_and_code(&pays("honest", "before")), ("executed", "unmatched"));
        let refused = (0..200).map(|to| pays("hostile", &format!("invented {to}"))).find(is_denied);
        assert_eq!(
            kind_and_code(&refused.expect("the quota is never exhausted")),
            ("denied", "quota_exceeded")
        );
        assert_eq!(kind_and_code(&pays("honest", "before")), ("denied", "rate_limited"));
        assert_eq!(
            kind_and_code(&pays("honest", "invented 0")),
            ("denied", "rate_limited"),
            "the count is shared"
        );
        assert_eq!(kind_and_code(&pays("honest", "after")), ("executed", "unmatched"));
    }
}

#[test]
fn exhausted_quota_does_not_lift_a_limit_that_allows_on_store_error() {
    let (stores, _directory) = stores();
    for store in &stores {
        let world = World::over(
            store,
            "policies: [ { id: p, match: pay, rate_limit: { limit: 1, per: 1d, key: $.input.to, on_store_error: allow } } ]",
        );
        let refused =
            (0..200).map(|to| world.call("hostile", "s", "pay", json!({ "to": to }))).find(is_denied);
        assert_eq!(
            kind_and_code(&refused.expect("the quota is never exhausted")),
            ("denied", "quota_exceeded")
        );
    }
}

#[test]
fn caller_with_too_many_approval_requests_exhausts_only_its_own_quota() {
    let (stores, _directory) = stores();
    for store in &stores {
        let world = World::over(store, "policies: [ { id: p, match: pay, approval: { message: 'Pay?' } } ]");
        let asks = |who: &str, to: usize| world.call(who, "s", "pay", json!({ "to": to }));
        let refused = (0..200).map(|to| asks("hostile", to)).find(is_denied);
        assert_eq!(
            kind_and_code(&refused.expect("the quota is never exhausted")),
            ("denied", "quota_exceeded")
        );
        assert_eq!(kind_and_code(&asks("honest", 1)), ("suspended", "approval_required"));
        assert_eq!(kind_and_code(&asks("honest", 1)), ("suspended", "approval_required"));
    }
}

#[test]
fn caller_that_invents_sessions_loses_only_its_own_oldest_ones() {
    let (stores, _directory) = stores();
    let store = stores.last().unwrap();
    let text = "policies:
  - { id: mark, match: read, label: { add: [tainted] } }
  - id: leak
    match: { tool: send, where: [ { path: '$.session.labels[*]', eq: tainted } ] }
    deny: { message: It has read }
";
    let world = World::over(store, text);
    for who in ["honest", "hostile"] {
        assert_eq!(kind_and_code(&world.call(who, "tainted", "read", json!({}))), ("executed", "unmatched"));
    }
    for session in 0..100 {
        world.call("hostile", &session.to_string(), "read", json!({}));
    }
    // Another process reads the state of the store.
    let world = World::over(store, text);
    let sends = |who: &str, session: &str| world.call(who, session, "send", json!({}));
    assert_eq!(kind_and_code(&sends("hostile", "tainted")), ("denied", "undecided"));
    assert_eq!(kind_and_code(&sends("hostile", "new")), ("denied", "undecided"));
    // A session that began after the first eviction might have been evicted, too.
    assert_eq!(kind_and_code(&sends("hostile", "99")), ("denied", "undecided"));
    assert_eq!(kind_and_code(&sends("honest", "tainted")), ("denied", "denied"));
    assert_eq!(kind_and_code(&sends("honest", "new")), ("executed", "unmatched"));
    // An unknown session stays unknown.
    let world = World::over(store, text);
    assert_eq!(kind_and_code(&world.call("hostile", "tainted", "send", json!({}))), ("denied", "undecided"));
}

#[test]
fn caller_that_exhausts_its_records_exhausts_its_budgets() {
    let (stores, _directory) = stores();
    for store in &stores {
        let world = World::over(
            store,
            "policies:
  - { id: calls, budget: { calls: 100, per: conversation, on_exceed: deny } }
  - { id: ask, match: pay, approval: { message: 'Pay?' } }
",
        );
        for to in 0..60 {
            world.call("hostile", "s", "pay", json!({ "to": to }));
        }
        let searches = |who: &str, session: &str| world.call(who, session, "search", json!({}));
        assert_eq!(searches("hostile", "new").outcome.name(), "denied");
        assert_eq!(kind_and_code(&searches("honest", "new")), ("executed", "unmatched"));
    }
}
