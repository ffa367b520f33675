//! Sharded limits: never more than the limit, and little less.

use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::host::Account;
use callgate::state::MemoryStore;
use proptest::prelude::*;
use tokio::runtime::Builder;

use super::*;

const SHARDS: u32 = 8;

fn sharded() -> ShardedLimits {
    ShardedLimits::new(Arc::new(MemoryStore::default()), SHARDS)
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

fn take(key: &str, allowance: Allowance, cost: u64) -> LimitAcquisition {
    let cost = Amount::from_whole(cost);
    LimitAcquisition { key: key.to_owned(), account: Account::NOBODY, allowance, cost }
}

fn sliding(limit: u64) -> Allowance {
    Allowance::SlidingWindow { limit: Amount::from_whole(limit), per: Duration::from_secs(60) }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

fn acquire(limits: &ShardedLimits, seconds: u64, takes: &[LimitAcquisition]) -> Vec<LimitRefusal> {
    run(limits.acquire(at(seconds), takes)).unwrap()
}

fn is_acquired(limits: &ShardedLimits, seconds: u64, take: LimitAcquisition) -> bool {
    acquire(limits, seconds, &[take]).is_empty()
}

fn correct(limits: &ShardedLimits, seconds: u64, acquired_at: u64, one: LimitAcquisition, cost: RealCost) {
    let correction = LimitCorrection { acquisition: one, acquired_at: at(acquired_at), cost };
    run(limits.correct(at(seconds), &[correction])).unwrap();
}

/// Acquires one after the other until one is refused. Returns how many were acquired.
fn fill(limits: &ShardedLimits, seconds: u64, one: &LimitAcquisition) -> usize {
    (0..).take_while(|_| is_acquired(limits, seconds, one.clone())).count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn never_more_than_the_limit_and_a_hundredth_less_at_most(
        limit in 1..4_000_u64,
        steps in prop::collection::vec((0..20_u64, 0..4_u64, 0..4_u8), 1..200),
    ) {
        let limits = sharded();
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for (wait, cost, size) in steps {
            now += wait;
            let used: u64 = admitted.iter().filter(|(time, _)| now < time + 60).map(|(_, cost)| cost).sum();
            let cost = match size {
                0 | 1 => cost,
                2 => cost * limit / 16,
                // All that is left, or a little more.
                _ => limit - used + cost,
            };
            let is_admitted = is_acquired(&limits, now, take("k", sliding(limit), cost));
            if is_admitted {
                prop_assert!(used + cost <= limit, "{cost} beside {used} of {limit}");
                admitted.push((now, cost));
            } else if limit < 100 * u64::from(SHARDS) {
                prop_assert!(used + cost > limit, "{cost} beside {used} of {limit} is refused");
            } else if cost * 100 * u64::from(SHARDS) <= limit {
                prop_assert!(used + limit / 100 >= limit, "{cost} beside {used} of {limit} is refused");
            }
        }
    }
}

#[test]
fn calls_of_one_fill_the_limit_to_its_last_units() {
    let acquired = fill(&sharded(), 0, &take("k", sliding(10_000), 1));
    assert_eq!(acquired, 10_000);
    // Of 10,003, each shard has a part without a whole unit.
    let acquired = fill(&sharded(), 0, &take("k", sliding(10_003), 1));
    assert!((9_993..=10_003).contains(&acquired), "{acquired}");
}

#[test]
fn a_call_of_more_than_a_shard_is_taken_from_all() {
    let limits = sharded();
    assert!(is_acquired(&limits, 0, take("k", sliding(10_000), 9_000)));
    assert!(!is_acquired(&limits, 0, take("k", sliding(10_000), 1_001)));
    assert!(is_acquired(&limits, 0, take("k", sliding(10_000), 1_000)));
    assert!(!is_acquired(&limits, 0, take("k", sliding(10_000), 1)));
}

#[test]
fn a_refusal_says_when_it_is_available() {
    let limits = sharded();
    for (cost, whole) in [(1, "small"), (5_000, "large")] {
        let one = take(whole, sliding(10_000), cost);
        fill(&limits, 0, &one);
        let refusals = acquire(&limits, 20, std::slice::from_ref(&one));
        assert_eq!(refusals, [LimitRefusal { index: 0, retry_after: Some(Duration::from_secs(40)) }]);
        assert!(is_acquired(&limits, 60, one));
    }
}

#[test]
fn a_batch_is_acquired_whole_or_not_at_all() {
    let limits = sharded();
    let (great, small) = (take("great", sliding(10_000), 1), take("small", sliding(3), 1));
    let both = [great.clone(), small];
    (0..3).for_each(|_| assert_eq!(acquire(&limits, 0, &both), []));
    for _ in 0..50 {
        let refused: Vec<usize> = acquire(&limits, 0, &both).iter().map(|refusal| refusal.index).collect();
        assert_eq!(refused, [1]);
    }
    assert_eq!(fill(&limits, 0, &great), 10_000 - 3);
}

#[test]
fn real_costs_count_wherever_they_were_taken_from() {
    let one = take("k", sliding(10_000), 10);
    // A refund.
    let limits = sharded();
    assert!(is_acquired(&limits, 0, one.clone()));
    correct(&limits, 1, 0, one.clone(), RealCost::Known(Amount::from_whole(4)));
    assert_eq!(fill(&limits, 1, &take("k", sliding(10_000), 1)), 9_996);
    // What was used beyond the estimate is taken from all shards.
    let limits = sharded();
    assert!(is_acquired(&limits, 0, one.clone()));
    correct(&limits, 1, 0, one.clone(), RealCost::Known(Amount::from_whole(9_010)));
    assert_eq!(fill(&limits, 1, &take("k", sliding(10_000), 1)), 990);
    // As is an unknown cost: all that is left.
    let limits = sharded();
    assert!(is_acquired(&limits, 0, one.clone()));
    correct(&limits, 1, 0, one.clone(), RealCost::Unknown);
    assert_eq!(fill(&limits, 1, &take("k", sliding(10_000), 1)), 0);
    // After a restart it is not known which shard it was: no more than the limit is admitted, whichever is refunded.
    let store = Arc::new(MemoryStore::default());
    let before = ShardedLimits::new(store.clone(), SHARDS);
    assert!(is_acquired(&before, 0, one.clone()));
    let after = ShardedLimits::new(store, SHARDS);
    correct(&after, 1, 0, one, RealCost::Known(Amount::from_whole(0)));
    let left = fill(&after, 1, &take("k", sliding(10_000), 1));
    assert!((9_990..=10_000).contains(&left), "{left}");
    // Of a call that was taken from all shards.
    let (limits, large) = (sharded(), take("k", sliding(10_000), 8_000));
    assert!(is_acquired(&limits, 0, large.clone()));
    correct(&limits, 1, 0, large, RealCost::Known(Amount::from_whole(2_000)));
    assert_eq!(fill(&limits, 1, &take("k", sliding(10_000), 1)), 8_000);
}

#[test]
fn slots_are_not_split() {
    let limits = sharded();
    let slot = take("s", Allowance::Slots { max: 900 }, 0);
    assert_eq!(fill(&limits, 0, &slot), 900);
    limits.release("s");
    assert!(is_acquired(&limits, 0, slot));
}

/// A store that counts how often it is asked.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    asked: AtomicUsize,
}

impl LimitStore for CountingStore {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.acquire(now, takes)
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.store.correct(now, corrections)
    }

    fn release(&self, key: &str) {
        self.store.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.store.slot_released()
    }
}

#[test]
fn who_repeats_refused_calls_does_not_multiply_the_load() {
    let store = Arc::new(CountingStore::default());
    let limits = ShardedLimits::new(store.clone(), SHARDS);
    let one = take("k", sliding(10_000), 1);
    fill(&limits, 0, &one);
    let asked = || store.asked.swap(0, Ordering::Relaxed);
    asked();
    (0..50).for_each(|_| assert!(!is_acquired(&limits, 0, one.clone())));
    assert_eq!(asked(), 50);
    // Later, all are asked again.
    assert!(!is_acquired(&limits, 1, one.clone()));
    assert_eq!(asked(), SHARDS as usize);
    // So they are for a call that costs less.
    let refused = take("dear", sliding(10_000), 12);
    fill(&limits, 1, &refused);
    assert!(is_acquired(&limits, 1, take("dear", sliding(10_000), 1)));
}
