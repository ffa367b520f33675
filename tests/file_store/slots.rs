//! Slots among several that share a file.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// Takes the one slot there is, waiting for it.
pub fn wait_for_slot(store: &dyn StateStore, key: &str) {
    let take = [whole(key, Allowance::Slots { max: 1 }, 0)];
    run(async {
        loop {
            let freed = store.slot_freed();
            if store.take(at(0), &take).await.unwrap().is_empty() {
                return;
            }
            freed.await;
        }
    });
}

#[test]
fn one_waits_for_the_slot_of_another() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    assert!(slot(&one, "k") && !slot(&other, "k"));
    other.give_back("k");
    assert!(!slot(&other, "k"), "it is not the other's to give back");
    // More than once: the first look at the file wakes for nothing.
    for _ in 0..3 {
        let freed = other.slot_freed();
        assert!(!slot(&other, "k"));
        one.give_back("k");
        run(freed);
        wait_for_slot(&other, "k");
        assert!(!slot(&one, "k"));
        other.give_back("k");
        wait_for_slot(&one, "k");
    }
}

#[test]
fn slots_of_a_store_that_was_closed_are_free() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    assert!(slot(&one, "k") && !slot(&other, "k"));
    std::thread::scope(|scope| {
        scope.spawn(|| wait_for_slot(&other, "k"));
        drop(one);
    });
}

#[test]
fn a_slot_that_nobody_waited_for_is_free_again() {
    let place = Place::new();
    let store = place.open();
    let take = [whole("k", Allowance::Slots { max: 1 }, 0)];
    for waits_for_the_answer in [false, true].repeat(50) {
        let mut answer = pin!(store.take(at(0), &take));
        let first = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if waits_for_the_answer {
            // What is asked later is answered later.
            record(&store, "none");
        }
        if matches!(first, Poll::Ready(Ok(refusals)) if refusals.is_empty()) {
            store.give_back("k");
        }
    }
    wait_for_slot(&store, "k");
    assert!(!slot(&store, "k"));
}
