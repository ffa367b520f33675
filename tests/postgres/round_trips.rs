//! What an operation costs: the requests that a host sends to the database, counted by a proxy.

use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, CacheEntry, CacheSpace, CacheStore as _, ConditionalWrite, LimitAcquisition,
    LimitStore as _, RecordKey, RecordStore as _,
};
use callgate::json::json;
use callgate_postgres::{PostgresSettings, PostgresStore};
use jiff::{Timestamp, ToSpan as _};

use super::server::PostgresServer;
use crate::cutting_proxy::CuttingProxy;
use crate::redis::server::run;
use crate::run_cost::RunCost;

#[test]
fn operations_cost_the_round_trips_of_the_guide() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let url = format!("postgres://callgate@127.0.0.1:{}/postgres?schema=trips", proxy.port);
    let store = PostgresStore::open(PostgresSettings::parse(&url, None).unwrap()).unwrap();
    let take = |key: &str, limit| LimitAcquisition {
        key: key.to_owned(),
        account: Account::NOBODY,
        allowance: Allowance::SlidingWindow {
            limit: Amount::from_whole(limit),
            per: Duration::from_secs(3600),
        },
        cost: Amount::from_whole(1),
    };
    let batch = [take("a", 100), take("b", 100), take("c", 0)];
    let now = Timestamp::now();
    let space = CacheSpace { name: "s", max_entries: 9, account: Account::NOBODY };
    let entry =
        || CacheEntry { output: json!(1), stored_at: now, expires_at: now.checked_add(1.hour()).unwrap() };
    let write = |key: &str| {
        let key = RecordKey { space: "calls", key };
        run(store.write_record(now, ConditionalWrite::new(key, &json!(1), Account::NOBODY))).unwrap()
    };
    type Work<'w> = Box<dyn FnMut(usize) + 'w>;
    let operations: [(&str, u64, Work<'_>); 8] = [
        (
            "acquire limits",
            2,
            Box::new(|_| assert!(run(store.acquire(now, &batch[..2])).unwrap().is_empty())),
        ),
        (
            "find a limit used up",
            1,
            Box::new(|_| assert!(!run(store.acquire(now, &batch)).unwrap().is_empty())),
        ),
        ("write a record", 1, Box::new(|number| assert!(write(&number.to_string())))),
        (
            "read a record",
            1,
            Box::new(|_| drop(run(store.record(RecordKey { space: "calls", key: "1" })).unwrap())),
        ),
        (
            "read some records",
            1,
            Box::new(|_| {
                drop(run(store.records_with_keys("calls", &["1", "2"].map(str::to_owned))).unwrap())
            }),
        ),
        ("write a cached result", 1, Box::new(|_| run(store.cache_put(space, "k", entry(), 0)).unwrap())),
        (
            "look up a cached result",
            1,
            Box::new(|_| assert!(run(store.cache_get(now, space, "k")).unwrap().entry.is_some())),
        ),
        ("clear a cache", 1, Box::new(|_| run(store.cache_clear("other")).unwrap())),
    ];
    let guide = std::fs::read_to_string(crate::fixtures::root().join("docs/guides/share-state.md")).unwrap();
    for (name, expected, mut work) in operations {
        // The first ones prepare statements, and the store sends requests of its own now and then.
        let requests = (0..24).map(|number| {
            std::thread::sleep(Duration::from_millis(10));
            let before = proxy.requests();
            work(number);
            std::thread::sleep(Duration::from_millis(10));
            proxy.requests() - before
        });
        // A refusal is rolled back afterwards, which nobody waits for.
        let unawaited = u64::from(name == "find a limit used up");
        assert_eq!(requests.min(), Some(expected + unawaited), "{name}");
        let row = format!("| {name} | {expected} |");
        assert!(guide.contains(&row), "{row}");
    }
}

#[test]
fn calls_of_a_run_cost_the_round_trips_of_the_guide() {
    let server = PostgresServer::start();
    let proxy = CuttingProxy::start(server.port);
    let url = format!("postgres://callgate@127.0.0.1:{}/postgres?schema=runs", proxy.port);
    let store = PostgresStore::open(PostgresSettings::parse(&url, None).unwrap()).unwrap();
    let cost = RunCost::measure(store, &|| proxy.requests());
    assert_eq!(cost, RunCost { stateless: 0, limited: 2, approved: 2, others_approved: 3 });
    cost.check_guide(2);
}
