//! Records: replaced by compare-and-swap on their version.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use callgate::host::{
    Account, ConditionalWrite, MAX_RECORD_BYTES, Record, RecordBatch, RecordKey, RecordPage, StoreError,
};
use callgate::json::{Value, json};

use super::*;

const THREADS: usize = 4;

pub fn here(key: &str) -> RecordKey<'_> {
    RecordKey { space: "s", key }
}

pub fn get(store: &dyn StateStore, key: &str) -> Option<Record> {
    run(store.record(here(key))).unwrap()
}

/// Writes at `now` a record that may be dropped from `forget_at` on.
fn try_write(
    store: &dyn StateStore,
    now: u64,
    key: RecordKey<'_>,
    value: &Value,
    over: Option<u64>,
    forget_at: Option<u64>,
) -> Result<bool, StoreError> {
    let forget_at = forget_at.map(|time| at(seconds(time)));
    run(store.write_record(
        at(seconds(now)),
        ConditionalWrite {
            expected_version: over,
            forget_at,
            ..ConditionalWrite::new(key, value, Account::NOBODY)
        },
    ))
}

pub fn write(store: &dyn StateStore, key: &str, value: Value, over: Option<u64>) -> bool {
    try_write(store, 0, here(key), &value, over, None).unwrap()
}

pub fn record_write_needs_the_current_version(new: &New) {
    let store = new();
    assert_eq!(get(&*store, "k"), None);
    assert!(!write(&*store, "k", json!("over nothing"), Some(1)));
    assert!(!write(&*store, "k", json!("over nothing"), Some(u64::MAX)));
    assert!(write(&*store, "k", json!("first"), None));
    assert!(!write(&*store, "k", json!("again"), None));
    let first = get(&*store, "k").unwrap();
    assert_eq!(first.value, json!("first"));
    assert!(!write(&*store, "k", json!("other"), Some(first.version + 1)));
    assert_eq!(get(&*store, "k").as_ref(), Some(&first), "rejected writes change nothing");
    assert!(write(&*store, "k", json!("second"), Some(first.version)));
    let second = get(&*store, "k").unwrap();
    assert_eq!(second.value, json!("second"));
    assert!(!write(&*store, "k", json!("late"), Some(first.version)));
}

pub fn versions_never_repeat(new: &New) {
    let store = new();
    let mut seen = HashSet::new();
    // Dropped and written again, repeatedly.
    for now in (0..100).step_by(2) {
        for key in ["a", "b"] {
            assert_eq!(
                try_write(&*store, now, here(key), &json!(now), None, Some(now + 1)),
                Ok(true),
                "{now}"
            );
            assert!(seen.insert(get(&*store, key).unwrap().version));
        }
        let over = get(&*store, "a").map(|record| record.version);
        assert_eq!(try_write(&*store, now, here("a"), &json!(now), over, Some(now + 1)), Ok(true));
        assert!(seen.insert(get(&*store, "a").unwrap().version));
    }
}

pub fn record_is_dropped_only_after_its_time(new: &New) {
    let store = new();
    let version = |key: &str| get(&*store, key).map(|record| record.version);
    let other = |now| try_write(&*store, now, here("other"), &json!(now), version("other"), None);
    assert_eq!(try_write(&*store, 0, here("k"), &json!(1), None, Some(10)), Ok(true));
    assert_eq!(try_write(&*store, 0, here("ever"), &json!(1), None, None), Ok(true));
    assert_eq!(other(9), Ok(true));
    assert!(get(&*store, "k").is_some(), "not yet");
    // The second write has a later `forget_at`.
    assert_eq!(try_write(&*store, 9, here("k"), &json!(2), version("k"), Some(20)), Ok(true));
    assert_eq!(other(19), Ok(true));
    assert_eq!(get(&*store, "k").unwrap().value, json!(2));
    assert_eq!(other(20), Ok(true));
    assert_eq!(
        try_write(&*store, 20, here("k"), &json!(3), None, Some(30)),
        Ok(true),
        "the record was dropped"
    );
    assert_eq!(try_write(&*store, 20, here("k"), &json!(4), version("k"), None), Ok(true));
    assert_eq!(other(1_000_000), Ok(true));
    assert_eq!(get(&*store, "k").unwrap().value, json!(4), "the record must not be dropped any more");
    assert!(get(&*store, "ever").is_some());
}

pub fn pages_are_in_key_order(new: &New) {
    let store = new();
    let keys = ["", "A", "a", "a\0b", "aa", "b", "é", "\u{10000}"];
    for key in keys.iter().rev() {
        assert!(write(&*store, key, json!(key), None));
    }
    let page = |after: Option<&str>, limit| {
        let RecordPage { records, more } = run(store.records("s", after, limit)).unwrap();
        assert!(records.iter().all(|(key, record)| record.value == json!(key)));
        (records.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), more)
    };
    assert_eq!(page(None, usize::MAX), (keys.map(str::to_owned).to_vec(), false));
    assert_eq!(page(None, keys.len()), (keys.map(str::to_owned).to_vec(), false));
    assert_eq!(page(None, 0), (Vec::new(), true));
    assert_eq!(page(Some("a"), 2), (vec!["a\0b".to_owned(), "aa".to_owned()], true));
    assert_eq!(page(Some("ab"), 1), (vec!["b".to_owned()], true), "after an absent key");
    assert_eq!(page(Some("\u{10000}"), 9), (Vec::new(), false));
    let (mut walked, mut after) = (Vec::new(), None);
    loop {
        let (mut keys, more) = page(after.as_deref(), 3);
        after = keys.last().cloned();
        walked.append(&mut keys);
        if !more {
            break;
        }
    }
    assert_eq!(walked, keys);
}

pub fn records_with_keys_are_in_the_order_of_the_keys(new: &New) {
    let store = new();
    for key in ["a", "b", "é"] {
        assert!(write(&*store, key, json!(key), None));
    }
    let other = RecordKey { space: "other", key: "c" };
    assert_eq!(try_write(&*store, 0, other, &json!("c"), None, None), Ok(true));
    let keys = ["b", "missing", "é", "b", "c", ""].map(str::to_owned);
    let found = run(store.records_with_keys("s", &keys)).unwrap();
    let values: Vec<Option<Value>> =
        found.iter().map(|found| found.as_ref().map(|record| record.value.clone())).collect();
    assert_eq!(values, [Some(json!("b")), None, Some(json!("é")), Some(json!("b")), None, None]);
    assert_eq!(found[0], get(&*store, "b"), "the same record as read by itself");
    assert_eq!(run(store.records_with_keys("s", &[])).unwrap(), []);
}

pub fn batch_has_records_of_all_spaces_in_the_order_of_the_keys(new: &New) {
    let store = new();
    for (space, key) in [("s", "a"), ("other", "a"), ("s", "é")] {
        let key = RecordKey { space, key };
        assert_eq!(try_write(&*store, 0, key, &json!([key.space, key.key]), None, None), Ok(true));
    }
    let keys =
        [("other", "a"), ("s", "missing"), ("s", "é"), ("s", "a"), ("other", "é"), ("s", "a"), ("", "")];
    let keys = keys.map(|(space, key)| RecordKey { space, key });
    let found = run(store.record_batch(&keys, &Account::NOBODY)).unwrap();
    let alone: Vec<Option<Record>> = keys.iter().map(|key| run(store.record(*key)).unwrap()).collect();
    assert_eq!(found.records, alone);
    assert_eq!(found.records.iter().flatten().count(), 4);
    assert!(!found.has_lost_records);
    assert_eq!(run(store.record_batch(&[], &Account::NOBODY)).unwrap(), RecordBatch::default());
}

pub fn record_spaces_are_independent(new: &New) {
    let store = new();
    for space in ["a", "b"] {
        let key = RecordKey { space, key: "k" };
        assert_eq!(try_write(&*store, 0, key, &json!(space), None, None), Ok(true));
    }
    assert_eq!(run(store.record(RecordKey { space: "a", key: "k" })).unwrap().unwrap().value, json!("a"));
    assert_eq!(run(store.records("a", None, 9)).unwrap().records.len(), 1);
    assert_eq!(run(store.records("c", None, 9)).unwrap(), RecordPage::default());
}

pub fn one_of_many_concurrent_writers_succeeds(new: &New) {
    let store = new();
    let mut over = None;
    for round in 0..30 {
        let (start, succeeded) = (Barrier::new(THREADS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, start, succeeded) = (&store, &start, &succeeded);
                scope.spawn(move || {
                    start.wait();
                    if write(&**store, "k", json!([round, thread]), over) {
                        succeeded.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(get(&**store, "k").unwrap().value, json!([round, thread]));
                    }
                });
            }
        });
        assert_eq!(succeeded.into_inner(), 1, "round {round}");
        over = get(&*store, "k").map(|record| record.version);
    }
}

/// Increments a counter record, with retries.
pub fn count_up(store: &dyn StateStore, key: &str) {
    loop {
        let current = get(store, key);
        let count = current.as_ref().map_or(0, |record| record.value.as_u64().unwrap());
        if write(store, key, json!(count + 1), current.map(|record| record.version)) {
            return;
        }
    }
}

pub fn concurrent_increments_lose_nothing(new: &New) {
    let store = new();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..50 {
                    count_up(&*store, "k");
                }
            });
        }
    });
    assert_eq!(get(&*store, "k").unwrap().value, json!(THREADS * 50));
}

pub fn record_is_stored_losslessly(new: &New) {
    let store = new();
    let text = r#"{"z":[1.10,1e400,-0,12345678901234567890123],"a":{"":null,"\u0000\"\n😀":true}}"#;
    let value = callgate::json::parse(text).unwrap();
    assert!(write(&*store, "k", value.clone(), None));
    assert_eq!(get(&*store, "k").unwrap().value.to_string(), value.to_string());
    let deep = (0..127).fold(json!(1), |value, _| json!([value]));
    assert!(write(&*store, "deep", deep.clone(), None));
    assert_eq!(get(&*store, "deep").unwrap().value, deep);
}

pub fn too_large_record_is_rejected(new: &New) {
    let store = new();
    let largest = if store.is_sealed() { SealedStore::MAX_RECORD_BYTES } else { MAX_RECORD_BYTES };
    let refused = |value: Value, over| {
        let error = try_write(&*store, 0, here("k"), &value, over, None).unwrap_err();
        assert!(error.to_string().contains(&format!("{} MiB", largest >> 20)), "{error}");
    };
    assert!(write(&*store, "k", json!("x".repeat(largest - 100)), None));
    let current = get(&*store, "k").unwrap();
    refused(json!("x".repeat(largest)), Some(current.version));
    refused((0..128).fold(json!(1), |value, _| json!([value])), Some(current.version));
    assert_eq!(get(&*store, "k").unwrap().version, current.version);
}
