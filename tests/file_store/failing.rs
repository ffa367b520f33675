//! What becomes of a store whose file is taken away, or held by others.

use std::fs;

use rusqlite::Connection;

use super::*;

fn fails<T: std::fmt::Debug>(answer: Result<T, callgate::host::StoreError>, says: &str) {
    let error = answer.unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

/// Every kind of question is answered with an error.
fn all_fail(store: &FileStore, says: &str) {
    let value = json!(2);
    let space = callgate::host::CacheSpace { name: "c", max_entries: 9, account: Account::NOBODY };
    fails(run(store.record(key("k"))), says);
    fails(run(store.records("s", None, 9)), says);
    fails(run(store.take(at(0), &[whole("k", total(1), 1)])), says);
    fails(run(store.write_record(at(0), Write::new(key("new"), &value, Account::NOBODY))), says);
    fails(run(store.cache_get(at(0), space, "k")), says);
    fails(run(store.cache_clear("c")), says);
}

#[test]
fn a_file_that_was_removed_is_not_written_to() {
    let place = Place::new();
    let store = place.open();
    assert!(write(&store, "k", &json!(1), None));
    let away = place.0.path().join("away.db");
    fs::rename(place.path(), &away).unwrap();
    all_fail(&store, "was removed");
    fs::rename(&away, place.path()).unwrap();
    assert!(record(&store, "k").is_some() && record(&store, "new").is_none(), "it goes on");
    assert!(takes(&store, 0, whole("k", total(1), 1)), "nothing was taken");
}

#[test]
fn a_file_in_place_of_another_is_not_believed() {
    let place = Place::new();
    let store = place.open();
    let other = Place::new();
    drop(other.open());
    fs::rename(other.path(), place.path()).unwrap();
    all_fail(&store, "another was put in its place");
}

#[test]
fn a_file_that_others_hold_for_too_long_is_an_error() {
    let place = Place::new();
    let store = place.open();
    assert!(write(&store, "k", &json!(1), None));
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(record(&store, "k").is_some(), "who reads waits for nobody");
    fails(run(store.take(at(0), &[whole("k", total(1), 1)])), "held by another process");
    other.execute_batch("COMMIT").unwrap();
    assert!(takes(&store, 0, whole("k", total(1), 1)), "nothing was taken");
}

#[test]
fn what_can_t_be_read_is_never_taken_for_nothing() {
    let place = Place::new();
    let store = place.open();
    assert!(takes(&store, 0, whole("k", total(1), 1)));
    assert!(write(&store, "k", &json!(1), None));
    let other = Connection::open(place.path()).unwrap();
    for damage in ["x''", "x'02'", "substr(taken, 1, length(taken) - 1)", "taken || x'00'", "'text'"] {
        let before: Vec<u8> = other.query_row("SELECT taken FROM limits", (), |row| row.get(0)).unwrap();
        other.execute_batch(&format!("UPDATE limits SET taken = {damage}")).unwrap();
        let answer = run(store.take(at(0), &[whole("k", total(1), 1)]));
        assert!(answer.is_err(), "{damage}: {answer:?}");
        other.execute("UPDATE limits SET taken = ?1", [before]).unwrap();
    }
    assert!(!takes(&store, 0, whole("k", total(1), 1)));
    other.execute_batch("UPDATE records SET value = '{'").unwrap();
    fails(run(store.record(key("k"))), "damaged");
    fails(run(store.records("s", None, 1)), "damaged");
}

#[test]
fn what_fails_halfway_leaves_nothing() {
    let place = Place::new();
    let store = place.open();
    let other = Connection::open(place.path()).unwrap();
    other
        .execute_batch("CREATE TRIGGER t BEFORE INSERT ON slots BEGIN SELECT RAISE(FAIL, 'no'); END")
        .unwrap();
    let takes = [whole("k", total(1), 1), whole("s", Allowance::Slots { max: 1 }, 0)];
    assert!(run(store.take(at(0), &takes)).is_err());
    other.execute_batch("DROP TRIGGER t").unwrap();
    assert_eq!(run(store.take(at(0), &takes)), Ok(Vec::new()));
}
