//! The slots that an open store holds, and those that it has released and the server still has to learn of.
//!
//! Each acquired slot has an id, so that releasing it twice frees no other: after a lost reply it is unknown whether it was acquired, and it
//! is released in any case.

use std::collections::HashMap;

/// How often the release of a slot that may have been acquired is sent: its acquisition may still be on the way on a lost connection.
const DOUBTFUL_RELEASES: u8 = 4;

/// A slot of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) id: u64,
    pub(crate) key: String,
}

/// The slots of one open store.
#[derive(Debug, Default)]
pub(crate) struct HeldSlots {
    last_id: u64,
    by_key: HashMap<String, Vec<u64>>,
    released: Vec<Slot>,
    /// Slots that may have been acquired, and how often their release is still to be sent.
    doubtful: Vec<(Slot, u8)>,
}

impl HeldSlots {
    /// A new slot of this limit, for an acquisition.
    pub(crate) fn new_slot(&mut self, key: &str) -> Slot {
        self.last_id += 1;
        Slot { id: self.last_id, key: key.to_owned() }
    }

    /// Records slots that were acquired.
    pub(crate) fn hold(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.by_key.entry(slot.key.clone()).or_default().push(slot.id);
        }
    }

    /// Releases one slot of a limit. Returns whether any was held.
    pub(crate) fn release(&mut self, key: &str) -> bool {
        let Some(held) = self.by_key.get_mut(key) else { return false };
        let id = held.pop();
        if held.is_empty() {
            self.by_key.remove(key);
        }
        self.released.extend(id.map(|id| Slot { id, key: key.to_owned() }));
        id.is_some()
    }

    /// Releases slots that may have been acquired.
    pub(crate) fn doubt(&mut self, slots: Vec<Slot>) {
        self.released.extend(slots.iter().cloned());
        self.doubtful.extend(slots.into_iter().map(|slot| (slot, DOUBTFUL_RELEASES)));
    }

    /// The releases that the server still has to learn of.
    pub(crate) fn take_released(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.released)
    }

    /// Returns releases that could not be sent.
    pub(crate) fn put_back(&mut self, mut released: Vec<Slot>) {
        self.released.append(&mut released);
    }

    /// Sends the releases of doubtful slots once more.
    pub(crate) fn repeat_doubtful(&mut self) {
        self.doubtful.retain_mut(|(slot, left)| {
            self.released.push(slot.clone());
            *left -= 1;
            *left > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_released_once_and_only_if_held() {
        let mut slots = HeldSlots::default();
        let [first, second] = [slots.new_slot("k"), slots.new_slot("k")];
        assert!(!slots.release("k"));
        slots.hold(&[first.clone(), second.clone()]);
        assert!(slots.release("k") && slots.release("k") && !slots.release("k"));
        assert_eq!(slots.take_released(), [second, first]);
        assert_eq!(slots.take_released(), []);
    }

    #[test]
    fn a_doubtful_slot_is_released_several_times() {
        let mut slots = HeldSlots::default();
        let slot = slots.new_slot("k");
        slots.doubt(vec![slot.clone()]);
        for _ in 0..=DOUBTFUL_RELEASES {
            assert_eq!(slots.take_released(), std::slice::from_ref(&slot));
            slots.repeat_doubtful();
        }
        assert_eq!(slots.take_released(), []);
    }
}
