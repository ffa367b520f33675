//! The order of an announced round: the changes of a call take effect at its position in the round, in whatever
//! order the SDK makes the calls.

use std::collections::BTreeMap;

use crate::call::{SessionChanges, SessionState};

/// The changes of the calls of an announced round, by position.
#[derive(Debug)]
pub(super) struct Positions {
    /// The session's state before any of these changes.
    before: SessionState,
    changes: BTreeMap<usize, SessionChanges>,
}

impl Positions {
    /// The changes of a round that begins, or goes on after something else has changed the session.
    pub(super) fn new(before: SessionState) -> Self {
        Self { before, changes: BTreeMap::new() }
    }

    /// The state as the call at `position` sees it: with the changes of the calls before it, and of no call
    /// after it.
    pub(super) fn state_at(&self, position: usize) -> SessionState {
        self.state_with(self.changes.range(..position))
    }

    /// The state with the changes of all calls so far.
    pub(super) fn state(&self) -> SessionState {
        self.state_with(self.changes.iter())
    }

    /// Changes the state before the round.
    pub(super) fn change_before(&mut self, change: impl Fn(&mut SessionState)) {
        change(&mut self.before);
    }

    /// Adds the changes of the call at `position`.
    pub(super) fn add(&mut self, position: usize, changes: SessionChanges) {
        self.changes.insert(position, changes);
    }

    /// The last position of a call that has changes.
    pub(super) fn last(&self) -> Option<usize> {
        self.changes.last_key_value().map(|(position, _)| *position)
    }

    fn state_with<'c>(&self, changes: impl Iterator<Item = (&'c usize, &'c SessionChanges)>) -> SessionState {
        let mut state = self.before.clone();
        changes.for_each(|(_, changes)| state.apply_changes(changes));
        state
    }
}
