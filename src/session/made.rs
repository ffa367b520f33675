//! The calls of a round, from when they begin until their history has what came of them. A round that is given up in between, because
//! its future was dropped, is taken up where it stopped: nothing of it runs twice.

use crate::call::{Outcome, OutcomeKind, ToolCall};

/// What came of the calls of a round so far.
#[derive(Debug, Default)]
pub(super) struct Made(Vec<(ToolCall, Option<Outcome>)>);

impl Made {
    /// Another round begins, and nothing is known of it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A call begins, as the model asked for it.
    pub(super) fn begin(&mut self, call: ToolCall) {
        self.0.push((call, None));
    }

    /// The call that began last has come to its outcome.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        if let Some((_, ended)) = self.0.last_mut() {
            *ended = Some(outcome.clone());
        }
    }

    /// Whether a call waits for a person.
    pub(super) fn waits(&self) -> bool {
        let mut outcomes = self.0.iter().filter_map(|(_, outcome)| outcome.as_ref());
        outcomes.any(|outcome| outcome.outcome == OutcomeKind::Suspended)
    }

    /// What is known of each of these calls: nothing where it has not begun, no outcome where it began and was given up. What is of none
    /// of them is forgotten.
    pub(super) fn of_these(&mut self, calls: &[ToolCall]) -> Vec<Option<Option<Outcome>>> {
        let mut others = std::mem::take(&mut self.0);
        let mut find = |call: &ToolCall| {
            let same = |(known, _): &(ToolCall, Option<Outcome>)| is_same(known, call);
            let ended = |entry: &(ToolCall, Option<Outcome>)| same(entry) && entry.1.is_some();
            // An SDK may have made it once more after it was given up.
            let place = others.iter().position(ended).or_else(|| others.iter().position(same))?;
            self.0.push(others.remove(place));
            self.0.last().map(|(_, outcome)| outcome.clone())
        };
        calls.iter().map(&mut find).collect()
    }
}

/// Whether two calls are the same, as models ask for them.
pub(super) fn is_same(one: &ToolCall, other: &ToolCall) -> bool {
    one.id == other.id && one.tool == other.tool && one.input == other.input
}
