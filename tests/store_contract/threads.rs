//! Limits with concurrent callers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

const THREADS: usize = 4;

pub fn threads_acquire_exactly_the_limit(new: &New) {
    let slots = Allowance::Slots { max: 100 };
    for allowance in [gcra(100, 3600, 100), fixed(100, 3600), sliding(100, 3600), total(100, 3600), slots] {
        let store = new();
        let admitted = AtomicU64::new(0);
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..100 {
                        if acquire_one(&*store, seconds(0), take("k", allowance, 1)).is_ok() {
                            admitted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 100, "{allowance:?}");
    }
}

pub fn overlapping_batches_acquire_exactly_the_limits(new: &New) {
    const LIMIT: u64 = 150;
    const KEYS: [&str; 3] = ["a", "b", "c"];
    let store = new();
    let allowances = [fixed(LIMIT, 3600), sliding(LIMIT, 3600), gcra(LIMIT, 3600, LIMIT)];
    let taken: [AtomicU64; 3] = Default::default();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, taken, start) = (&store, &taken, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..200 {
                    let first = (thread + round) % 3;
                    // In either order, sometimes all three.
                    let mut limits = vec![first, (first + 1) % 3];
                    if round % 5 == 0 {
                        limits.push((first + 2) % 3);
                    }
                    if thread % 2 == 0 {
                        limits.reverse();
                    }
                    let batch: Vec<LimitAcquisition> =
                        limits.iter().map(|limit| take(KEYS[*limit], allowances[*limit], 1)).collect();
                    if acquire(&**store, seconds(0), &batch).is_empty() {
                        for limit in limits {
                            taken[limit].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    for (limit, taken) in taken.into_iter().enumerate() {
        let left = LIMIT.checked_sub(taken.into_inner()).expect("more than the limit was acquired");
        let take = |cost| acquire_one(&*store, seconds(0), take(KEYS[limit], allowances[limit], cost));
        assert_eq!(take(left), Ok(()), "a rejected batch acquired some of {}", KEYS[limit]);
        assert!(take(1).is_err(), "an admitted batch did not acquire {}", KEYS[limit]);
    }
}
