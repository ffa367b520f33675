//! Evaluates completed calls under candidate rules, in sessions of their own: rounds of [`CompletedCall`]s → outcomes.
//!
//! The course is that of the calls: one that ran counts as having run, with the result that its tool returned, whatever the candidate
//! decides; one that did not run leaves nothing in the candidate's session that it would not leave as a call that is stopped.

use std::collections::{BTreeMap, HashMap};

use super::comparison::compare;
use super::recorded_results::RecordedResults;
use crate::call::{Effect, Outcome, OutcomeKind, ToolCall};
use crate::engine::Engine;
use crate::execution::CompletedCall;
use crate::host::{CandidateDifference, ManualClock};
use crate::session::Session;

/// The most open sessions; beyond it, the one idle for longest is closed. What it knew is unknown if it is opened again.
const MAX_OPEN_SESSIONS: usize = 10_000;
/// The most pending calls of a session that are recognised when they resume.
const MAX_PENDING: usize = 1_000;

/// The sessions of a candidate.
pub(super) struct CandidateReplay {
    engine: Engine,
    clock: ManualClock,
    open: HashMap<String, OpenSession>,
    /// Time of last use → session.
    by_last_use: BTreeMap<u64, String>,
    uses: u64,
}

struct OpenSession {
    session: Session,
    run: String,
    last_used: u64,
    /// The calls of an incomplete round.
    round: Vec<CompletedCall>,
    /// The ids of calls whose approval is pending, and whether the candidate decided them otherwise.
    pending: HashMap<String, bool>,
}

/// A call with the candidate's outcome.
pub(super) struct EvaluatedCall {
    pub(super) call: CompletedCall,
    pub(super) outcome: Outcome,
    pub(super) comparison: Comparison,
}

/// Whether and how a call was compared.
pub(super) enum Comparison {
    /// Its decisions were compared.
    Compared(CandidateDifference),
    /// Something else than the rules decided it, or the candidate lacks what it needs to know.
    NotCompared,
    /// It is the end of a call whose approval request was compared.
    Counted,
}

impl CandidateReplay {
    pub(super) fn new(engine: Engine, clock: ManualClock) -> Self {
        Self { engine, clock, open: HashMap::new(), by_last_use: BTreeMap::new(), uses: 0 }
    }

    /// Evaluates a call, with those of its round when the round is complete. `has_gap`: earlier calls of its session were skipped.
    pub(super) fn evaluate(&mut self, call: CompletedCall, has_gap: bool) -> Vec<EvaluatedCall> {
        let name = call.conversation.clone();
        let mut open = self.take_session(&call);
        if has_gap {
            open.session.state_mut().mark_untrusted();
        }
        let mut evaluated = Vec::new();
        if !open.continues_round(&call) {
            evaluated.extend(self.run_round(&mut open));
        }
        let size = call.round.map_or(1, |position| position.size);
        if !open.is_counted(&call) {
            open.round.push(call);
        }
        if open.round.len() >= size {
            evaluated.extend(self.run_round(&mut open));
        }
        self.return_session(name, open);
        evaluated
    }

    /// Evaluates the calls of all incomplete rounds.
    pub(super) fn finish(&mut self) -> Vec<EvaluatedCall> {
        let names: Vec<String> = self.by_last_use.values().cloned().collect();
        let mut evaluated = Vec::new();
        for name in names {
            if let Some(mut open) = self.open.remove(&name) {
                evaluated.extend(self.run_round(&mut open));
                self.open.insert(name, open);
            }
        }
        evaluated
    }

    fn run_round(&self, open: &mut OpenSession) -> Vec<EvaluatedCall> {
        let round = std::mem::take(&mut open.round);
        let Some(first) = round.first() else { return Vec::new() };
        self.clock.set(first.time);
        if open.run != first.run {
            open.run.clone_from(&first.run);
            open.session.state_mut().start_new_run();
        }
        open.session.mirror(first);
        let has_run = round.iter().any(has_run);
        let was_halted = round.iter().any(|call| call.outcome.outcome == OutcomeKind::Halted);
        let before = (!has_run).then(|| open.session.state().clone());
        open.session.keep_recorded_course(has_run);
        let results = RecordedResults::new(&round);
        let mut calls: Vec<ToolCall> = round.iter().map(|call| call.call.clone()).collect();
        let outcomes = match (calls.pop(), calls.is_empty()) {
            (Some(call), true) => vec![self.clock.block_on(open.session.execute(call, &results))],
            (last, _) => {
                calls.extend(last);
                self.clock.block_on(open.session.execute_round(calls, &results))
            }
        };
        let has = |effect| outcomes.iter().any(|outcome| outcome.outcome.effect() == Some(effect));
        let is_untrusted = open.session.state().is_untrusted();
        let comparisons: Vec<Comparison> = std::iter::zip(&round, &outcomes)
            .map(|(call, outcome)| open.compare(call, outcome, is_untrusted))
            .collect();
        let state = open.session.state_mut();
        match before {
            // A call that would run now has no result, and a halt that is new stops no call.
            Some(before) if has(Effect::Run) || has(Effect::Halt) && !was_halted => *state = before,
            None if has(Effect::Halt) && was_halted => state.halt("the session was halted"),
            _ => {}
        }
        // No call is resumed by its name.
        *state = std::mem::take(state).without_occurrences();
        let evaluated = round.into_iter().zip(outcomes).zip(comparisons);
        evaluated.map(|((call, outcome), comparison)| EvaluatedCall { call, outcome, comparison }).collect()
    }

    /// Removes and returns the session of a call, or opens it, and marks it as the most recently used.
    fn take_session(&mut self, call: &CompletedCall) -> OpenSession {
        self.uses += 1;
        let last_used = self.uses;
        if let Some(open) = self.open.remove(&call.conversation) {
            self.by_last_use.remove(&open.last_used);
            return OpenSession { last_used, ..open };
        }
        if self.open.len() >= MAX_OPEN_SESSIONS
            && let Some((_, idlest)) = self.by_last_use.pop_first()
        {
            self.open.remove(&idlest);
        }
        let session = self.engine.session();
        let mut session = match &call.session {
            Some(name) => session.with_name(name),
            None => session,
        };
        if call.has_past {
            session.state_mut().mark_untrusted();
        }
        OpenSession { session, run: call.run.clone(), last_used, round: Vec::new(), pending: HashMap::new() }
    }

    fn return_session(&mut self, name: String, open: OpenSession) {
        self.by_last_use.insert(open.last_used, name.clone());
        self.open.insert(name, open);
    }
}

impl OpenSession {
    /// Whether a call belongs to the waiting calls of its round.
    fn continues_round(&self, call: &CompletedCall) -> bool {
        let Some(first) = self.round.first() else { return true };
        match (first.round, call.round) {
            (Some(first), Some(next)) => {
                let is_new =
                    self.round.iter().all(|known| known.round.is_none_or(|known| known.index != next.index));
                first.size == next.size && next.size > 1 && is_new
            }
            _ => false,
        }
    }

    /// Whether a call is the end of one that was evaluated when its approval was requested, and has not run; or another request for it.
    fn is_counted(&mut self, call: &CompletedCall) -> bool {
        let id = &call.call.id;
        if !self.pending.contains_key(id) {
            return false;
        }
        match call.outcome.outcome.effect() {
            Some(Effect::Suspend) => true,
            Some(Effect::Run) => false,
            _ => self.pending.remove(id).is_some(),
        }
    }

    fn compare(&mut self, call: &CompletedCall, outcome: &Outcome, is_untrusted: bool) -> Comparison {
        let lacks_state = is_untrusted && outcome.policies.iter().any(|policy| policy.undecided);
        let compared = compare(call, outcome).filter(|_| !lacks_state);
        let is_different = compared.is_some_and(|difference| difference != CandidateDifference::None);
        if call.outcome.outcome == OutcomeKind::Suspended {
            if self.pending.len() < MAX_PENDING {
                self.pending.insert(call.call.id.clone(), is_different);
            }
        } else if let Some(was_different) = self.pending.remove(&call.call.id)
            && (was_different || !is_different)
        {
            return Comparison::Counted;
        }
        compared.map_or(Comparison::NotCompared, Comparison::Compared)
    }
}

/// Whether a call reached its tool, or a cache answered.
fn has_run(call: &CompletedCall) -> bool {
    call.outcome.outcome.effect() == Some(Effect::Run)
}
