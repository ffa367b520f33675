//! Tables with many rows: no operation reads a whole table.

use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, ConditionalWrite, LimitAcquisition, LimitStore as _, OnQuotaExceeded,
    RecordKey, RecordStore as _,
};
use callgate::json::json;
use jiff::{Timestamp, ToSpan as _};

use super::server::PostgresServer;
use crate::redis::server::run;

const ROWS: usize = 20_000;
const REPETITIONS: usize = 60;

#[test]
fn no_operation_reads_a_whole_table() {
    let server = PostgresServer::start();
    let store = server.open("many").unwrap();
    server.sql(&format!(
        "INSERT INTO many.records SELECT 'calls', convert_to('call ' || n, 'UTF8'), '1', nextval('many.versions'), 4102444800000000 + n,
            decode(md5('tenant' || n % 100), 'hex'), decode(md5('caller' || n % 5000), 'hex'), 1 FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO many.limits SELECT convert_to('limit ' || n, 'UTF8'), '', 4102444800000000 + n, '' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO many.usage (pool, holder, held) SELECT 1 + n % 2, decode(md5(n::text), 'hex'), 1 FROM generate_series(1, {ROWS}) AS n;
         ANALYZE many.records; ANALYZE many.limits"
    ));
    let scans = || {
        // The counts of a session are published within a second of its last transaction.
        std::thread::sleep(Duration::from_millis(1200));
        let tables = "'records', 'limits', 'usage'";
        let sum = |what: &str, of: &str| {
            let sum =
                format!("SELECT sum({what}) FROM {of} WHERE schemaname = 'many' AND relname IN ({tables})");
            server.sql(&sum).parse::<usize>().unwrap()
        };
        (sum("seq_scan", "pg_stat_user_tables"), sum("idx_tup_read", "pg_stat_user_indexes"))
    };
    let now = Timestamp::now();
    let work = |number: usize| {
        let name = format!("new {number}");
        let key = RecordKey { space: "calls", key: &name };
        let write = |when_full, forget_at| {
            let value = json!(number);
            let expected_version = run(store.record(key)).unwrap().map(|record| record.version);
            let write = ConditionalWrite {
                expected_version,
                when_full,
                forget_at,
                ..ConditionalWrite::new(key, &value, Account::NOBODY)
            };
            assert_eq!(run(store.write_record(now, write)), Ok(true));
        };
        write(OnQuotaExceeded::Refuse, None);
        write(OnQuotaExceeded::EvictOldest, Some(now.checked_sub(1.second()).unwrap()));
        assert_eq!(run(store.records("calls", Some("call 5"), 10)).unwrap().records.len(), 10);
        let take = LimitAcquisition {
            key: format!("key {number}"),
            account: Account::NOBODY,
            allowance: Allowance::Total { limit: Amount::from_whole(5), keep: Duration::from_secs(60) },
            cost: Amount::from_whole(1),
        };
        assert_eq!(run(store.acquire(now, &[take])), Ok(Vec::new()));
    };
    // What the sessions did before is published with their next work.
    (0..10).for_each(work);
    let before = scans();
    (10..10 + REPETITIONS).for_each(work);
    // An operation that reads a table does so each time. A new connection plans its first statements without knowing their values.
    let after = scans();
    assert!(after.0 - before.0 < REPETITIONS, "{before:?} scans before, {after:?} after");
    // Nor a whole index.
    assert!(after.1 - before.1 < ROWS, "{before:?} entries read before, {after:?} after");
}
