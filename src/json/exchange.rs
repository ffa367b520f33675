//! How a [`Value`] passes through serde without loss where both ends are ours.
//!
//! serde's data model has no exact numbers. So a `Value` announces itself by the name of a newtype struct, a string that is written
//! in this file, and our own serializer and deserializer hand the whole value over beside serde, through a slot of the thread. Any other
//! serializer or deserializer ignores such names. Names of newtype structs come from types of Rust, never from data, so no key
//! and no string of an input can start an exchange.

use std::cell::RefCell;

use super::Value;

/// The name by which a value announces itself.
pub(super) const NAME: &str = "$callgate::json::Value";

enum Slot {
    Empty,
    /// Our serializer takes the next value whole.
    Wanted,
    Filled(Value),
}

thread_local! {
    static SLOT: RefCell<Slot> = const { RefCell::new(Slot::Empty) };
}

fn replace(slot: Slot) -> Slot {
    // None while the thread ends: then nothing is exchanged.
    SLOT.try_with(|held| held.replace(slot)).unwrap_or(Slot::Empty)
}

/// Leaves the slot empty, however an exchange ends.
struct Emptied;

impl Drop for Emptied {
    fn drop(&mut self) {
        replace(Slot::Empty);
    }
}

/// Runs the `Serialize` of what announced itself, and returns the value that it handed over, if it did.
pub(super) fn receive<T>(serialize: impl FnOnce() -> T) -> (Option<Value>, T) {
    let _emptied = Emptied;
    replace(Slot::Wanted);
    let returned = serialize();
    match replace(Slot::Empty) {
        Slot::Filled(value) => (Some(value), returned),
        Slot::Empty | Slot::Wanted => (None, returned),
    }
}

/// Hands a value over to our serializer, if it is that which asks. Returns whether it is.
pub(super) fn give(value: impl FnOnce() -> Value) -> bool {
    let wanted = matches!(replace(Slot::Empty), Slot::Wanted);
    if wanted {
        replace(Slot::Filled(value()));
    }
    wanted
}

/// Runs the visitor of what announced itself with a value in the slot.
pub(super) fn offer<T>(value: Value, visit: impl FnOnce() -> T) -> T {
    let _emptied = Emptied;
    replace(Slot::Filled(value));
    visit()
}

/// Takes the value that our deserializer offers, if it is that which calls.
pub(super) fn take() -> Option<Value> {
    match replace(Slot::Empty) {
        Slot::Filled(value) => Some(value),
        Slot::Empty | Slot::Wanted => None,
    }
}
