//! Fair sharing of capacity: a hostile caller fills each kind of memory, and an honest one loses nothing. On every store.

use callgate::host::{Account, CacheEntry, CacheSpace, ConditionalWrite, OnQuotaExceeded, RecordKey, space};
use callgate::json::{Value, json};

use super::*;

/// Creates a store with this capacity.
pub type Sized = dyn Fn(Capacity) -> Arc<dyn StateStore>;

const SMALL: Capacity = Capacity { limits: 300, records: 300, cached: 300 };

/// Passes every case to a macro, after some arguments.
macro_rules! with_cases {
    ($then:ident! $($arguments:tt)*) => {
        $then! { $($arguments)*
            flood_of_limits_is_rejected_for_its_caller_only
            tenant_with_many_callers_leaves_capacity_for_others
            flood_of_records_is_rejected_for_its_caller_only
            flood_of_sessions_evicts_the_callers_own_oldest
            flood_of_one_cache_space_keeps_entries_of_others
            flood_of_all_cache_spaces_keeps_entries_of_others
        }
    };
}

/// Generates a test of every case for one store.
macro_rules! generate_tests {
    ($store:ident, $new:expr, $($case:ident)*) => {
        mod $store {
            $(
                #[test]
                fn $case() {
                    super::$case(&$new);
                }
            )*
        }
    };
}

macro_rules! test_fair_sharing {
    ($store:ident, $new:expr) => {
        with_cases! { generate_tests! $store, $new, }
    };
}

/// Lists every case with its name.
macro_rules! list_cases {
    ($($case:ident)*) => {
        [$((stringify!($case), $case as fn(&Sized))),*]
    };
}

/// Runs every case on a store that takes long to start, in one test.
pub fn check_all(new: &Sized) {
    for (name, case) in with_cases!(list_cases!) {
        println!("{name}");
        case(new);
    }
}

test_fair_sharing!(memory, |capacity| super::Arc::new(super::MemoryStore::with_capacity(capacity)));
test_fair_sharing!(sealed, |capacity| super::anchored(
    &|capacity| { super::Arc::new(super::MemoryStore::with_capacity(capacity)) },
    capacity
));
test_fair_sharing!(file, super::in_files());
test_fair_sharing!(sealed_file, {
    let new = super::in_files();
    move |capacity| super::anchored(&new, capacity)
});

fn anchored(new: &Sized, capacity: Capacity) -> Arc<dyn StateStore> {
    Arc::new(SealedStore::with_anchor(new(capacity), keys(), new(MemoryStore::CAPACITY), SystemClock))
}

fn in_files() -> impl Fn(Capacity) -> Arc<dyn StateStore> {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicU32::new(0);
    move |capacity| {
        let name = format!("{}.db", count.fetch_add(1, Ordering::Relaxed));
        Arc::new(SqliteStore::open_with(&directory.path().join(name), capacity).unwrap())
    }
}

fn account(tenant: &str, principal: &str) -> Account {
    Account::from_context(&json!({ "tenant": tenant, "principal": principal }))
}

fn honest() -> Account {
    account("honest", "ann")
}

fn hostile() -> Account {
    account("hostile", "mallory")
}

fn acquires(store: &dyn StateStore, account: Account, key: &str) -> bool {
    let one = LimitAcquisition { account, ..take(key, fixed(5, 86_400), 1) };
    run(store.acquire(at(seconds(0)), &[one])).is_ok_and(|refusals| refusals.is_empty())
}

fn flood_of_limits_is_rejected_for_its_caller_only(new: &Sized) {
    let store = new(SMALL);
    assert!(acquires(&*store, honest(), "before"));
    let taken = (0..2_000).filter(|key| acquires(&*store, hostile(), &format!("invented {key}"))).count();
    assert!((90..=100).contains(&taken), "{taken}");
    for key in 0..20 {
        assert!(acquires(&*store, honest(), &format!("own {key}")), "{key}");
    }
    // Tracked limits are counted exactly, for every account.
    for _ in 0..4 {
        assert!(acquires(&*store, honest(), "before") && acquires(&*store, hostile(), "invented 0"));
    }
    assert!(!acquires(&*store, honest(), "before") && !acquires(&*store, hostile(), "invented 0"));
    // Expired limits free capacity.
    let next_day = at(seconds(2 * 86_400));
    let one = LimitAcquisition { account: hostile(), ..take("later", fixed(5, 86_400), 1) };
    assert_eq!(run(store.acquire(next_day, &[one])), Ok(Vec::new()));
}

fn tenant_with_many_callers_leaves_capacity_for_others(new: &Sized) {
    let store = new(SMALL);
    for caller in 0..40 {
        let account = account("hostile", &caller.to_string());
        for key in 0..150 {
            if !acquires(&*store, account, &format!("{caller} {key}")) {
                break;
            }
        }
    }
    for key in 0..40 {
        assert!(acquires(&*store, honest(), &format!("own {key}")), "{key}");
    }
}

fn write(
    store: &dyn StateStore,
    account: Account,
    key: RecordKey<'_>,
    value: &Value,
    over: Option<u64>,
) -> bool {
    let when_full =
        if key.space == space::SESSIONS { OnQuotaExceeded::EvictOldest } else { OnQuotaExceeded::Refuse };
    let write =
        ConditionalWrite { expected_version: over, when_full, ..ConditionalWrite::new(key, value, account) };
    run(store.write_record(at(seconds(0)), write)).is_ok_and(|written| written)
}

fn call(key: &str) -> RecordKey<'_> {
    RecordKey { space: space::CALLS, key }
}

fn session(key: &str) -> RecordKey<'_> {
    RecordKey { space: space::SESSIONS, key }
}

fn flood_of_records_is_rejected_for_its_caller_only(new: &Sized) {
    let store = new(SMALL);
    let value = json!("asked");
    assert!(write(&*store, honest(), call("before"), &value, None));
    let names: Vec<String> = (0..500).map(|number| format!("invented {number}")).collect();
    let written = names.iter().filter(|name| write(&*store, hostile(), call(name), &value, None)).count();
    assert!((80..=100).contains(&written), "{written}");
    assert!(run(store.has_lost_records(&hostile())).unwrap());
    // Large records use more capacity.
    let large = json!("x".repeat(100_000));
    assert!(!write(&*store, hostile(), call("large"), &large, None));
    assert!(write(&*store, honest(), call("large"), &large, None));
    for name in ["a", "b", "c"] {
        assert!(write(&*store, honest(), call(name), &value, None), "{name}");
    }
    assert!(!run(store.has_lost_records(&honest())).unwrap());
    // Written records stay and can be changed, also by an approver without an account.
    for (name, account) in
        [("before", Account::NOBODY), ("invented 0", hostile()), ("invented 1", Account::NOBODY)]
    {
        let version = run(store.record(call(name))).unwrap().unwrap().version;
        assert!(write(&*store, account, call(name), &json!("answered"), Some(version)), "{name}");
    }
}

fn flood_of_sessions_evicts_the_callers_own_oldest(new: &Sized) {
    let store = new(SMALL);
    let value = json!({ "labels": ["tainted"] });
    let program_exists = |name: &str| run(store.record(session(name))).unwrap().is_some();
    assert!(write(&*store, honest(), session("honest"), &value, None));
    assert!(write(&*store, hostile(), call("asked"), &value, None));
    let names: Vec<String> = (0..400).map(|number| format!("invented {number}")).collect();
    let written: Vec<&String> =
        names.iter().filter(|name| write(&*store, hostile(), session(name), &value, None)).collect();
    assert!(run(store.has_lost_records(&hostile())).unwrap());
    assert!(!run(store.has_lost_records(&honest())).unwrap());
    let batch = |names: &[&str], account| {
        let keys: Vec<_> = names.iter().map(|name| session(name)).collect();
        run(store.record_batch(&keys, &account)).unwrap().has_lost_records
    };
    assert!(batch(&["honest", "missing"], hostile()), "the missing record may be a lost one");
    assert!(!batch(&["honest", "missing"], honest()));
    assert!(!batch(&["honest"], hostile()), "nothing is missing");
    assert!(program_exists("honest"), "the honest caller's session is evicted");
    // With an anchor nothing is evicted: eviction could not be distinguished from tampering.
    if !store.is_sealed() {
        assert_eq!(written.len(), names.len(), "the newest sessions are kept");
        assert!(!program_exists("invented 0") && program_exists("invented 399"));
        assert!(run(store.record(call("asked"))).unwrap().is_some(), "records of other spaces stay");
    }
    assert!(write(&*store, honest(), session("another"), &value, None));
}

fn put_entry(store: &dyn StateStore, space: CacheSpace<'_>, key: &str, output: Value) {
    let generation = run(store.cache_get(at(seconds(0)), space, key)).unwrap().generation;
    let entry = CacheEntry { output, stored_at: at(seconds(0)), expires_at: at(seconds(60)) };
    run(store.cache_put(space, key, entry, generation)).unwrap();
}

fn has_entry(store: &dyn StateStore, space: CacheSpace<'_>, key: &str) -> bool {
    run(store.cache_get(at(seconds(1)), space, key)).unwrap().entry.is_some()
}

fn flood_of_one_cache_space_keeps_entries_of_others(new: &Sized) {
    let store = new(SMALL);
    let space = |account| CacheSpace { name: "s", max_entries: 20, account };
    for key in 0..5 {
        put_entry(&*store, space(honest()), &format!("own {key}"), json!(key));
    }
    for key in 0..200 {
        put_entry(&*store, space(hostile()), &format!("invented {key}"), json!(key));
    }
    for key in 0..5 {
        assert!(has_entry(&*store, space(honest()), &format!("own {key}")), "{key}");
    }
    assert!(has_entry(&*store, space(hostile()), "invented 199"));
    assert!(!has_entry(&*store, space(hostile()), "invented 0"));
}

fn flood_of_all_cache_spaces_keeps_entries_of_others(new: &Sized) {
    let store = new(SMALL);
    let of = |name, account| CacheSpace { name, max_entries: 1_000, account };
    put_entry(&*store, of("own", honest()), "k", json!(1));
    put_entry(&*store, of("both", honest()), "k", json!(1));
    for (number, name) in ["a", "b", "both"].into_iter().cycle().take(60).enumerate() {
        put_entry(&*store, of(name, hostile()), &format!("invented {number}"), json!("x".repeat(40_000)));
    }
    assert!(has_entry(&*store, of("own", honest()), "k") && has_entry(&*store, of("both", honest()), "k"));
    assert!(!has_entry(&*store, of("a", hostile()), "invented 0"));
    assert!(has_entry(&*store, of("both", hostile()), "invented 59"));
}
