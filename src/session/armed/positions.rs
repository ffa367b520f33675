//! The order of a round that an SDK announced: what a call changes in the session takes effect at the call's position in the round,
//! in whatever order the SDK makes the calls.

use std::collections::BTreeMap;

use crate::call::{Changes, SessionState};

/// What the calls of an announced round have changed so far, by position.
#[derive(Debug)]
pub(super) struct Positions {
    /// The session before any of these changes.
    before: SessionState,
    changes: BTreeMap<usize, Changes>,
}

impl Positions {
    /// A round begins, or goes on after something else than its calls has changed the session.
    pub(super) fn new(before: SessionState) -> Self {
        Self { before, changes: BTreeMap::new() }
    }

    /// The session as the call at `position` sees it: with the changes of the calls before it, and of no call after it.
    pub(super) fn state_at(&self, position: usize) -> SessionState {
        self.state_with(self.changes.range(..position))
    }

    /// The session with the changes of all calls that have been made.
    pub(super) fn state(&self) -> SessionState {
        self.state_with(self.changes.iter())
    }

    /// Changes what was there before the round.
    pub(super) fn change_before(&mut self, change: impl Fn(&mut SessionState)) {
        change(&mut self.before);
    }

    /// Adds what the call at `position` changed.
    pub(super) fn add(&mut self, position: usize, changes: Changes) {
        self.changes.insert(position, changes);
    }

    /// The last position of a call that has been made.
    pub(super) fn last(&self) -> Option<usize> {
        self.changes.last_key_value().map(|(position, _)| *position)
    }

    fn state_with<'c>(&self, changes: impl Iterator<Item = (&'c usize, &'c Changes)>) -> SessionState {
        let mut state = self.before.clone();
        changes.for_each(|(_, changes)| state.apply(changes));
        state
    }
}
