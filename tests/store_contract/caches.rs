//! Caches: contents, expiry and eviction.

use callgate::host::{Account, CacheEntry, CacheLookup, CacheSpace};
use callgate::json::{Value, json};

use super::*;

pub fn space(name: &str, max_entries: usize) -> CacheSpace<'_> {
    CacheSpace { name, max_entries, account: Account::NOBODY }
}

pub fn get(store: &dyn StateStore, now: u64, space: CacheSpace<'_>, key: &str) -> Option<Value> {
    lookup(store, now, space, key).entry.map(|entry| entry.output)
}

fn lookup(store: &dyn StateStore, now: u64, space: CacheSpace<'_>, key: &str) -> CacheLookup {
    run(store.cache_get(at(seconds(now)), space, key)).unwrap()
}

/// Writes as callers do: looks up, then puts under the returned generation.
pub fn put(store: &dyn StateStore, now: u64, space: CacheSpace<'_>, key: &str, output: Value, ttl: u64) {
    let generation = lookup(store, now, space, key).generation;
    put_late(store, now, space, key, output, ttl, generation);
}

fn put_late(
    store: &dyn StateStore,
    now: u64,
    space: CacheSpace<'_>,
    key: &str,
    output: Value,
    ttl: u64,
    generation: u64,
) {
    let entry = CacheEntry { output, stored_at: at(seconds(now)), expires_at: at(seconds(now + ttl)) };
    run(store.cache_put(space, key, entry, generation)).unwrap();
}

pub fn entry_expires_after_its_ttl(new: &New) {
    let store = new();
    let here = space("s", 10);
    let output = json!({"a": [1.10, null, "ü"]});
    put(&*store, 10, here, "k", output.clone(), 60);
    let entry = lookup(&*store, 69, here, "k").entry.unwrap();
    assert_eq!(entry, CacheEntry { output, stored_at: at(seconds(10)), expires_at: at(seconds(70)) });
    assert_eq!(get(&*store, 70, here, "k"), None);
    assert_eq!(get(&*store, 69, here, "k"), None, "the entry was dropped");
    put(&*store, 100, here, "k", json!(1), 0);
    assert_eq!(get(&*store, 100, here, "k"), None);
    put(&*store, 100, here, "k", json!(1), 10);
    put(&*store, 105, here, "k", json!(2), 10);
    assert_eq!(get(&*store, 114, here, "k"), Some(json!(2)), "the later entry wins");
}

pub fn entry_from_the_future_is_not_returned(new: &New) {
    let store = new();
    let here = space("s", 10);
    put(&*store, 100, here, "k", json!(1), 60);
    assert_eq!(get(&*store, 99, here, "k"), None);
    assert_eq!(get(&*store, 100, here, "k"), None, "the entry was dropped");
}

pub fn hit_does_not_extend_the_ttl(new: &New) {
    let store = new();
    let here = space("s", 10);
    put(&*store, 0, here, "k", json!(1), 60);
    for now in (0..60).step_by(10) {
        assert_eq!(get(&*store, now, here, "k"), Some(json!(1)));
    }
    assert_eq!(get(&*store, 60, here, "k"), None);
}

pub fn smaller_space_evicts_the_least_recently_used(new: &New) {
    let store = new();
    for key in ["a", "b", "c", "d"] {
        put(&*store, 0, space("s", 4), key, json!(key), 60);
    }
    assert_eq!(get(&*store, 1, space("s", 4), "a"), Some(json!("a")));
    assert_eq!(get(&*store, 1, space("s", 2), "d"), Some(json!("d")));
    assert_eq!(get(&*store, 1, space("s", 4), "b"), None);
    assert_eq!(get(&*store, 1, space("s", 4), "c"), None);
    assert_eq!(get(&*store, 1, space("s", 4), "a"), Some(json!("a")));
}

pub fn space_of_size_zero_stores_nothing(new: &New) {
    let store = new();
    put(&*store, 0, space("s", 0), "k", json!(1), 60);
    assert_eq!(get(&*store, 0, space("s", 10), "k"), None);
    put(&*store, 0, space("s", 10), "k", json!(1), 60);
    assert_eq!(get(&*store, 0, space("s", 0), "k"), None);
    assert_eq!(get(&*store, 0, space("s", 10), "k"), None);
}

pub fn write_started_before_a_clear_is_dropped(new: &New) {
    for written in [false, true] {
        let store = new();
        let here = space("s", 10);
        if written {
            put(&*store, 0, here, "other", json!(0), 60);
        }
        let generation = lookup(&*store, 0, here, "k").generation;
        run(store.cache_clear("s")).unwrap();
        assert_eq!(get(&*store, 0, here, "other"), None);
        put_late(&*store, 0, here, "k", json!(1), 60, generation);
        assert_eq!(get(&*store, 0, here, "k"), None, "written before: {written}");
        put(&*store, 0, here, "k", json!(2), 60);
        assert_eq!(get(&*store, 0, here, "k"), Some(json!(2)));
        put_late(&*store, 0, here, "k", json!(1), 60, generation);
        assert_eq!(get(&*store, 0, here, "k"), Some(json!(2)), "written before: {written}");
    }
}

pub fn cache_spaces_are_independent(new: &New) {
    let store = new();
    for name in ["a", "b"] {
        put(&*store, 0, space(name, 1), "k", json!(name), 60);
    }
    run(store.cache_clear("a")).unwrap();
    assert_eq!(get(&*store, 0, space("a", 1), "k"), None);
    assert_eq!(get(&*store, 0, space("b", 1), "k"), Some(json!("b")));
}
