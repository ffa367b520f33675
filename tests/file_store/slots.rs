//! Slots of stores that share a file.

use callgate::host::LimitStore;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// Waits for the only slot and acquires it.
pub fn wait_for_slot(store: &dyn StateStore, key: &str) {
    let take = [whole(key, Allowance::Slots { max: 1 }, 0)];
    run(async {
        loop {
            let freed = store.slot_released();
            if store.acquire(at(0), &take).await.unwrap().is_empty() {
                return;
            }
            freed.await;
        }
    });
}

#[test]
fn store_waits_for_the_slot_of_another() {
    let temp = TempStore::new();
    let (one, other) = (temp.open(), temp.open());
    assert!(try_slot(&one, "k") && !try_slot(&other, "k"));
    other.release("k");
    assert!(!try_slot(&other, "k"), "only the owner can release a slot");
    // Several times: the first check of the file wakes spuriously.
    for _ in 0..3 {
        let freed = other.slot_released();
        assert!(!try_slot(&other, "k"));
        one.release("k");
        run(freed);
        wait_for_slot(&other, "k");
        assert!(!try_slot(&one, "k"));
        other.release("k");
        wait_for_slot(&one, "k");
    }
}

#[test]
fn slots_of_a_closed_store_are_released() {
    let temp = TempStore::new();
    let (one, other) = (temp.open(), temp.open());
    assert!(try_slot(&one, "k") && !try_slot(&other, "k"));
    std::thread::scope(|scope| {
        scope.spawn(|| wait_for_slot(&other, "k"));
        drop(one);
    });
}

#[test]
fn slot_of_an_abandoned_request_is_released() {
    let temp = TempStore::new();
    let store = temp.open();
    let take = [whole("k", Allowance::Slots { max: 1 }, 0)];
    for waits_for_the_answer in [false, true].repeat(50) {
        let mut answer = pin!(store.acquire(at(0), &take));
        let first = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if waits_for_the_answer {
            // Operations are answered in order.
            record(&store, "none");
        }
        if matches!(first, Poll::Ready(Ok(refusals)) if refusals.is_empty()) {
            store.release("k");
        }
    }
    wait_for_slot(&store, "k");
    assert!(!try_slot(&store, "k"));
}
