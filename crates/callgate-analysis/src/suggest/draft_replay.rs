//! Replays recordings under a draft: the sessions that it was learned from, and the held-out ones, each by themselves.

use std::collections::HashMap;
use std::sync::Arc;

use callgate::diagnostic::render;
use callgate::policy::{self, CompiledPolicies};
use callgate::tools::ToolDescriptor;
use jiff::Timestamp;

use super::draft::Draft;
use super::draft_evaluation::DraftEvaluation;
use super::session_numbers::TrainingSplit;
use crate::backtest::Replay;
use crate::recording::{CallOrigin, RecordedCall, RoundAssembler};

/// A draft can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftError(String);

impl std::fmt::Display for DraftError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the draft has errors, which is a bug in Callgate; please report it:\n{}", self.0)
    }
}

impl std::error::Error for DraftError {}

/// A running replay.
#[derive(Debug)]
pub struct DraftReplay {
    split: TrainingSplit,
    learned: ReplayPart,
    held_out: ReplayPart,
}

/// One part of the sessions.
#[derive(Debug)]
struct ReplayPart {
    replay: Replay,
    rounds: RoundAssembler,
    /// The sessions of lines with calls whose rounds are not complete, and the number of these calls.
    waiting: HashMap<CallOrigin, (u32, usize)>,
    evaluation: DraftEvaluation,
}

impl DraftReplay {
    /// A replay under a draft, with the tools that it was drafted for.
    ///
    /// # Errors
    /// If the draft can't be loaded.
    pub fn new(draft: &Draft, tools: &[ToolDescriptor], split: TrainingSplit) -> Result<Self, DraftError> {
        // The file of the tools need not exist yet.
        let rules = draft.rules.replace("\ntools: tools.json\n", "\n");
        let loaded = policy::build_texts([("rules.yaml", rules)]);
        let has_errors = loaded.diagnostics.has_errors();
        let Some(policies) = loaded.policies.filter(|_| !has_errors).map(Arc::new) else {
            return Err(DraftError(render::text(&loaded.diagnostics, &loaded.sources, false)));
        };
        let part = || ReplayPart::new(Arc::clone(&policies), tools);
        Ok(Self { split, learned: part(), held_out: part() })
    }

    /// Adds a call of the session with this number.
    pub fn add(&mut self, call: &RecordedCall, session: u32) {
        let part = if self.split.is_learned(session) { &mut self.learned } else { &mut self.held_out };
        part.add(call, session);
    }

    /// Ends the replay. Returns what the draft decides on the sessions that it was learned from, and on the others.
    pub fn finish(self) -> (DraftEvaluation, DraftEvaluation) {
        (self.learned.finish(), self.held_out.finish())
    }
}

impl ReplayPart {
    fn new(policies: Arc<CompiledPolicies>, tools: &[ToolDescriptor]) -> Self {
        Self {
            replay: Replay::new(policies, tools, Timestamp::UNIX_EPOCH),
            rounds: RoundAssembler::default(),
            waiting: HashMap::new(),
            evaluation: DraftEvaluation::default(),
        }
    }

    fn add(&mut self, call: &RecordedCall, session: u32) {
        self.waiting.entry(call.origin.clone()).or_insert((session, 0)).1 += 1;
        let rounds = self.rounds.add(call.clone());
        self.decide(rounds);
    }

    fn decide(&mut self, rounds: Vec<Vec<RecordedCall>>) {
        for round in rounds {
            let decisions = self.replay.decide(&round);
            for (call, decision) in round.iter().zip(decisions) {
                let session = self.take_session(&call.origin);
                self.evaluation.add(call, session, &decision);
            }
        }
    }

    /// The session of a call that is not waiting any more.
    fn take_session(&mut self, origin: &CallOrigin) -> u32 {
        let Some((session, calls)) = self.waiting.get_mut(origin) else { return 0 };
        *calls = calls.saturating_sub(1);
        let (session, is_last) = (*session, *calls == 0);
        if is_last {
            self.waiting.remove(origin);
        }
        session
    }

    fn finish(mut self) -> DraftEvaluation {
        let rounds = self.rounds.finish();
        self.decide(rounds);
        self.evaluation
    }
}
