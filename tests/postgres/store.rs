//! What every store guarantees, and what a shared one does in trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, ConditionalWrite, LimitAcquisition, LimitCorrection, LimitStore as _,
    RealCost, RecordKey, RecordStore as _, StateStore,
};
use callgate::json::json;
use callgate::seal::Keys;
use callgate::state::SealedStore;
use callgate_state::ShardedLimits;
use jiff::{Timestamp, ToSpan as _};

use super::server::PostgresServer;
use crate::store_contract;

pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

pub fn take(key: &str, allowance: Allowance) -> LimitAcquisition {
    LimitAcquisition { key: key.to_owned(), account: Account::NOBODY, allowance, cost: Amount::from_whole(1) }
}

fn sliding(limit: u64, per: Duration) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_whole(limit), per }
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn keeps_the_contract_of_stores() {
    let server = Arc::new(PostgresServer::start());
    store_contract::check_all(&move || server.new_store());
}

#[test]
fn shares_its_capacity_fairly() {
    let server = Arc::new(PostgresServer::start());
    store_contract::tenants::check_all(&move |capacity| server.new_store_with(capacity));
}

#[test]
fn hosts_hear_what_others_announce() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    store_contract::announcements::check_all(|| Arc::new(server.open(&schema).unwrap()));
}

#[test]
fn limits_follow_the_clock_of_the_server() {
    let server = PostgresServer::start();
    let store = server.open("clocks").unwrap();
    let (now, hour) = (Timestamp::now(), Duration::from_secs(3600));
    // Hosts whose clocks differ by hours count in the same window.
    for allowance in [
        sliding(3, hour),
        Allowance::Total { limit: Amount::from_whole(3), keep: hour },
        Allowance::Gcra { limit: Amount::from_whole(3), per: hour, burst: Amount::from_whole(3) },
    ] {
        let take = take(&format!("{allowance:?}"), allowance);
        let clocks = [0, 3, -3, 30, -30].map(|hours| now.checked_add(hours.hours()).unwrap());
        let admits =
            |now: &Timestamp| run(store.acquire(*now, std::slice::from_ref(&take))).unwrap().is_empty();
        assert_eq!(clocks.iter().filter(|now| admits(now)).count(), 3, "{allowance:?}");
    }
}

#[test]
fn a_refund_finds_its_acquisition_whatever_the_callers_clock() {
    let server = PostgresServer::start();
    let store = server.open("refunds").unwrap();
    let two =
        LimitAcquisition { cost: Amount::from_whole(2), ..take("k", sliding(4, Duration::from_secs(3600))) };
    let earlier = Timestamp::now().checked_sub(5.hours()).unwrap();
    let admits = |now, take: &LimitAcquisition| {
        run(store.acquire(now, std::slice::from_ref(take))).unwrap().is_empty()
    };
    assert!(admits(earlier, &two) && admits(earlier.checked_add(1.second()).unwrap(), &two));
    let cost = RealCost::Known(Amount::from_whole(1));
    let correction = LimitCorrection { acquisition: two.clone(), acquired_at: earlier, cost };
    run(store.correct(earlier.checked_add(2.seconds()).unwrap(), &[correction])).unwrap();
    let one = LimitAcquisition { cost: Amount::from_whole(1), ..two };
    assert!(admits(earlier, &one) && !admits(earlier, &one));
}

/// Acquisitions that share transactions, of a few keys each, from several hosts: no deadlock, and no limit is exceeded.
#[test]
fn overlapping_batches_of_several_hosts_end() {
    const LIMIT: u64 = 60;
    let server = PostgresServer::start();
    let schema = server.new_schema();
    let acquired: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for host in 0..3 {
            let store = Arc::new(server.open(&schema).unwrap());
            for thread in 0..6 {
                let (store, acquired) = (Arc::clone(&store), &acquired);
                scope.spawn(move || {
                    for round in 0..30 {
                        // The accounts charge each other's limits.
                        let account = Account::from_context(
                            &json!({ "tenant": "t", "principal": format!("p{host}{thread}") }),
                        );
                        let mut keys: Vec<usize> =
                            (0..6).filter(|key| (round * 7 + thread * 3 + host + key) % 3 != 0).collect();
                        if thread % 2 == 0 {
                            keys.reverse();
                        }
                        let limit = |key: &usize| LimitAcquisition {
                            account,
                            ..take(&key.to_string(), sliding(LIMIT, Duration::from_secs(3600)))
                        };
                        let batch: Vec<LimitAcquisition> = keys.iter().map(limit).collect();
                        if run(store.acquire(Timestamp::now(), &batch)).unwrap().is_empty() {
                            for key in keys {
                                acquired[key].fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                });
            }
        }
    });
    let acquired: Vec<u64> = acquired.into_iter().map(AtomicU64::into_inner).collect();
    assert!(acquired.iter().all(|acquired| *acquired <= LIMIT) && acquired.contains(&LIMIT), "{acquired:?}");
    let charged = server.sql(&format!("SELECT sum(held) FROM {schema}.usage WHERE pool = 1 AND holder = ''"));
    // The amounts of the charges of each limit, which are small.
    let of_limits = server.sql(&format!(
        "SELECT sum(get_byte(charges, 40 * number + 32)) FROM {schema}.limits, generate_series(0, length(charges) / 40 - 1) AS number"
    ));
    assert_eq!(charged, of_limits, "a charge was lost");
    let callers = server.sql(&format!("SELECT sum(held) FROM {schema}.usage WHERE pool = 1 AND shard = 0"));
    assert_eq!(callers, charged);
}

#[test]
fn hosts_together_acquire_exactly_the_limit() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    let take = LimitAcquisition {
        key: "refunds".to_owned(),
        account: Account::NOBODY,
        allowance: Allowance::Total { limit: Amount::from_whole(50), keep: Duration::from_secs(60) },
        cost: Amount::from_whole(1),
    };
    let acquired: usize = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let store = server.open(&schema).unwrap();
                    (0..40)
                        .filter(|_| {
                            run(store.acquire(now(), std::slice::from_ref(&take))).unwrap().is_empty()
                        })
                        .count()
                })
            })
            .collect();
        hosts.into_iter().map(|host| host.join().unwrap()).sum()
    });
    assert_eq!(acquired, 50);
}

#[test]
fn hosts_together_acquire_no_more_than_a_limit_in_shards() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    let take = LimitAcquisition {
        key: "refunds".to_owned(),
        account: Account::NOBODY,
        allowance: Allowance::Total { limit: Amount::from_whole(400), keep: Duration::from_secs(60) },
        cost: Amount::from_whole(1),
    };
    let acquired: usize = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let limits = ShardedLimits::new(Arc::new(server.open(&schema).unwrap()), 4);
                    let acquire =
                        || run(limits.acquire(now(), std::slice::from_ref(&take))).unwrap().is_empty();
                    (0..120).filter(|_| acquire()).count()
                })
            })
            .collect();
        hosts.into_iter().map(|host| host.join().unwrap()).sum()
    });
    assert_eq!(acquired, 400);
    assert_eq!(server.sql(&format!("SELECT count(*) FROM {schema}.limits")), "4");
}

#[test]
fn a_store_recovers_when_its_server_does() {
    let mut server = PostgresServer::start();
    let schema = server.new_schema();
    let store = server.open(&schema).unwrap();
    let key = RecordKey { space: "calls", key: "c1" };
    let value = json!({ "n": 1 });
    let write = || run(store.write_record(now(), ConditionalWrite::new(key, &value, Account::NOBODY)));
    assert_eq!(write(), Ok(true));
    let process = server.process_id();
    server.stop();
    // The process of a connection notices a moment later.
    let error = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        run(store.record(key)).err()
    });
    let error = error.unwrap().to_string();
    assert!(error.contains("the database") && !error.contains("127.0.0.1"), "{error}");
    server.restart();
    assert_ne!(server.process_id(), process);
    // Connections that were lost are replaced.
    let found = (0..10).find_map(|_| run(store.record(key)).ok());
    assert_eq!(found.unwrap().unwrap().value, value);
}

#[test]
fn a_read_only_database_says_so() {
    let server = PostgresServer::start();
    let store = server.open(&server.new_schema()).unwrap();
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    server.sql("SELECT pg_reload_conf()");
    let key = RecordKey { space: "calls", key: "c1" };
    let value = json!(1);
    let write = || run(store.write_record(now(), ConditionalWrite::new(key, &value, Account::NOBODY)));
    // The server reloads its configuration a moment later.
    let refused = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        write().err()
    });
    assert!(refused.unwrap().to_string().contains("read-only"));
}

#[test]
fn tables_of_others_and_of_newer_versions_are_left_alone() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    drop(server.open(&schema).unwrap());
    drop(server.open(&schema).unwrap());
    server.sql(&format!("UPDATE {schema}.callgate SET version = 99"));
    let newer = server.open(&schema).unwrap_err();
    assert!(newer.contains("have version 99") && newer.contains("update it"), "{newer}");
    server.sql("CREATE SCHEMA shop; CREATE TABLE shop.orders (id integer)");
    let foreign = server.open("shop").unwrap_err();
    assert!(foreign.contains("another program"), "{foreign}");
    assert_eq!(server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'shop'"), "1");
}

#[test]
fn tables_of_version_1_are_migrated_with_their_content() {
    let server = PostgresServer::start();
    server.sql(include_str!("version-1.sql"));
    let store = server.open("old").unwrap();
    let key = RecordKey { space: "calls", key: "c1" };
    let found = run(store.record(key)).unwrap().unwrap();
    assert_eq!(found.value, json!({ "n": 1 }));
    let value = json!("x".repeat(5000));
    let write = ConditionalWrite {
        expected_version: Some(found.version),
        ..ConditionalWrite::new(key, &value, Account::NOBODY)
    };
    assert_eq!(run(store.write_record(now(), write)), Ok(true));
    let held = "SELECT sum(held) FROM old.usage WHERE pool = 2 AND holder = ";
    let caller = "decode(repeat('bb', 16), 'hex')";
    assert_eq!(
        (server.sql(&format!("{held}''")), server.sql(&format!("{held}{caller}"))),
        ("2".into(), "2".into())
    );
    assert_eq!(server.sql("SELECT last_value FROM old.latest_time"), "4102444800000000");
    // A program of version 1 that runs still fails instead of counting beside the others.
    let mut psql = server.psql(
        "INSERT INTO old.usage (pool, holder, held) VALUES (1, '', 1) ON CONFLICT (pool, holder) DO NOTHING",
    );
    assert!(!psql.status().unwrap().success());
}

#[test]
fn functions_of_an_earlier_version_are_replaced() {
    let server = PostgresServer::start();
    drop(server.open("old").unwrap());
    server.sql(
        "UPDATE old.callgate SET version = 2; DROP FUNCTION old.write_record;
         CREATE FUNCTION old.held_by(which integer, who bytea) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
    );
    let store = server.open("old").unwrap();
    let value = json!(1);
    let write = ConditionalWrite::new(RecordKey { space: "calls", key: "c1" }, &value, Account::NOBODY);
    assert_eq!(run(store.write_record(now(), write)), Ok(true));
    assert_eq!(server.sql("SELECT version FROM old.callgate"), "3");
    assert_eq!(server.sql("SELECT count(*) FROM pg_proc WHERE proname = 'held_by'"), "0");
}

#[test]
fn who_writes_the_database_can_neither_read_nor_forge_records() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    let open = || -> Arc<dyn StateStore> {
        Arc::new(SealedStore::new(Arc::new(server.open(&schema).unwrap()), keys()))
    };
    let store = open();
    let key = |key| RecordKey { space: "calls", key };
    for name in ["c1", "c2"] {
        let value = json!({ "approved": "secret answer" });
        assert_eq!(
            run(store.write_record(now(), ConditionalWrite::new(key(name), &value, Account::NOBODY))),
            Ok(true)
        );
    }
    let stored = server.sql(&format!("SELECT value FROM {schema}.records"));
    assert!(!stored.contains("secret answer"), "{stored}");
    // A record in the place of another.
    server.sql(&format!(
        "UPDATE {schema}.records AS one SET value = other.value FROM {schema}.records AS other
         WHERE one.space = 'calls' AND other.space = 'calls' AND one.key = 'c1' AND other.key = 'c2'"
    ));
    assert!(run(open().record(key("c1"))).is_err());
    assert!(run(open().record(key("c2"))).is_ok());
}
