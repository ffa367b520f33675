//! The file store's own guarantees: durable, shared by processes, and never touching files that are not its own.

mod failing;
mod opening;
mod processes;
mod slots;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, CacheStore, ConditionalWrite, LimitAcquisition, LimitStore, Record,
    RecordKey, RecordStore, StateStore,
};
use callgate::json::{Value, json};
use callgate_sqlite::SqliteStore;
use jiff::Timestamp;
use tempfile::TempDir;

/// A temporary directory for one store.
struct TempStore(TempDir);

impl TempStore {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("state.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).unwrap()
    }

    /// The names of all files in the directory.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Runs a future to completion on this thread, without timers and I/O.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn key(key: &str) -> RecordKey<'_> {
    RecordKey { space: "s", key }
}

fn record(store: &dyn StateStore, name: &str) -> Option<Record> {
    run(store.record(key(name))).unwrap()
}

fn write(store: &dyn StateStore, name: &str, value: &Value, over: Option<u64>) -> bool {
    run(store.write_record(
        at(0),
        ConditionalWrite {
            expected_version: over,
            ..ConditionalWrite::new(key(name), value, Account::NOBODY)
        },
    ))
    .unwrap()
}

fn whole(key: &str, allowance: Allowance, cost: u64) -> LimitAcquisition {
    LimitAcquisition {
        key: key.to_owned(),
        account: Account::NOBODY,
        allowance,
        cost: Amount::from_whole(cost),
    }
}

fn total(limit: u64) -> Allowance {
    Allowance::Total { limit: Amount::from_whole(limit), keep: Duration::from_secs(3600) }
}

/// Tries to acquire the amount. Returns whether it succeeded.
fn try_acquire(store: &dyn StateStore, second: i64, take: LimitAcquisition) -> bool {
    run(store.acquire(at(second), &[take])).unwrap().is_empty()
}

fn try_slot(store: &dyn StateStore, key: &str) -> bool {
    try_acquire(store, 0, whole(key, Allowance::Slots { max: 1 }, 0))
}

fn open_error(path: &Path) -> String {
    let error = SqliteStore::open(path).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn reopened_store_has_all_data() {
    let temp = TempStore::new();
    let (limit, per) = (Amount::from_whole(3), Duration::from_secs(60));
    let allowances = [
        Allowance::Gcra { limit, per, burst: limit },
        Allowance::FixedWindow { limit, per },
        Allowance::SlidingWindow { limit, per },
        Allowance::Total { limit, keep: per },
    ];
    let (value, cache_space) = (
        json!({"a": 1.10}),
        callgate::host::CacheSpace { name: "c", max_entries: 9, account: Account::NOBODY },
    );
    let entry = callgate::host::CacheEntry {
        output: value.clone(),
        stored_at: "2026-01-01T00:00:00.123456789Z".parse().unwrap(),
        expires_at: Timestamp::MAX,
    };
    {
        let store = temp.open();
        assert!(write(&store, "k", &value, None));
        for (key, allowance) in ["a", "b", "c", "d"].into_iter().zip(allowances) {
            assert!(try_acquire(&store, 30, whole(key, allowance, 2)));
        }
        run(store.cache_put(cache_space, "k", entry.clone(), 0)).unwrap();
    }
    let store = temp.open();
    let kept = record(&store, "k").unwrap();
    assert_eq!(kept.value.to_string(), value.to_string());
    for (key, allowance) in ["a", "b", "c", "d"].into_iter().zip(allowances) {
        assert!(!try_acquire(&store, 31, whole(key, allowance, 2)), "{allowance:?}");
        assert!(try_acquire(&store, 31, whole(key, allowance, 1)), "{allowance:?}");
    }
    for (key, allowance) in ["a", "b", "c", "d"].into_iter().zip(allowances) {
        assert!(try_acquire(&store, 31 + 3600, whole(key, allowance, 3)), "{allowance:?}");
    }
    assert_eq!(run(store.cache_get(at(0), cache_space, "k")).unwrap().entry, Some(entry));
    // Versions are not reused after reopening.
    assert!(write(&store, "other", &value, None));
    assert!(record(&store, "other").unwrap().version > kept.version);
}

#[test]
fn debug_output_shows_the_path_but_no_content() {
    let temp = TempStore::new();
    let store = temp.open();
    assert!(store.is_shared());
    assert!(write(&store, "secret", &json!("secret"), None));
    let shown = format!("{store:?}");
    assert!(shown.starts_with("SqliteStore { path:") && !shown.contains("secret"), "{shown}");
}

#[test]
fn closed_store_leaves_only_its_file() {
    let temp = TempStore::new();
    let stores = [temp.open(), temp.open()];
    assert!(temp.files().len() > 3);
    drop(stores);
    assert_eq!(temp.files(), ["state.db"]);
}

#[test]
fn failed_operation_does_not_roll_back_concurrent_ones() {
    let temp = TempStore::new();
    let store = temp.open();
    let bad = [whole("k", total(1), 1), whole("k", total(2), 1)];
    let good = [whole("k", total(3), 1)];
    let large = json!("x".repeat(5 << 20));
    let small = json!(1);
    let write =
        |name, value| store.write_record(at(0), ConditionalWrite::new(key(name), value, Account::NOBODY));
    let answers = run(async {
        tokio::join!(
            write("a", &small),
            store.acquire(at(0), &bad),
            write("b", &large),
            store.acquire(at(0), &good),
            write("c", &small),
        )
    });
    assert!(matches!(answers, (Ok(true), Err(_), Err(_), Ok(_), Ok(true))), "{answers:?}");
    assert!(record(&store, "a").is_some() && record(&store, "b").is_none() && record(&store, "c").is_some());
    assert!(
        try_acquire(&store, 0, whole("k", total(3), 2)) && !try_acquire(&store, 0, whole("k", total(3), 1))
    );
}
