use std::future::Future;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use callgate::host::{Allowance, Amount};
use callgate::json::{Value, json};
use callgate::state::MemoryStore;

const SMALL: FileBounds = FileBounds { is_durable: true, capacity: limits(6), max_pages: 64 };

/// Capacity for this many limits of one account, whose share is a third.
const fn limits(of_one: usize) -> Capacity {
    Capacity { limits: 3 * of_one, ..SqliteStore::CAPACITY }
}

fn store(bounds: FileBounds) -> (SqliteStore, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (SqliteStore::open_bounded(&directory.path().join("state.db"), bounds).unwrap(), directory)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(1_800_000_000_000_000 + micros).unwrap()
}

fn here(key: &str) -> RecordKey<'_> {
    RecordKey { space: "s", key }
}

fn write(
    store: &SqliteStore,
    now: i64,
    key: &str,
    value: &Value,
    forget_at: Option<i64>,
) -> Result<bool, StoreError> {
    let write = ConditionalWrite {
        forget_at: forget_at.map(at),
        ..ConditionalWrite::new(here(key), value, Account::NOBODY)
    };
    run(store.write_record(at(now), write))
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let (store, _directory) = store(SMALL);
    let large = json!("x".repeat(20_000));
    let mut written = 0;
    let error = loop {
        match write(&store, 0, &written.to_string(), &large, Some(100)) {
            Ok(answer) => assert!(answer),
            Err(error) => break error.to_string(),
        }
        written += 1;
    };
    assert!(error.contains("no disk space") && written > 3, "{error} after {written}");
    assert_eq!(run(store.records("s", None, 99)).unwrap().records.len(), written);
    let limit = Amount::from_millionths(1);
    let allowance = Allowance::Total { limit, keep: std::time::Duration::from_secs(1) };
    let account = Account::NOBODY;
    let takes = [
        LimitAcquisition { key: "k".to_owned(), account, allowance, cost: limit },
        LimitAcquisition {
            key: "k".repeat(30_000),
            account,
            allowance: Allowance::Slots { max: 1 },
            cost: Amount::ZERO,
        },
    ];
    assert!(run(store.acquire(at(0), &takes)).is_err());
    // Expired records are deleted to make room.
    assert_eq!(write(&store, 100, "later", &large, None), Ok(true));
    assert_eq!(run(store.acquire(at(100), &takes)), Ok(Vec::new()));
}

#[test]
fn jobs_that_share_a_failed_transaction_are_not_reported_as_done() {
    let (store, _directory) = store(SMALL);
    let (small, large) = (json!(1), json!("x".repeat(400_000)));
    for round in 0..20 {
        let [a, b, c] = &["a", "b", "c"].map(|key| format!("{key}{round}"));
        let write = |key, value| ConditionalWrite::new(key, value, Account::NOBODY);
        let answers = run(async {
            tokio::join!(
                store.write_record(at(0), write(here(a), &small)),
                store.write_record(at(0), write(here(b), &large)),
                store.write_record(at(0), write(here(c), &small)),
            )
        });
        for (key, answer) in [(a, answers.0), (c, answers.2)] {
            assert_eq!(run(store.record(here(key))).unwrap().is_some(), answer == Ok(true), "{key}");
        }
    }
}

#[test]
fn a_step_of_the_clock_counts_from_when_it_was_first_seen() {
    let (store, _directory) = store(FileBounds { capacity: limits(1), ..SMALL });
    let limit = Amount::from_millionths(1);
    let take = |key: &str, now| {
        let allowance = Allowance::SlidingWindow { limit, per: std::time::Duration::from_secs(10) };
        run(store.acquire(
            at(now),
            &[LimitAcquisition { key: key.to_owned(), account: Account::NOBODY, allowance, cost: limit }],
        ))
    };
    assert_eq!(take("a", 100_000_000), Ok(Vec::new()));
    // One without room, and one that is refused.
    assert!(take("b", 50_000_000).is_err());
    assert!(take("a", 59_999_999).is_ok_and(|refusals| refusals.len() == 1));
    assert_eq!(take("b", 60_000_000), Ok(Vec::new()));
    assert!(take("b", 10_000_000).is_ok_and(|refusals| refusals.len() == 1));
    assert_eq!(take("b", 20_000_000), Ok(Vec::new()));
}

#[test]
fn drops_the_least_recently_used_cache_space() {
    let (store, _directory) = store(FileBounds { max_pages: 1 << 20, ..SMALL });
    fn space(name: &str) -> CacheSpace<'_> {
        CacheSpace { name, max_entries: 9, account: Account::NOBODY }
    }
    let get = |name: &str| run(store.cache_get(at(1), space(name), "k")).unwrap();
    let put = |name: &str, generation| {
        let entry = CacheEntry { output: json!(1), stored_at: at(0), expires_at: at(9) };
        run(store.cache_put(space(name), "k", entry, generation)).unwrap();
    };
    let late = get("late").generation;
    put("first", late);
    for number in 0..callgate::state::cache::MAX_SPACES {
        assert!(get("first").entry.is_some());
        let name = format!("s{number}");
        put(&name, get(&name).generation);
    }
    assert!(get("s0").entry.is_none() && get("s1").entry.is_some() && get("first").entry.is_some());
    // The generation from before the space was dropped is rejected: the space may have been cleared since.
    put("late", late);
    assert!(get("late").entry.is_none());
}

fn any_allowance() -> impl Strategy<Value = Allowance> {
    (0..5, 0..5_u64, prop_oneof![Just(100), Just(300)]).prop_map(|(kind, number, per)| {
        let (limit, per) = (Amount::from_millionths(number), std::time::Duration::from_micros(per));
        match kind {
            0 => Allowance::Gcra { limit, per, burst: limit },
            1 => Allowance::FixedWindow { limit, per },
            2 => Allowance::SlidingWindow { limit, per },
            3 => Allowance::Total { limit, keep: per },
            _ => Allowance::Slots { max: 2 },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(30) })]

    /// With little capacity there are errors, but no other results than those of a large store in memory.
    #[test]
    fn limits_are_never_dropped_for_lack_of_room(
        steps in prop::collection::vec(
            (
                0..60_i64,
                prop::collection::vec(0..12_usize, 1..4),
                any::<bool>(),
            ),
            1..60,
        ),
        allowances in prop::collection::vec(any_allowance(), 12),
    ) {
        let ((small, _directory), large) = (store(SMALL), MemoryStore::default());
        let mut now = 0;
        for (wait, batch, gives_back) in steps {
            now += wait;
            let one = |key: usize| LimitAcquisition {
                key: key.to_string(),
                account: Account::NOBODY,
                allowance: allowances[key],
                cost: Amount::from_millionths(1),
            };
            let batch: Vec<LimitAcquisition> = batch.into_iter().map(one).collect();
            if let Ok(answer) = run(small.acquire(at(now), &batch)) {
                prop_assert_eq!(run(large.acquire(at(now), &batch)), Ok(answer));
            }
            if gives_back {
                for take in &batch {
                    small.release(&take.key);
                    large.release(&take.key);
                }
            }
        }
    }

    /// Limits that are used once are removed.
    #[test]
    fn limits_that_are_used_once_make_room_for_later_ones(step in 20..200_i64) {
        let (store, _directory) = store(SMALL);
        let per = std::time::Duration::from_micros(100);
        let limit = Amount::from_millionths(1);
        for number in 0..30 {
            let allowance = Allowance::FixedWindow { limit, per };
            let take = LimitAcquisition { key: number.to_string(), account: Account::NOBODY, allowance, cost: limit };
            prop_assert_eq!(run(store.acquire(at(number * step), &[take])), Ok(Vec::new()));
        }
    }
}
