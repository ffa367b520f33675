//! Lossless transfer of a [`Value`] through serde between our own serializer and deserializer.
//!
//! serde's data model has no exact numbers. So a `Value` identifies itself by the name of a newtype struct, and our serializer and
//! deserializer pass the whole value through a thread-local slot. Any other serializer or deserializer ignores such names. Names of
//! newtype structs come from Rust types, never from data, so no key and no string of an input can start a transfer.

use std::cell::RefCell;

use super::{Value, write_compact};

/// The newtype struct name by which a value identifies itself.
pub(super) const NEWTYPE_NAME: &str = "$callgate::json::Value";

enum TransferSlot {
    Empty,
    /// Our serializer accepts a whole value.
    Wanted,
    Filled(Value),
    /// Our serializer accepts a whole value, written at the end of this text.
    TextWanted(String),
    TextWritten(String),
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
        _ => (None, returned),
    }
}

/// Runs the `Serialize` of a value that identified itself, which writes the value at the end of a text.
pub(super) fn write_to<E>(
    text: &mut String,
    serialize: impl FnOnce(&mut String) -> Result<(), E>,
) -> Result<(), E> {
    let _emptied = ResetOnDrop;
    replace_slot(TransferSlot::TextWanted(std::mem::take(text)));
    let mut own = String::new();
    let returned = serialize(&mut own);
    match replace_slot(TransferSlot::Empty) {
        TransferSlot::TextWritten(written) => *text = written,
        // Not a value of ours, which has written itself.
        TransferSlot::TextWanted(before) => *text = before + &own,
        _ => *text = own,
    }
    returned
}

/// Passes a value to our serializer. Returns `false` if another serializer is running.
pub(super) fn pass_to_serializer(value: &Value) -> bool {
    match replace_slot(TransferSlot::Empty) {
        TransferSlot::Wanted => replace_slot(TransferSlot::Filled(value.clone())),
        TransferSlot::TextWanted(mut text) => {
            // A string accepts everything that is written to it.
            let _ = write_compact(value, &mut text);
            replace_slot(TransferSlot::TextWritten(text))
        }
        _ => return false,
    };
    true
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
        _ => None,
    }
}
