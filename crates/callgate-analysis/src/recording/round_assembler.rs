//! Puts the calls of a round together: calls in the order of their recording → rounds.

use std::collections::HashMap;

use super::recorded_call::RecordedCall;

/// The most calls of a round.
const MAX_ROUND_CALLS: usize = 1_000;
/// The most calls that wait for the rest of their rounds.
const MAX_WAITING_CALLS: usize = 10_000;

/// Calls that wait for the rest of their rounds.
#[derive(Debug, Default)]
pub struct RoundAssembler {
    /// By session: when the round began, and its calls.
    open: HashMap<Option<String>, (u64, Vec<RecordedCall>)>,
    waiting: usize,
    begun: u64,
}

impl RoundAssembler {
    /// Adds a call. Returns the rounds that are complete now, in order; a single call is a round of one.
    pub fn add(&mut self, call: RecordedCall) -> Vec<Vec<RecordedCall>> {
        let session = call.record.session.clone();
        let mut complete = Vec::new();
        if self.open.get(&session).is_some_and(|(_, round)| !continues(round, &call)) {
            complete.extend(self.take(&session));
        }
        let is_alone = call.position.is_none() && call.record.round.is_none();
        if is_alone {
            complete.push(vec![call]);
            return complete;
        }
        self.begun += 1;
        let begun = self.begun;
        let size = call.position.map_or(MAX_ROUND_CALLS, |position| position.size.min(MAX_ROUND_CALLS));
        let (_, round) = self.open.entry(session.clone()).or_insert_with(|| (begun, Vec::new()));
        round.push(call);
        let is_full = round.len() >= size;
        self.waiting += 1;
        if is_full {
            complete.extend(self.take(&session));
        } else if self.waiting >= MAX_WAITING_CALLS {
            complete.extend(self.finish());
        }
        complete
    }

    /// Returns all rounds that are open.
    pub fn finish(&mut self) -> Vec<Vec<RecordedCall>> {
        self.waiting = 0;
        let mut open: Vec<_> = self.open.drain().map(|(_, round)| round).collect();
        open.sort_by_key(|(begun, _)| *begun);
        open.into_iter().map(|(_, round)| round).collect()
    }

    fn take(&mut self, session: &Option<String>) -> Option<Vec<RecordedCall>> {
        let (_, round) = self.open.remove(session)?;
        self.waiting = self.waiting.saturating_sub(round.len());
        Some(round)
    }
}

/// Whether a call belongs to the waiting calls of its session.
fn continues(round: &[RecordedCall], call: &RecordedCall) -> bool {
    let Some(first) = round.first() else { return true };
    match (first.position, call.position) {
        (Some(first), Some(next)) => first.size == next.size && next.index == round.len(),
        (None, None) => call.record.round.is_some() && first.record.round == call.record.round,
        _ => false,
    }
}
