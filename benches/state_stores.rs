//! State stores that hosts share, beside the raw operations of their servers in the same run: operations a second, latency, and the
//! processor time of the server for each. Then several processes on one server.
//!
//! The servers are those of the tests, started on free ports and stopped at the end. The rounds of a store and of the raw operation
//! alternate, because the speed of a machine changes with its load; compare the ratios, not the figures of different machines.
//!
//! `cargo bench -p callgate-postgres --bench state_stores`

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark that cannot run has no result"
)]
#![allow(dead_code, missing_docs, reason = "the servers of the tests")]

#[path = "../tests/cutting_proxy.rs"]
mod cutting_proxy;
#[path = "state_stores/measurement.rs"]
mod measurement;
#[path = "../tests/packages.rs"]
mod packages;
#[path = "../tests/postgres/server.rs"]
mod postgres_server;
#[path = "processor_time/mod.rs"]
mod processor_time;
#[path = "state_stores/raw.rs"]
mod raw;
#[path = "../tests/postgres/small_disk.rs"]
mod small_disk;
#[path = "../tests/redis/server.rs"]
mod redis_server;

mod redis {
    pub(crate) use super::redis_server as server;
}

mod fixtures {
    use std::path::{Path, PathBuf};

    pub fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }
}

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use callgate::host::{
    Account, Allowance, Amount, CacheEntry, CacheSpace, CombinedStore, ConditionalWrite, LimitAcquisition,
    RecordKey, StateStore,
};
use callgate::json::json;
use callgate_postgres::{PostgresSettings, PostgresStore};
use callgate_redis::{RedisSettings, RedisStore};
use callgate_state::ShardedLimits;
use jiff::{Timestamp, ToSpan as _};

use measurement::{Measurement, measure};
use processor_time::processor_time;
use raw::{RawPostgres, RawRedis};

/// The rounds of each operation, and how long one lasts.
const ROUNDS: usize = 4;
const ROUND: Duration = Duration::from_millis(400);
/// How long each number of processes is measured.
const PROCESSES_FOR: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    /// One limit that everybody uses.
    HotLimit,
    /// One limit for each of many callers.
    CallersLimit,
    /// One limit that everybody uses, in shards.
    ShardedLimit,
    /// A claim of one of many callers.
    Claim,
    /// A claim of the caller that everybody is.
    HotClaim,
    Read,
    CacheHit,
    /// A page of records.
    Page,
    /// A record that expires at once, which the next one removes.
    Expire,
}

impl Operation {
    const COMPARED: [Self; 6] =
        [Self::HotLimit, Self::CallersLimit, Self::Claim, Self::HotClaim, Self::Read, Self::CacheHit];

    fn name(self) -> &'static str {
        match self {
            Self::HotLimit => "limit, one key",
            Self::CallersLimit => "limit, a key a caller",
            Self::ShardedLimit => "limit, 8 shards",
            Self::Claim => "claim, many callers",
            Self::HotClaim => "claim, one caller",
            Self::Read => "read",
            Self::CacheHit => "cache hit",
            Self::Page => "page of 100",
            Self::Expire => "write and expire",
        }
    }
}

fn main() {
    if let Ok(order) = std::env::var("CALLGATE_BENCH_PROCESS") {
        return load(&order);
    }
    println!(
        "store     operation              at once |  store/s      p50      p99  server |    raw/s      p50      p99  server | throughput"
    );
    {
        let server = redis_server::RedisServer::start();
        let url = server.url("bench");
        let raw = RawRedis::connect(server.port);
        compare("redis", &*open(&url), server.process_id(), |operation, number| raw.run(operation, number));
        add_processes("redis", &url, server.process_id());
    }
    let server = postgres_server::PostgresServer::start_with(&["synchronous_commit=on"]);
    let url = server.url("bench");
    let raw = RawPostgres::connect(server.port);
    compare("postgres", &*open(&url), server.process_id(), |operation, number| raw.run(operation, number));
    add_processes("postgres", &url, server.process_id());
    fill("postgres", &server);
}

fn open(url: &str) -> Arc<dyn StateStore> {
    if url.starts_with("postgres") {
        return Arc::new(
            PostgresStore::open(PostgresSettings::parse(url, None).expect("a URL")).expect("a database"),
        );
    }
    Arc::new(RedisStore::open(RedisSettings::parse(url, None).expect("a URL")).expect("a server"))
}

fn compare<F: Future<Output = ()>>(
    name: &str,
    store: &dyn StateStore,
    server: u32,
    raw: impl Fn(Operation, u64) -> F,
) {
    let numbers = AtomicU64::new(0);
    let next = || numbers.fetch_add(1, Ordering::Relaxed);
    prepare(store);
    for operation in Operation::COMPARED {
        for at_once in [1, 32] {
            let (mut own, mut other) = (Measurement::default(), Measurement::default());
            for _ in 0..ROUNDS {
                own.add(measure(ROUND, at_once, server, || operate(store, operation, next())));
                other.add(measure(ROUND, at_once, server, || raw(operation, next())));
            }
            let ratio = own.per_second() / other.per_second();
            println!("{name:<9} {:<22} {at_once:>7} | {own} | {other} | {ratio:>8.2} ×", operation.name());
        }
    }
}

/// Stores what is read.
fn prepare(store: &dyn StateStore) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        operate(store, Operation::Claim, 0).await;
        let now = Timestamp::now();
        let expires_at = now.checked_add(10.hours()).expect("a time");
        let entry = CacheEntry { output: json!("x".repeat(500)), stored_at: now, expires_at };
        store.cache_put(space(), "k", entry, 0).await.expect("it is stored");
    });
}

fn space() -> CacheSpace<'static> {
    CacheSpace { name: "bench", max_entries: 100, account: Account::NOBODY }
}

async fn operate(store: &dyn StateStore, operation: Operation, number: u64) {
    let now = Timestamp::now();
    match operation {
        Operation::HotLimit | Operation::CallersLimit | Operation::ShardedLimit => {
            let is_hot = operation != Operation::CallersLimit;
            let key = if is_hot { "hot".to_owned() } else { format!("caller {}", number % 1_000) };
            // Never used up, nor full again between two calls, and counted as those of users are.
            let (limit, burst) = (Amount::from_whole(1_000), Amount::from_whole(10_000_000));
            let allowance = Allowance::Gcra { limit, per: Duration::from_secs(60), burst };
            let take =
                LimitAcquisition { key, account: Account::NOBODY, allowance, cost: Amount::from_whole(1) };
            assert!(store.acquire(now, &[take]).await.expect("an answer").is_empty());
        }
        Operation::Claim | Operation::HotClaim => {
            let (key, value) = (
                format!("{}-{number}", std::process::id()),
                json!({ "stage": "claimed", "more": "x".repeat(400) }),
            );
            let account = match operation {
                Operation::HotClaim => Account::NOBODY,
                _ => Account::from_context(&json!({ "tenant": number % 50, "principal": number % 1_000 })),
            };
            let write = ConditionalWrite::new(RecordKey { space: "calls", key: &key }, &value, account);
            assert!(store.write_record(now, write).await.expect("an answer"));
        }
        Operation::Read => {
            let key = format!("{}-0", std::process::id());
            let found = store.record(RecordKey { space: "calls", key: &key }).await.expect("an answer");
            assert!(found.is_some());
        }
        Operation::Page => {
            let after = format!("call {}", number * 7_919 % 100_000);
            store.records("calls", Some(&after), 100).await.expect("a page");
        }
        Operation::Expire => {
            let (key, value) = (format!("{}-expires-{number}", std::process::id()), json!("x".repeat(400)));
            let write = ConditionalWrite {
                forget_at: Some(now),
                ..ConditionalWrite::new(RecordKey { space: "calls", key: &key }, &value, Account::NOBODY)
            };
            assert!(store.write_record(now, write).await.expect("an answer"));
        }
        Operation::CacheHit => {
            assert!(store.cache_get(now, space(), "k").await.expect("an answer").entry.is_some());
        }
    }
}

/// Operations on a database of many records, beside those on one of few. `CALLGATE_BENCH_RECORDS=10000000` says how many.
fn fill(name: &str, server: &postgres_server::PostgresServer) {
    let count =
        std::env::var("CALLGATE_BENCH_RECORDS").map_or(200_000, |count| count.parse().expect("a number"));
    let open = |schema: &str| {
        let settings = PostgresSettings::parse(&server.url(schema), None).expect("a URL");
        PostgresStore::open(settings).expect("a database")
    };
    let (few, many) = (open("few"), open("many"));
    let begun = Instant::now();
    raw::fill_records(server, "many", count);
    println!(
        "\n{name}: {count} records, written in {:.0} s; {}",
        begun.elapsed().as_secs_f64(),
        raw::sizes(server, "many")
    );
    println!(
        "operation               |     many      p50      p99  server |      few      p50      p99  server | throughput"
    );
    prepare(&few);
    prepare(&many);
    let numbers = AtomicU64::new(1);
    for operation in [Operation::Claim, Operation::Read, Operation::Page, Operation::Expire] {
        let (mut large, mut small) = (Measurement::default(), Measurement::default());
        for _ in 0..ROUNDS {
            for (store, measured) in [(&many, &mut large), (&few, &mut small)] {
                let next = || numbers.fetch_add(1, Ordering::Relaxed);
                measured.add(measure(ROUND, 1, server.process_id(), || operate(store, operation, next())));
            }
        }
        let ratio = large.per_second() / small.per_second();
        println!("{:<23} | {large} | {small} | {ratio:>8.2} ×", operation.name());
    }
}

/// Processes on one server, each with 8 operations at once.
fn add_processes(name: &str, url: &str, server: u32) {
    println!("\n{name}: processes, operations/s of all, and processor time of the server for each");
    let sharded = (name == "postgres").then_some(Operation::ShardedLimit);
    let operations = [Operation::HotLimit, Operation::CallersLimit, Operation::Claim];
    for operation in operations.into_iter().chain(sharded) {
        for processes in [1, 2, 4, 8] {
            let before = processor_time(server);
            let children: Vec<_> = (0..processes)
                .map(|_| {
                    Command::new(std::env::current_exe().expect("this program"))
                        .env("CALLGATE_BENCH_PROCESS", format!("{url}\n{operation:?}"))
                        .stdout(Stdio::piped())
                        .spawn()
                        .expect("it starts")
                })
                .collect();
            let counts = children.into_iter().map(|child| {
                let output = child.wait_with_output().expect("it ends").stdout;
                String::from_utf8_lossy(&output).trim().parse::<u64>().expect("a count")
            });
            let count: u64 = counts.sum();
            let each = (processor_time(server) - before).as_secs_f64() * 1e6 / count as f64;
            let rate = count as f64 / PROCESSES_FOR.as_secs_f64();
            println!("{:<22} {processes:>2} | {rate:>8.0}/s | {each:>6.0} µs", operation.name());
        }
    }
    println!();
}

/// The load of one process: prints how many operations it did.
fn load(order: &str) {
    let (url, name) = order.split_once('\n').expect("an order");
    let operation = Operation::COMPARED
        .into_iter()
        .chain([Operation::ShardedLimit])
        .find(|operation| format!("{operation:?}") == name)
        .expect("an operation");
    let store = open(url);
    let store = match operation {
        Operation::ShardedLimit => {
            let limits = ShardedLimits::new(store.clone(), 8);
            Arc::new(CombinedStore::new(store).with_limits(Arc::new(limits)))
        }
        _ => store,
    };
    let (numbers, begun) = (AtomicU64::new(1), Instant::now());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(futures_of(8, || async {
        while begun.elapsed() < PROCESSES_FOR {
            operate(&*store, operation, numbers.fetch_add(1, Ordering::Relaxed)).await;
        }
    }));
    println!("{}", numbers.into_inner() - 1);
}

/// Runs so many of the same future at once.
async fn futures_of<F: Future<Output = ()>>(count: usize, future: impl Fn() -> F) {
    let mut all: Vec<_> = (0..count).map(|_| Box::pin(future())).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
