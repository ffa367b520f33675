//! The slots that an open store holds, by the owner that the database has for them.
//!
//! After a lost reply it is unknown whether slots were acquired or released. Their owner gets no further slots then, and what the database has
//! for it is corrected to what the store knows that it holds.

use std::collections::BTreeMap;

/// The slots of one open store.
#[derive(Debug)]
pub(crate) struct HeldSlots {
    /// The last one gets new slots.
    owners: Vec<SlotOwner>,
}

/// An owner of slots in the database, as the store that registered it knows it.
#[derive(Debug, Default)]
pub(crate) struct SlotOwner {
    pub(crate) id: i64,
    /// How many slots it holds, by key.
    held: BTreeMap<String, i64>,
    /// Slots that were released, and are still to be released in the database.
    released: Vec<String>,
    /// How many acquisitions are under way.
    acquiring: usize,
    /// Whether it is unknown what the database has for it.
    is_doubtful: bool,
}

/// How an operation on slots has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SlotChange {
    Done,
    NotDone,
    /// The reply was lost.
    Unknown,
}

impl SlotOwner {
    /// The slots that the database may have for it, by key.
    pub(crate) fn stored(&self) -> Vec<(String, i64)> {
        let mut stored = self.held.clone();
        self.released.iter().for_each(|key| *stored.entry(key.clone()).or_default() += 1);
        stored.into_iter().collect()
    }
}

impl HeldSlots {
    pub(crate) fn new(owner: i64) -> Self {
        Self { owners: vec![SlotOwner { id: owner, ..SlotOwner::default() }] }
    }

    /// The owner of new slots.
    pub(crate) fn owner(&self) -> i64 {
        self.owners.last().map_or(0, |owner| owner.id)
    }

    /// The owners, the last of which gets new slots.
    pub(crate) fn owner_ids(&self) -> Vec<i64> {
        self.owners.iter().map(|owner| owner.id).collect()
    }

    fn find(&mut self, id: i64) -> Option<&mut SlotOwner> {
        self.owners.iter_mut().find(|owner| owner.id == id)
    }

    /// Begins an acquisition. Returns the owner of its slots.
    pub(crate) fn begin_acquisition(&mut self) -> i64 {
        if let Some(owner) = self.owners.last_mut() {
            owner.acquiring += 1;
        }
        self.owner()
    }

    /// Ends an acquisition of slots with these keys.
    pub(crate) fn end_acquisition(&mut self, owner: i64, keys: &[String], change: SlotChange) {
        // Slots of an owner whose lease has ended are free.
        let Some(owner) = self.find(owner) else { return };
        owner.acquiring = owner.acquiring.saturating_sub(1);
        match change {
            SlotChange::Done => {
                keys.iter().for_each(|key| *owner.held.entry(key.clone()).or_default() += 1);
            }
            SlotChange::NotDone => {}
            SlotChange::Unknown => owner.is_doubtful = true,
        }
    }

    /// Releases one slot of a limit, if one is held.
    pub(crate) fn release(&mut self, key: &str) {
        let Some(owner) = self.owners.iter_mut().find(|owner| owner.held.contains_key(key)) else { return };
        if let Some(count) = owner.held.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                owner.held.remove(key);
            }
        }
        owner.released.push(key.to_owned());
    }

    /// The releases that the database still has to learn of, by owner.
    pub(crate) fn take_released(&mut self) -> Vec<(i64, Vec<String>)> {
        let owners = self.owners.iter_mut().filter(|owner| !owner.released.is_empty());
        owners.map(|owner| (owner.id, std::mem::take(&mut owner.released))).collect()
    }

    /// Ends releases that were taken.
    pub(crate) fn end_release(&mut self, owner: i64, mut keys: Vec<String>, change: SlotChange) {
        let Some(owner) = self.find(owner) else { return };
        match change {
            SlotChange::Done => {}
            SlotChange::NotDone => owner.released.append(&mut keys),
            // A release that is repeated would release another slot of the same limit.
            SlotChange::Unknown => owner.is_doubtful = true,
        }
    }

    /// Whether new slots need another owner.
    pub(crate) fn needs_owner(&self) -> bool {
        self.owners.last().is_none_or(|owner| owner.is_doubtful)
    }

    pub(crate) fn add_owner(&mut self, id: i64) {
        self.owners.push(SlotOwner { id, ..SlotOwner::default() });
    }

    /// Forgets an owner that the database does not have any more, with its slots.
    pub(crate) fn remove_owner(&mut self, id: i64) {
        self.owners.retain(|owner| owner.id != id);
    }

    /// Owners that get no further slots: what the database has for them can be corrected.
    pub(crate) fn retired(&self) -> impl Iterator<Item = &SlotOwner> {
        self.owners.iter().rev().skip(1).filter(|owner| owner.acquiring == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|&key| key.to_owned()).collect()
    }

    #[test]
    fn after_a_lost_reply_new_slots_have_another_owner() {
        let mut slots = HeldSlots::new(1);
        let first = slots.begin_acquisition();
        slots.end_acquisition(first, &keys(&["a", "a", "b"]), SlotChange::Done);
        assert!(!slots.needs_owner());
        let (lost, other) = (slots.begin_acquisition(), slots.begin_acquisition());
        slots.end_acquisition(lost, &keys(&["a"]), SlotChange::Unknown);
        assert!(slots.needs_owner());
        slots.add_owner(2);
        assert!(!slots.needs_owner() && slots.owner() == 2);
        // As long as an acquisition of the first owner is under way, what the database has for it changes.
        assert_eq!(slots.retired().count(), 0);
        slots.end_acquisition(other, &keys(&["c"]), SlotChange::NotDone);
        slots.release("a");
        let stored = |slots: &HeldSlots| -> Vec<_> {
            slots.retired().map(|owner| (owner.id, owner.stored())).collect()
        };
        let counts = |a| vec![("a".to_owned(), a), ("b".to_owned(), 1)];
        assert_eq!(stored(&slots), [(1, counts(2))]);
        assert_eq!(slots.take_released(), [(1, keys(&["a"]))]);
        assert_eq!(stored(&slots), [(1, counts(1))]);
    }

    #[test]
    fn a_release_that_may_have_happened_is_not_repeated() {
        let mut slots = HeldSlots::new(1);
        let owner = slots.begin_acquisition();
        slots.end_acquisition(owner, &keys(&["a", "a"]), SlotChange::Done);
        slots.release("a");
        let [(owner, released)] = slots.take_released().try_into().unwrap();
        slots.end_release(owner, released, SlotChange::NotDone);
        let [(owner, released)] = slots.take_released().try_into().unwrap();
        slots.end_release(owner, released, SlotChange::Unknown);
        assert_eq!(slots.take_released(), []);
        assert!(slots.needs_owner());
    }

    #[test]
    fn what_is_not_held_is_not_released() {
        let mut slots = HeldSlots::new(1);
        slots.release("a");
        assert_eq!(slots.take_released(), []);
        let owner = slots.begin_acquisition();
        slots.remove_owner(1);
        slots.add_owner(2);
        slots.end_acquisition(owner, &keys(&["a"]), SlotChange::Done);
        slots.release("a");
        assert_eq!(slots.take_released(), []);
    }
}
