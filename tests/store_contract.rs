//! What every state store keeps to, whatever lies behind it: one suite, which each store runs.

mod cache_model;
mod caches;
mod clocks;
mod limit_model;
mod limits;
#[cfg(test)]
mod memory_bounds;
mod records;
mod slots;
mod tenants;
mod threads;

use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "file-store")]
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use callgate::host::{Account, Allowance, Amount, Refusal, StateStore, SystemClock, Take};
use callgate::seal::Keys;
#[cfg(feature = "file-store")]
use callgate::state::FileStore;
use callgate::state::{Capacity, MemoryStore, SealedStore};
use jiff::Timestamp;

/// Makes a store in which nothing is taken and nothing kept.
type New = dyn Fn() -> Arc<dyn StateStore>;

/// Makes a test of every case for one store.
macro_rules! keeps_the_contract {
    ($store:ident, $new:expr) => {
        keeps_the_contract! { $store, $new,
            limits: [
                gcra_admits_its_burst_and_then_what_flows_back
                fixed_windows_follow_the_epoch
                a_sliding_window_counts_each_take_for_its_span
                a_total_is_forgotten_when_nothing_was_taken_for_long
                a_cost_of_nothing_is_always_admitted
                what_exceeds_the_limit_can_never_be_taken
                a_batch_takes_all_or_nothing
                a_key_twice_in_a_batch_counts_twice
                a_key_twice_by_different_numbers_is_an_error
                a_reload_keeps_what_was_taken
                another_algorithm_starts_anew
                keys_are_apart
            ]
            limit_model: [admits_what_a_recount_admits batches_leave_nothing_half_taken]
            clocks: [
                a_step_back_locks_nobody_out
                a_step_back_admits_no_more_than_the_limit_since
                late_callers_take_nothing_twice
                a_jump_forward_frees_what_is_over
            ]
            slots: [
                slots_are_given_back
                fewer_slots_wait_for_those_in_use
                giving_back_what_nobody_holds_frees_nothing
                a_slot_freed_before_the_wait_is_not_missed
                waiters_all_get_their_slot
            ]
            threads: [threads_take_exactly_the_limit threads_with_overlapping_batches_take_exactly_the_limits]
            caches: [
                an_entry_lives_from_its_writing
                an_entry_of_the_future_is_not_given_out
                a_hit_does_not_prolong_life
                a_smaller_space_lets_go_what_was_used_longest_ago
                a_space_for_nothing_keeps_nothing
                what_was_on_its_way_to_a_cleared_space_is_not_kept
                spaces_are_apart
            ]
            cache_model: [holds_what_was_used_last]
            records: [
                a_record_is_exchanged_by_who_knows_it
                versions_never_repeat
                a_record_is_forgotten_only_after_its_time
                pages_come_in_the_order_of_keys
                spaces_of_records_are_apart
                of_many_who_write_over_one_version_one_succeeds
                threads_that_count_together_lose_nothing
                a_record_is_kept_as_it_was_written
                a_record_that_is_too_large_is_refused
            ]
        }
    };
    ($store:ident, $new:expr, $($room:ident: [$($case:ident)*])*) => {
        mod $store {
            $($(
                #[test]
                fn $case() {
                    super::$room::$case(&$new);
                }
            )*)*
        }
    };
}

keeps_the_contract!(memory, || super::Arc::new(super::MemoryStore::default()));
keeps_the_contract!(sealed, || super::sealed());
#[cfg(feature = "file-store")]
keeps_the_contract!(file, super::in_files());
#[cfg(feature = "file-store")]
keeps_the_contract!(sealed_file, super::sealed_in_files());

/// A store in memory with its anchor there, too.
fn sealed() -> Arc<dyn StateStore> {
    let memory = || Arc::new(MemoryStore::default());
    Arc::new(SealedStore::anchored(memory(), keys(), memory(), SystemClock))
}

fn keys() -> Keys {
    Keys::parse(&"5a".repeat(32)).unwrap()
}

#[cfg(feature = "file-store")]
fn sealed_in_files() -> impl Fn() -> Arc<dyn StateStore> {
    let (stores, anchors) = (in_files(), in_files());
    move || Arc::new(SealedStore::anchored(stores(), keys(), anchors(), SystemClock))
}

/// Opens stores in files of their own, which go with what makes them.
#[cfg(feature = "file-store")]
fn in_files() -> impl Fn() -> Arc<dyn StateStore> {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicU32::new(0);
    move || {
        let name = format!("{}.db", count.fetch_add(1, Ordering::Relaxed));
        Arc::new(FileStore::open(&directory.path().join(name)).unwrap())
    }
}

/// Runs a future to its end on this thread.
fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A time on a day in 2026, which begins a window of every length that divides a day.
fn at(time: Duration) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().checked_add(time).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn take(key: &str, allowance: Allowance, cost: u64) -> Take {
    Take { key: key.to_owned(), account: Account::NOBODY, allowance, cost: Amount::whole(cost) }
}

fn takes(store: &dyn StateStore, now: Duration, takes: &[Take]) -> Vec<Refusal> {
    run(store.take(at(now), takes)).unwrap()
}

/// One take alone: `Ok`, or after how long it may be taken.
fn take_one(store: &dyn StateStore, now: Duration, one: Take) -> Result<(), Option<Duration>> {
    match takes(store, now, &[one])[..] {
        [] => Ok(()),
        [Refusal { index: 0, retry_after }] => Err(retry_after),
        ref refusals => panic!("one take has no refusals like {refusals:?}"),
    }
}

/// Whether slots are free, of which one is taken then.
fn slot(store: &dyn StateStore, key: &str, max: u32) -> bool {
    take_one(store, seconds(0), take(key, Allowance::Slots { max }, 0)).is_ok()
}

fn gcra(limit: u64, per: u64, burst: u64) -> Allowance {
    Allowance::Gcra { limit: Amount::whole(limit), per: seconds(per), burst: Amount::whole(burst) }
}

fn fixed(limit: u64, per: u64) -> Allowance {
    Allowance::FixedWindow { limit: Amount::whole(limit), per: seconds(per) }
}

fn sliding(limit: u64, per: u64) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::whole(limit), per: seconds(per) }
}

fn total(limit: u64, keep: u64) -> Allowance {
    Allowance::Total { limit: Amount::whole(limit), keep: seconds(keep) }
}
