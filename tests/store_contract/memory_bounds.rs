//! The memory store at its capacity.

use callgate::host::LimitStore;
use callgate::json::json;

use super::caches::{get, put, space};
use super::*;

#[test]
fn full_store_rejects_new_keys_and_keeps_counting_known_ones() {
    let store = MemoryStore::with_capacity(Capacity { limits: 3, ..MemoryStore::CAPACITY });
    assert_eq!(acquire_one(&store, seconds(0), take("a", fixed(2, 60), 1)), Ok(()));
    assert!(run(store.acquire(at(seconds(0)), &[take("b", fixed(2, 60), 1)])).is_err());
    assert_eq!(acquire_one(&store, seconds(0), take("a", fixed(2, 60), 1)), Ok(()));
    assert!(acquire_one(&store, seconds(0), take("a", fixed(2, 60), 1)).is_err());
    assert_eq!(acquire_one(&store, seconds(60), take("b", fixed(2, 60), 1)), Ok(()));
}

#[test]
fn too_large_result_is_not_cached() {
    let store = MemoryStore::default();
    put(&store, 0, space("s", 1), "k", json!("small"), 60);
    put(&store, 0, space("s", 1), "k", json!("x".repeat(2_000_000)), 60);
    assert_eq!(get(&store, 0, space("s", 1), "k"), None);
}
