//! What the store in memory does at its own bounds.

use callgate::json::json;

use super::caches::{get, put, space};
use super::*;

#[test]
fn a_full_store_denies_what_is_new_and_counts_on_what_is_not() {
    let store = MemoryStore::with_capacity(Capacity { limits: 3, ..MemoryStore::CAPACITY });
    assert_eq!(take_one(&store, seconds(0), take("a", fixed(2, 60), 1)), Ok(()));
    assert!(run(store.take(at(seconds(0)), &[take("b", fixed(2, 60), 1)])).is_err());
    assert_eq!(take_one(&store, seconds(0), take("a", fixed(2, 60), 1)), Ok(()));
    assert!(take_one(&store, seconds(0), take("a", fixed(2, 60), 1)).is_err());
    assert_eq!(take_one(&store, seconds(60), take("b", fixed(2, 60), 1)), Ok(()));
}

#[test]
fn a_result_that_is_too_large_is_not_kept() {
    let store = MemoryStore::default();
    put(&store, 0, space("s", 1), "k", json!("small"), 60);
    put(&store, 0, space("s", 1), "k", json!("x".repeat(2_000_000)), 60);
    assert_eq!(get(&store, 0, space("s", 1), "k"), None);
}
