//! The calls of a round, from when they begin until the history has their results. A round that was given up in between, because its
//! future was dropped, resumes where it stopped: nothing of it runs twice.

use crate::call::{Outcome, OutcomeKind, ToolCall};

/// The calls of the present round that have begun.
#[derive(Debug, Default)]
pub(crate) struct RoundProgress(Vec<(ToolCall, CallProgress)>);

/// How far a call of a round is.
#[derive(Clone, Debug)]
pub(crate) enum CallProgress {
    NotStarted,
    /// It began, and has no outcome: it runs, or was given up.
    Started,
    Ended(Box<Outcome>),
}

impl RoundProgress {
    /// Forgets the round.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Records the start of a call, as the model made it.
    pub(crate) fn start(&mut self, call: ToolCall) {
        self.0.push((call, CallProgress::Started));
    }

    /// Records the outcome of the call that started last.
    pub(crate) fn end(&mut self, outcome: &Outcome) {
        if let Some((_, progress)) = self.0.last_mut() {
            *progress = CallProgress::Ended(Box::new(outcome.clone()));
        }
    }

    /// Whether a call of the round is suspended.
    pub(crate) fn is_suspended(&self) -> bool {
        let is_suspended = |(_, progress): &(ToolCall, CallProgress)| matches!(progress, CallProgress::Ended(outcome) if outcome.outcome == OutcomeKind::Suspended);
        self.0.iter().any(is_suspended)
    }

    /// The progress of each of these calls. Other calls are forgotten.
    pub(crate) fn of_calls(&mut self, calls: &[ToolCall]) -> Vec<CallProgress> {
        let mut others = std::mem::take(&mut self.0);
        let mut find = |call: &ToolCall| {
            let same = |(known, _): &(ToolCall, CallProgress)| is_same_call(known, call);
            let ended =
                |entry: &(ToolCall, CallProgress)| same(entry) && matches!(entry.1, CallProgress::Ended(_));
            // An SDK may have made the call once more after it was given up.
            let Some(index) = others.iter().position(ended).or_else(|| others.iter().position(same)) else {
                return CallProgress::NotStarted;
            };
            let entry = others.remove(index);
            let progress = entry.1.clone();
            self.0.push(entry);
            progress
        };
        calls.iter().map(&mut find).collect()
    }
}

/// Whether two calls are the same, as models make them.
pub(crate) fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    one.id == other.id && one.tool == other.tool && one.input == other.input
}
