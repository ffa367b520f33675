//! Lossless transfer of a [`Value`] through serde between our own serializer and deserializer.
//!
//! serde's data model has no exact numbers. So a `Value` identifies itself by the name of a newtype struct, and our serializer and
//! deserializer pass the whole value through a thread-local slot. Any other serializer or deserializer ignores such names. Names of
//! newtype structs come from Rust types, never from data, so no key and no string of an input can start a transfer.

use std::cell::RefCell;

use super::Value;

/// The newtype struct name by which a value identifies itself.
pub(super) const NEWTYPE_NAME: &str = "$callgate::json::Value";

enum TransferSlot {
    Empty,
    /// Our serializer accepts a whole value.
    Wanted,
    Filled(Value),
}

thread_local! {
    static SLOT: RefCell<TransferSlot> = const { RefCell::new(TransferSlot::Empty) };
}

fn replace_slot(slot: TransferSlot) -> TransferSlot {
    // An error while the thread ends: then no value is transferred.
    SLOT.try_with(|held| held.replace(slot)).unwrap_or(TransferSlot::Empty)
}

/// Empties the slot on drop, however a transfer ends.
struct ResetOnDrop;

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        replace_slot(TransferSlot::Empty);
    }
}

/// Runs the `Serialize` of a value that identified itself, and returns the value that it passed, if any.
pub(super) fn receive_from<T>(serialize: impl FnOnce() -> T) -> (Option<Value>, T) {
    let _emptied = ResetOnDrop;
    replace_slot(TransferSlot::Wanted);
    let returned = serialize();
    match replace_slot(TransferSlot::Empty) {
        TransferSlot::Filled(value) => (Some(value), returned),
        TransferSlot::Empty | TransferSlot::Wanted => (None, returned),
    }
}

/// Passes a value to our serializer. Returns `false` if another serializer is running.
pub(super) fn pass_to_serializer(value: impl FnOnce() -> Value) -> bool {
    let wanted = matches!(replace_slot(TransferSlot::Empty), TransferSlot::Wanted);
    if wanted {
        replace_slot(TransferSlot::Filled(value()));
    }
    wanted
}

/// Runs the visitor of a type that identified itself, with a value in the slot.
pub(super) fn offer_to_visitor<T>(value: Value, visit: impl FnOnce() -> T) -> T {
    let _emptied = ResetOnDrop;
    replace_slot(TransferSlot::Filled(value));
    visit()
}

/// Takes the value that our deserializer offers. Returns `None` if another deserializer is running.
pub(super) fn take_offered() -> Option<Value> {
    match replace_slot(TransferSlot::Empty) {
        TransferSlot::Filled(value) => Some(value),
        TransferSlot::Empty | TransferSlot::Wanted => None,
    }
}
