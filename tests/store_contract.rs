//! The contract of state stores: one test suite that every store runs.

pub mod announcements;
mod cache_model;
mod caches;
mod clocks;
mod limit_model;
mod limit_scales;
mod limits;
#[cfg(test)]
mod memory_bounds;
mod records;
mod slots;
pub mod tenants;
mod threads;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callgate::host::{
    Account, Allowance, Amount, LimitAcquisition, LimitCorrection, LimitRefusal, RealCost, StateStore,
    SystemClock,
};
use callgate::seal::Keys;
use callgate::state::{Capacity, MemoryStore, SealedStore};
use callgate_sqlite::SqliteStore;
use jiff::Timestamp;

/// Creates an empty store.
pub type New = dyn Fn() -> Arc<dyn StateStore>;

/// Passes every case to a macro, after some arguments.
macro_rules! with_cases {
    ($then:ident! $($arguments:tt)*) => {
        $then! { $($arguments)*
            limits: [
                gcra_admits_its_burst_and_then_refills
                fixed_windows_follow_the_epoch
                sliding_window_counts_each_take_for_its_duration
                total_resets_after_long_inactivity
                zero_cost_is_always_admitted
                cost_above_the_limit_is_never_admitted
                batch_acquires_all_or_nothing
                duplicate_key_in_a_batch_counts_twice
                duplicate_key_with_different_allowances_is_an_error
                changed_limits_keep_the_usage
                changed_algorithm_resets_the_usage
                keys_are_independent
                overshoot_is_debt_until_it_has_flowed_back
                refunds_give_back_what_still_counts
                unknown_cost_takes_all_that_is_left
                corrections_survive_the_removal_of_the_limit
                estimate_of_zero_is_corrected
            ]
            limit_model: [admits_the_same_as_the_model rejected_batches_acquire_nothing]
            limit_scales: [amounts_of_all_sizes_are_answered_as_in_memory]
            clocks: [
                clock_step_back_does_not_block_callers
                clock_step_back_admits_at_most_the_limit
                late_callers_do_not_exceed_the_limit
                clock_jump_forward_frees_expired_usage
            ]
            slots: [
                slots_are_released
                reduced_slots_count_those_in_use
                releasing_an_unused_slot_frees_nothing
                slot_released_before_the_wait_is_noticed
                all_waiters_get_a_slot
            ]
            threads: [threads_acquire_exactly_the_limit overlapping_batches_acquire_exactly_the_limits]
            caches: [
                entry_expires_after_its_ttl
                entry_from_the_future_is_not_returned
                hit_does_not_extend_the_ttl
                smaller_space_evicts_the_least_recently_used
                space_of_size_zero_stores_nothing
                write_started_before_a_clear_is_dropped
                cache_spaces_are_independent
            ]
            cache_model: [keeps_the_most_recently_used]
            records: [
                record_write_needs_the_current_version
                versions_never_repeat
                record_is_dropped_only_after_its_time
                pages_are_in_key_order
                records_with_keys_are_in_the_order_of_the_keys
                batch_has_records_of_all_spaces_in_the_order_of_the_keys
                record_spaces_are_independent
                one_of_many_concurrent_writers_succeeds
                concurrent_increments_lose_nothing
                record_is_stored_losslessly
                too_large_record_is_rejected
            ]
        }
    };
}

/// Generates a test of every case for one store.
macro_rules! generate_tests {
    ($store:ident, $new:expr, $($module:ident: [$($case:ident)*])*) => {
        mod $store {
            $($(
                #[test]
                fn $case() {
                    super::$module::$case(&$new);
                }
            )*)*
        }
    };
}

macro_rules! test_contract {
    ($store:ident, $new:expr) => {
        with_cases! { generate_tests! $store, $new, }
    };
}

/// Lists every case with its name.
macro_rules! list_cases {
    ($($module:ident: [$($case:ident)*])*) => {
        vec![$($((concat!(stringify!($module), "::", stringify!($case)), $module::$case as fn(&New))),*),*]
    };
}

thread_local! {
    /// By what the number of generated cases is divided, for stores that are slower than files.
    static CASE_DIVISOR: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
}

/// Runs every case on a store that takes long to start, in one test, with a tenth of the generated cases.
pub fn check_all(new: &New) {
    CASE_DIVISOR.set(10);
    for (name, case) in with_cases!(list_cases!) {
        println!("{name}");
        case(new);
    }
}

test_contract!(memory, || super::Arc::new(super::MemoryStore::default()));
test_contract!(sealed, || super::sealed());
test_contract!(file, super::in_files());
test_contract!(sealed_file, super::sealed_in_files());

/// A sealed store with store and anchor in memory.
fn sealed() -> Arc<dyn StateStore> {
    let memory = || Arc::new(MemoryStore::default());
    Arc::new(SealedStore::with_anchor(memory(), keys(), memory(), SystemClock))
}

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

fn sealed_in_files() -> impl Fn() -> Arc<dyn StateStore> {
    let (stores, anchors) = (in_files(), in_files());
    move || Arc::new(SealedStore::with_anchor(stores(), keys(), anchors(), SystemClock))
}

/// Opens each store in its own file. The files are deleted with the returned function.
fn in_files() -> impl Fn() -> Arc<dyn StateStore> {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicU32::new(0);
    move || {
        let name = format!("{}.db", count.fetch_add(1, Ordering::Relaxed));
        Arc::new(SqliteStore::open(&directory.path().join(name)).unwrap())
    }
}

/// Runs a future to completion on this thread.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A time since the start of 2026, where a window of every length that divides a day begins.
fn at(time: Duration) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().checked_add(time).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn take(key: &str, allowance: Allowance, cost: u64) -> LimitAcquisition {
    LimitAcquisition {
        key: key.to_owned(),
        account: Account::NOBODY,
        allowance,
        cost: Amount::from_whole(cost),
    }
}

fn acquire(store: &dyn StateStore, now: Duration, takes: &[LimitAcquisition]) -> Vec<LimitRefusal> {
    run(store.acquire(at(now), takes)).unwrap()
}

/// Corrects the cost of what was acquired at that time.
fn correct(
    store: &dyn StateStore,
    now: Duration,
    acquired_at: Duration,
    one: LimitAcquisition,
    cost: RealCost,
) {
    let correction = LimitCorrection { acquisition: one, acquired_at: at(acquired_at), cost };
    run(store.correct(at(now), &[correction])).unwrap();
}

/// Acquires one amount. Returns `Ok`, or the wait until it is available.
fn acquire_one(store: &dyn StateStore, now: Duration, one: LimitAcquisition) -> Result<(), Option<Duration>> {
    match acquire(store, now, &[one])[..] {
        [] => Ok(()),
        [LimitRefusal { index: 0, retry_after }] => Err(retry_after),
        ref refusals => panic!("unexpected refusals {refusals:?}"),
    }
}

/// Tries to acquire a slot. Returns whether it succeeded.
fn try_slot(store: &dyn StateStore, key: &str, max: u32) -> bool {
    acquire_one(store, seconds(0), take(key, Allowance::Slots { max }, 0)).is_ok()
}

fn gcra(limit: u64, per: u64, burst: u64) -> Allowance {
    Allowance::Gcra { limit: Amount::from_whole(limit), per: seconds(per), burst: Amount::from_whole(burst) }
}

fn fixed(limit: u64, per: u64) -> Allowance {
    Allowance::FixedWindow { limit: Amount::from_whole(limit), per: seconds(per) }
}

fn sliding(limit: u64, per: u64) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_whole(limit), per: seconds(per) }
}

fn total(limit: u64, keep: u64) -> Allowance {
    Allowance::Total { limit: Amount::from_whole(limit), keep: seconds(keep) }
}
