//! A host supplies one part of the state (limits, cached results or records), and the rest stays where it is.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use callgate::host::{
    BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, CombinedStore, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, RecordStore, StateStore, StoreError, StoreFuture,
};
use callgate::json::json;
use callgate::state::{MemoryStore, SealedStore, seal_store};
use callgate::{Engine, ToolCall};
use callgate_sqlite::SqliteStore;
use jiff::Timestamp;

use crate::fixtures::{Tool, keys, kind_and_code, noon, rules};

/// Limits in a service that other processes read: the keys that it was asked for are kept.
#[derive(Default)]
struct LimitService {
    limits: MemoryStore,
    keys: Mutex<Vec<String>>,
    /// How often it fails at first.
    failures: AtomicUsize,
}

impl LimitStore for LimitService {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        if self.failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Box::pin(async { Err(StoreError::Unavailable("it is starting".to_owned())) });
        }
        self.keys.lock().unwrap().extend(takes.iter().map(|take| take.key.clone()));
        self.limits.acquire(now, takes)
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.limits.correct(now, corrections)
    }

    fn release(&self, key: &str) {
        self.limits.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.limits.slot_released()
    }

    fn exposes_limits(&self) -> bool {
        true
    }
}

/// A cache that other processes read: the results that it was given are kept.
#[derive(Default)]
struct CacheService {
    results: MemoryStore,
    written: Mutex<Vec<String>>,
}

impl CacheStore for CacheService {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.results.cache_get(now, space, key)
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.written.lock().unwrap().push(format!("{key} {}", entry.output));
        self.results.cache_put(space, key, entry, generation)
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.results.cache_clear(space)
    }

    fn exposes_cache(&self) -> bool {
        true
    }
}

const LIMITED: &str =
    "policies: [ { id: two, match: pay, rate_limit: { limit: 2, per: 1h, key: $.context.principal } } ]";
const CACHED: &str = "policies: [ { id: c, match: look, cache: { ttl: 1h } } ]";

/// One call in a session of its own, and what became of it.
fn one_call(engine: &Engine, tool: &Tool, name: &str) -> (&'static str, String) {
    let call = ToolCall::new("", name, json!({ "q": "hunter2" })).with_context(json!({ "principal": "ana" }));
    let outcome = noon().block_on(engine.session().execute(call, tool));
    let (kind, code) = kind_and_code(&outcome);
    (kind, code.to_owned())
}

#[test]
fn engines_with_stores_of_their_own_share_a_limit() {
    let clock = noon();
    let service: Arc<LimitService> = Arc::default();
    let tool = Tool::counting(&clock);
    let engine = || {
        let engine = rules(LIMITED).clock(clock.clone()).limit_store(service.clone()).keys(keys());
        engine.build()
    };
    let hosts = [engine(), engine()];
    let outcomes: Vec<_> = (0..4).map(|turn| one_call(&hosts[turn % 2], &tool, "pay").0).collect();
    assert_eq!(outcomes, ["executed", "executed", "denied", "denied"]);
    let seen = service.keys.lock().unwrap().join(" ");
    assert!(!seen.is_empty() && !seen.contains("ana"), "the service sees whom a limit counts: {seen}");
}

#[test]
fn a_call_that_was_denied_while_a_store_failed_is_decided_again_when_it_is_sent_again() {
    let clock = noon();
    let service = LimitService { failures: AtomicUsize::new(1), ..LimitService::default() };
    let engine = rules(LIMITED).clock(clock.clone()).limit_store(Arc::new(service)).keys(keys()).build();
    let tool = Tool::counting(&clock);
    let send = || {
        let call = ToolCall::new("c1", "pay", json!({})).with_context(json!({ "principal": "ana" }));
        let mut session = engine.session().with_name("s").with_call_recording();
        let outcome = clock.block_on(session.execute(call, &tool));
        let (kind, code) = kind_and_code(&outcome);
        (kind, code.to_owned(), outcome.replayed)
    };
    assert_eq!(send(), ("denied", "store_unavailable".to_owned(), false));
    assert_eq!(send().0, "executed");
    let (kind, _, is_replayed) = send();
    assert_eq!((kind, is_replayed, tool.count()), ("executed", true, 1));
}

#[test]
fn limits_that_others_can_read_need_keys() {
    let clock = noon();
    let service: Arc<LimitService> = Arc::default();
    let engine = rules(LIMITED).clock(clock.clone()).limit_store(service.clone()).build();
    let refused = one_call(&engine, &Tool::counting(&clock), "pay");
    assert_eq!(refused, ("denied", "store_unavailable".to_owned()));
    assert_eq!(*service.keys.lock().unwrap(), [""; 0]);
}

#[test]
fn cached_results_that_others_can_read_are_encrypted() {
    let clock = noon();
    let service: Arc<CacheService> = Arc::default();
    let tool = Tool::counting(&clock);
    let engine = rules(CACHED).clock(clock.clone()).cache_store(service.clone()).keys(keys()).build();
    assert_eq!(one_call(&engine, &tool, "look").0, "executed");
    assert_eq!(one_call(&engine, &tool, "look").0, "cached");
    let written = service.written.lock().unwrap().join(" ");
    assert!(!written.is_empty() && !written.contains("hunter2"), "{written}");
    // Entries are bound to the records of this engine's store: another engine does not believe them.
    let other = rules(CACHED).clock(clock.clone()).cache_store(service).keys(keys()).build();
    assert_eq!(one_call(&other, &tool, "look").0, "executed");
}

#[test]
fn processes_that_share_records_and_cache_share_results() {
    let clock = noon();
    let directory = tempfile::tempdir().unwrap();
    let records: Arc<dyn RecordStore> =
        Arc::new(SqliteStore::open(&directory.path().join("state.db")).unwrap());
    let cache: Arc<CacheService> = Arc::default();
    let tool = Tool::counting(&clock);
    let engine = || {
        let engine = rules(CACHED).clock(clock.clone()).keys(keys());
        engine.cache_store(cache.clone()).record_store(records.clone()).build()
    };
    assert_eq!(one_call(&engine(), &tool, "look").0, "executed");
    assert_eq!(one_call(&engine(), &tool, "look").0, "cached");
}

#[test]
fn sealed_records_do_not_expose_the_limits_beside_them() {
    let service: Arc<LimitService> = Arc::default();
    let sealed: Arc<dyn StateStore> = Arc::new(SealedStore::new(Arc::new(MemoryStore::default()), keys()));
    let combined: Arc<dyn StateStore> = Arc::new(CombinedStore::new(sealed.clone()).with_limits(service));
    assert!(!Arc::ptr_eq(&seal_store(combined.clone(), Some(&keys())), &combined));
    assert!(Arc::ptr_eq(&seal_store(sealed.clone(), Some(&keys())), &sealed));
}
