//! What every store guarantees, and what a shared one does in trouble.

use std::sync::Arc;

use callgate::host::{
    Account, Allowance, Amount, ConditionalWrite, LimitAcquisition, LimitStore as _, RecordKey,
    RecordStore as _, StateStore,
};
use callgate::json::json;
use callgate::seal::Keys;
use callgate::state::SealedStore;
use jiff::Timestamp;

use super::server::PostgresServer;
use crate::store_contract;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
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
fn hosts_together_acquire_exactly_the_limit() {
    let server = PostgresServer::start();
    let schema = server.new_schema();
    let take = LimitAcquisition {
        key: "refunds".to_owned(),
        account: Account::NOBODY,
        allowance: Allowance::Total {
            limit: Amount::from_whole(50),
            keep: std::time::Duration::from_secs(60),
        },
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
fn a_store_recovers_when_its_server_does() {
    let mut server = PostgresServer::start();
    let schema = server.new_schema();
    let store = server.open(&schema).unwrap();
    let key = RecordKey { space: "calls", key: "c1" };
    let value = json!({ "n": 1 });
    let write = || run(store.write_record(now(), ConditionalWrite::new(key, &value, Account::NOBODY)));
    assert_eq!(write(), Ok(true));
    server.stop();
    let error = run(store.record(key)).unwrap_err().to_string();
    assert!(error.contains("the database") && !error.contains("127.0.0.1"), "{error}");
    server.restart();
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
        std::thread::sleep(std::time::Duration::from_millis(10));
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
