//! A link that is cut at any moment, and a standby that is gone.

use std::time::{Duration, Instant};

use callgate::host::{
    Account, Allowance, Amount, ConditionalWrite, LimitStore as _, RecordKey, RecordStore as _, StoreError,
};
use callgate::json::json;
use callgate_postgres::{PostgresSettings, PostgresStore};
use jiff::Timestamp;

use super::server::{PostgresServer, replicated};
use super::store::{run, take};
use crate::cutting_proxy::CuttingProxy;

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_slot_is_free_again_wherever_the_link_was_cut() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let url = format!("postgres://callgate@127.0.0.1:{}/postgres?schema=shared", proxy.port);
    let cut_off = PostgresStore::open(PostgresSettings::parse(&url, None).unwrap()).unwrap();
    let other = server.open("shared").unwrap();
    let slot = [take("k", Allowance::Slots { max: 1 })];
    let is_acquired = |store: &PostgresStore| run(store.acquire(Timestamp::now(), &slot)) == Ok(Vec::new());
    // The statements are prepared, so that each run sends the same.
    wait_until(|| is_acquired(&cut_off));
    cut_off.release("k");
    let mut failed = 0;
    for passages in 1..=8 {
        wait_until(|| is_acquired(&other));
        other.release("k");
        // The database has the release.
        wait_until(|| server.sql("SELECT count(*) FROM shared.slots") == "0");
        proxy.cut_after(passages);
        match run(cut_off.acquire(Timestamp::now(), &slot)) {
            Ok(refusals) => {
                assert_eq!(refusals, []);
                cut_off.release("k");
            }
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 2, "{failed} acquisitions failed");
    wait_until(|| is_acquired(&other));
    // The slot of the other store is not released with those that were lost.
    assert!(!is_acquired(&cut_off));
    std::thread::sleep(Duration::from_secs(5));
    assert!(!is_acquired(&cut_off));
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let mut server = PostgresServer::start_on_small_disk(96);
    let store = server.open("full").unwrap();
    let write = |name: &str, size: usize| {
        let (key, value) = (RecordKey { space: "calls", key: name }, json!("x".repeat(size)));
        run(store.write_record(Timestamp::now(), ConditionalWrite::new(key, &value, Account::NOBODY)))
    };
    let limit =
        [take("k", Allowance::Total { limit: Amount::from_whole(8), keep: Duration::from_secs(3_600) })];
    let acquire = || run(store.acquire(Timestamp::now(), &limit));
    let mut confirmed: Vec<String> = (0..20).map(|number| format!("before {number}")).collect();
    confirmed.iter().for_each(|name| assert_eq!(write(name, 100), Ok(true)));
    let mut acquired = 2;
    (0..acquired).for_each(|_| assert_eq!(acquire(), Ok(Vec::new())));
    server.disk().fill();
    // What fits the pages that are left may still be written.
    let mut refused = Vec::new();
    for number in 0..40 {
        let name = format!("during {number}");
        match write(&name, 100_000) {
            Ok(written) => {
                assert!(written);
                confirmed.push(name);
            }
            Err(error) => refused.push(error.to_string()),
        }
        acquired += usize::from(acquire() == Ok(Vec::new()));
    }
    assert!(!refused.is_empty());
    server.disk().free();
    server.restart_if_stopped();
    wait_until(|| write("after", 100) == Ok(true));
    for name in &confirmed {
        let found = run(store.record(RecordKey { space: "calls", key: name })).unwrap();
        assert!(found.is_some(), "{name} is lost");
    }
    // What was confirmed is counted; what was refused may be.
    acquired += (0..9).filter(|_| acquire() == Ok(Vec::new())).count();
    assert!(acquired <= 8, "{acquired} were acquired of 8");
    assert!(refused.iter().any(|why| why.contains("no disk space left")), "{refused:#?}");
}

#[test]
fn a_write_that_no_standby_confirms_is_an_error() {
    let (primary, mut standby) = replicated();
    let store = primary.open(&primary.new_schema()).unwrap();
    let write = |key: &str| -> Result<bool, StoreError> {
        let (value, key) = (json!(1), RecordKey { space: "calls", key });
        run(store.write_record(Timestamp::now(), ConditionalWrite::new(key, &value, Account::NOBODY)))
    };
    assert_eq!(write("c1"), Ok(true));
    standby.stop();
    // The server waits for the standby, commits without it, and reports success with a warning.
    assert!(write("c2").is_err());
    standby.restart();
    wait_until(|| write("c3").is_ok());
}
