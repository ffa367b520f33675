//! Slots: acquired, released, and waited for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::*;

pub fn slots_are_released(new: &New) {
    let store = new();
    assert!(try_slot(&*store, "k", 2) && try_slot(&*store, "k", 2));
    assert_eq!(acquire_one(&*store, seconds(0), take("k", Allowance::Slots { max: 2 }, 1)), Err(None));
    assert!(try_slot(&*store, "other", 2));
    store.release("k");
    assert!(try_slot(&*store, "k", 2));
    assert!(!try_slot(&*store, "k", 2));
    assert!(!try_slot(&*store, "none", 0));
}

pub fn reduced_slots_count_those_in_use(new: &New) {
    let store = new();
    assert!(try_slot(&*store, "k", 3) && try_slot(&*store, "k", 3) && try_slot(&*store, "k", 3));
    assert!(!try_slot(&*store, "k", 1));
    store.release("k");
    store.release("k");
    assert!(!try_slot(&*store, "k", 1), "one slot is still in use");
    store.release("k");
    assert!(try_slot(&*store, "k", 1));
}

pub fn releasing_an_unused_slot_frees_nothing(new: &New) {
    let store = new();
    store.release("k");
    assert!(try_slot(&*store, "k", 1));
    assert!(!try_slot(&*store, "k", 1));
    assert_eq!(acquire_one(&*store, seconds(0), take("limit", fixed(1, 60), 1)), Ok(()));
    store.release("limit");
    assert!(acquire_one(&*store, seconds(0), take("limit", fixed(1, 60), 1)).is_err());
}

pub fn slot_released_before_the_wait_is_noticed(new: &New) {
    let store = new();
    assert!(try_slot(&*store, "k", 1));
    let waits = [store.slot_released(), store.slot_released()];
    assert!(!try_slot(&*store, "k", 1));
    store.release("k");
    // Both waiters: the first to wake may wait for a slot of another key.
    for freed in waits {
        run(freed);
    }
    assert!(try_slot(&*store, "k", 1));
}

pub fn all_waiters_get_a_slot(new: &New) {
    const MAX: u32 = 2;
    let store = new();
    let (held, most) = (AtomicU32::new(0), AtomicU32::new(0));
    // A lost wake-up would block forever.
    thread::scope(|scope| {
        for thread in 0..6 {
            let (store, held, most) = (&store, &held, &most);
            scope.spawn(move || {
                run(async {
                    for round in 0..300 {
                        let key = if (thread + round) % 3 == 0 { "a" } else { "b" };
                        let takes = [
                            take(key, Allowance::Slots { max: 1 }, 0),
                            take("all", Allowance::Slots { max: MAX }, 0),
                        ];
                        loop {
                            let freed = store.slot_released();
                            if store.acquire(at(seconds(0)), &takes).await.unwrap().is_empty() {
                                break;
                            }
                            freed.await;
                        }
                        most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        held.fetch_sub(1, Ordering::SeqCst);
                        store.release(key);
                        store.release("all");
                    }
                });
            });
        }
    });
    assert!(most.into_inner() <= MAX);
    assert!(try_slot(&*store, "all", 1), "all slots were released");
}
