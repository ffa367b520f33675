//! A server that is stopped, full, read-only or slow.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use callgate::host::{
    Account, Allowance, ConditionalWrite, LimitStore as _, RecordKey, RecordStore as _, StateStore,
    StoreError,
};
use callgate::json::{Value, json};
use jiff::Timestamp;

use super::server::{RedisServer, open_url, redis_url, run};
use super::store::{sliding, take};
use crate::cutting_proxy::CuttingProxy;

const CALL: RecordKey<'static> = RecordKey { space: "calls", key: "c1" };

pub fn write(
    store: &dyn StateStore,
    key: RecordKey<'_>,
    value: &Value,
    over: Option<u64>,
) -> Result<bool, StoreError> {
    let write =
        ConditionalWrite { expected_version: over, ..ConditionalWrite::new(key, value, Account::NOBODY) };
    run(store.write_record(Timestamp::now(), write))
}

#[test]
fn a_store_recovers_when_its_server_does_and_loses_nothing() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = server.open("shared").unwrap();
    let limit = [take("k", sliding(3, Duration::from_secs(3600)))];
    let mut admitted = 0;
    for number in 0..4 {
        assert_eq!(
            write(&store, CALL, &json!(number), run(store.record(CALL)).unwrap().map(|found| found.version)),
            Ok(true)
        );
        admitted += usize::from(run(store.acquire(Timestamp::now(), &limit)).unwrap().is_empty());
        let process = server.process_id();
        server.stop();
        let error = run(store.record(CALL)).unwrap_err().to_string();
        assert!(error.contains("the server") && !error.contains("127.0.0.1"), "{error}");
        assert!(run(store.acquire(Timestamp::now(), &limit)).is_err());
        server.restart();
        assert_ne!(server.process_id(), process);
        // The next operation connects again, a quarter of a second after the last attempt.
        let found = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            run(store.record(CALL)).ok()
        });
        assert_eq!(found.unwrap().unwrap().value, json!(number));
    }
    assert_eq!(admitted, 3);
}

#[test]
fn a_full_server_refuses_and_loses_nothing() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let store = server.open("shared").unwrap();
    assert_eq!(write(&store, CALL, &json!("approved"), None), Ok(true));
    let limit = [take("k", sliding(2, Duration::from_secs(3600)))];
    assert_eq!(run(store.acquire(Timestamp::now(), &limit)), Ok(Vec::new()));
    server.cli(&["config", "set", "maxmemory", "1mb"]);
    let other = RecordKey { space: "calls", key: "c2" };
    for error in [
        write(&store, other, &json!("x".repeat(10_000)), None).unwrap_err(),
        run(store.acquire(Timestamp::now(), &limit)).unwrap_err(),
    ] {
        assert!(error.to_string().contains("no memory left"), "{error}");
    }
    assert_eq!(run(store.record(CALL)).unwrap().unwrap().value, json!("approved"));
    server.cli(&["config", "set", "maxmemory", "0"]);
    assert_eq!(run(store.record(other)), Ok(None), "half a write");
    assert_eq!(run(store.acquire(Timestamp::now(), &limit)), Ok(Vec::new()));
    assert_eq!(run(store.acquire(Timestamp::now(), &limit)).unwrap().len(), 1);
}

#[test]
fn a_slot_whose_reply_was_lost_is_free_again() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    let cut_off = open_url(&redis_url(&proxy)).unwrap();
    let slot = [take("k", Allowance::Slots { max: 1 })];
    // The server runs the script, and the connection is cut before the reply.
    proxy.cut_replies(true);
    assert!(run(cut_off.acquire(Timestamp::now(), &slot)).is_err());
    proxy.cut_replies(false);
    let other = server.open("shared").unwrap();
    let freed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        run(other.acquire(Timestamp::now(), &slot)).unwrap().is_empty()
    });
    assert!(freed, "{}", server.dump());
}

/// A writer, and the result of its write.
type WriteResult = (usize, Result<bool, StoreError>);

#[test]
fn racing_writers_behind_slow_links_that_are_cut_never_both_succeed() {
    const KEYS: usize = 250;
    const WRITERS: usize = 4;
    let server = RedisServer::start();
    let proxy = CuttingProxy::start(server.port);
    proxy.delay(Duration::from_millis(2));
    proxy.cut_every(40);
    let results: Mutex<BTreeMap<usize, Vec<WriteResult>>> = Mutex::default();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (proxy, results) = (&proxy, &results);
            scope.spawn(move || {
                let store = (0..50).find_map(|_| open_url(&redis_url(proxy)).ok()).unwrap();
                for key in 0..KEYS {
                    let name = key.to_string();
                    let result =
                        write(&store, RecordKey { space: "calls", key: &name }, &json!(writer), None);
                    results.lock().unwrap().entry(key).or_default().push((writer, result));
                }
            });
        }
    });
    let store = server.open("shared").unwrap();
    let mut unknown = 0;
    for (key, results) in results.into_inner().unwrap() {
        let name = key.to_string();
        let stored = run(store.record(RecordKey { space: "calls", key: &name })).unwrap();
        let stored = stored.map(|record| record.value.as_u64().unwrap() as usize);
        let won: Vec<usize> =
            results.iter().filter(|(_, result)| *result == Ok(true)).map(|(writer, _)| *writer).collect();
        assert!(won.len() <= 1, "{key}: {results:?}");
        // The stored value is that of the writer who won, or of one who does not know.
        match (won.first(), stored) {
            (Some(won), stored) => assert_eq!(stored, Some(*won), "{key}: {results:?}"),
            (None, Some(stored)) => {
                let (_, result) = results.iter().find(|(writer, _)| *writer == stored).unwrap();
                assert!(result.is_err(), "{key}: {results:?}");
            }
            (None, None) => assert!(results.iter().all(|(_, result)| result.is_err()), "{key}: {results:?}"),
        }
        unknown += results.iter().filter(|(_, result)| result.is_err()).count();
    }
    assert!(unknown > 0, "no link was cut");
}
