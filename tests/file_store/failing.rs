//! A store whose file is removed, replaced, locked or damaged.

use callgate::host::{CacheStore, LimitStore, RecordStore};
use std::fs;

use rusqlite::Connection;

use super::*;

fn assert_fails<T: std::fmt::Debug>(answer: Result<T, callgate::host::StoreError>, says: &str) {
    let error = answer.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

/// Asserts that every operation fails with this error.
fn assert_all_fail(store: &SqliteStore, says: &str) {
    let value = json!(2);
    let space = callgate::host::CacheSpace { name: "c", max_entries: 9, account: Account::NOBODY };
    assert_fails(run(store.record(key("k"))), says);
    assert_fails(run(store.records("s", None, 9)), says);
    assert_fails(run(store.acquire(at(0), &[whole("k", total(1), 1)])), says);
    assert_fails(
        run(store.write_record(at(0), ConditionalWrite::new(key("new"), &value, Account::NOBODY))),
        says,
    );
    assert_fails(run(store.cache_get(at(0), space, "k")), says);
    assert_fails(run(store.cache_clear("c")), says);
}

#[test]
fn removed_file_is_not_written_to() {
    let temp = TempStore::new();
    let store = temp.open();
    assert!(write(&store, "k", &json!(1), None));
    let away = temp.0.path().join("away.db");
    fs::rename(temp.path(), &away).unwrap();
    assert_all_fail(&store, "was removed");
    fs::rename(&away, temp.path()).unwrap();
    assert!(record(&store, "k").is_some() && record(&store, "new").is_none(), "the store works again");
    assert!(try_acquire(&store, 0, whole("k", total(1), 1)), "nothing was acquired");
}

#[test]
fn replaced_file_is_not_used() {
    let temp = TempStore::new();
    let store = temp.open();
    let other = TempStore::new();
    drop(other.open());
    fs::rename(other.path(), temp.path()).unwrap();
    assert_all_fail(&store, "was removed or replaced");
}

#[test]
fn file_locked_for_too_long_is_an_error() {
    let temp = TempStore::new();
    let store = temp.open();
    assert!(write(&store, "k", &json!(1), None));
    let other = Connection::open(temp.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(record(&store, "k").is_some(), "readers do not block");
    assert_fails(run(store.acquire(at(0), &[whole("k", total(1), 1)])), "locked by another process");
    other.execute_batch("COMMIT").unwrap();
    assert!(try_acquire(&store, 0, whole("k", total(1), 1)), "nothing was acquired");
}

#[test]
fn unreadable_data_is_an_error_not_an_absent_value() {
    let temp = TempStore::new();
    let store = temp.open();
    assert!(try_acquire(&store, 0, whole("k", total(1), 1)));
    assert!(write(&store, "k", &json!(1), None));
    let other = Connection::open(temp.path()).unwrap();
    for damage in ["x''", "x'02'", "substr(taken, 1, length(taken) - 1)", "taken || x'00'", "'text'"] {
        let before: Vec<u8> = other.query_row("SELECT taken FROM limits", (), |row| row.get(0)).unwrap();
        other.execute_batch(&format!("UPDATE limits SET taken = {damage}")).unwrap();
        let answer = run(store.acquire(at(0), &[whole("k", total(1), 1)]));
        assert!(answer.is_err(), "{damage}: {answer:?}");
        other.execute("UPDATE limits SET taken = ?1", [before]).unwrap();
    }
    assert!(!try_acquire(&store, 0, whole("k", total(1), 1)));
    other.execute_batch("UPDATE records SET value = '{'").unwrap();
    assert_fails(run(store.record(key("k"))), "damaged");
    assert_fails(run(store.records("s", None, 1)), "damaged");
}

#[test]
fn partly_failed_acquisition_is_rolled_back() {
    let temp = TempStore::new();
    let store = temp.open();
    let other = Connection::open(temp.path()).unwrap();
    other
        .execute_batch("CREATE TRIGGER t BEFORE INSERT ON slots BEGIN SELECT RAISE(FAIL, 'no'); END")
        .unwrap();
    let takes = [whole("k", total(1), 1), whole("s", Allowance::Slots { max: 1 }, 0)];
    assert!(run(store.acquire(at(0), &takes)).is_err());
    other.execute_batch("DROP TRIGGER t").unwrap();
    assert_eq!(run(store.acquire(at(0), &takes)), Ok(Vec::new()));
}
