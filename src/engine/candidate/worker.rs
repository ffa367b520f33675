//! The thread of a candidate: evaluates calls in order and notifies observers of the comparison.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::counters::CandidateCounters;
use super::queue_status::{Message, QueueStatus};
use super::replay::{CandidateReplay, Comparison, EvaluatedCall};
use crate::call::PolicyTrace;
use crate::engine::Engine;
use crate::execution::{CompletedCall, Observers};
use crate::host::{
    CallIdentity, CandidateDecided, CandidateDifference, ComparedDecision, EngineEvent, EngineEventKind,
    ManualClock, RunIdentity,
};

/// Evaluates the calls of the queue.
pub(super) struct CandidateWorker {
    engine: Engine,
    clock: ManualClock,
    observers: Observers,
    counters: Arc<CandidateCounters>,
    unloaded: Option<String>,
    /// The number of skipped calls of which observers were notified.
    reported: u64,
}

impl CandidateWorker {
    pub(super) fn new(
        engine: Engine,
        clock: ManualClock,
        observers: Observers,
        counters: Arc<CandidateCounters>,
    ) -> Self {
        Self { engine, clock, observers, counters, unloaded: None, reported: 0 }
    }

    /// Sets the revision of rules that evaluate nothing.
    pub(super) fn with_unloaded(self, unloaded: Option<String>) -> Self {
        Self { unloaded, ..self }
    }

    pub(super) fn counters(&self) -> Arc<CandidateCounters> {
        Arc::clone(&self.counters)
    }

    /// Evaluates calls until the queue is closed.
    pub(super) fn run(mut self, queue: &Receiver<Message>, status: &QueueStatus) {
        let mut replay = self.new_replay();
        for message in queue {
            match message {
                Message::Call(call, bytes) => {
                    status.release(bytes);
                    if self.unloaded.as_ref() != Some(&self.engine.revision()) {
                        let has_gap = status.take_gap(&call.conversation);
                        self.guard(&mut replay, |replay| replay.evaluate(*call, has_gap));
                    }
                }
                Message::Finish(done) => {
                    self.guard(&mut replay, CandidateReplay::finish);
                    self.report_skipped();
                    let _ = done.send(());
                }
            }
            self.report_skipped();
        }
    }

    fn new_replay(&self) -> CandidateReplay {
        CandidateReplay::new(self.engine.clone(), self.clock.clone())
    }

    /// Evaluates, and notifies observers of the comparison. If Callgate itself fails, what the candidate knows is lost.
    fn guard(
        &self,
        replay: &mut CandidateReplay,
        evaluate: impl FnOnce(&mut CandidateReplay) -> Vec<EvaluatedCall>,
    ) {
        match catch_unwind(AssertUnwindSafe(|| evaluate(replay))) {
            Ok(evaluated) => evaluated.iter().for_each(|evaluated| self.report(evaluated)),
            Err(_) => {
                self.counters.add_not_compared();
                *replay = self.new_replay();
            }
        }
    }

    fn report(&self, evaluated: &EvaluatedCall) {
        match evaluated.comparison {
            Comparison::Compared(difference) => {
                self.counters.add(difference);
                self.notify(evaluated, difference);
            }
            Comparison::NotCompared => self.counters.add_not_compared(),
            Comparison::Counted => {}
        }
    }

    fn notify(&self, evaluated: &EvaluatedCall, difference: CandidateDifference) {
        let EvaluatedCall { call, outcome, .. } = evaluated;
        let effects = call.outcome.outcome.effect().zip(outcome.outcome.effect());
        let Some((active, candidate)) = effects.filter(|_| !self.observers.is_empty()) else { return };
        // What scripts print may quote what only the active rules redact.
        let without_prints = |policy: &PolicyTrace| PolicyTrace { printed: Vec::new(), ..policy.clone() };
        let policies: Vec<PolicyTrace> = outcome.policies.iter().map(without_prints).collect();
        let decided = CandidateDecided {
            revision: &outcome.revision,
            candidate: ComparedDecision::new(candidate, &outcome.reason),
            active: ComparedDecision::new(active, &call.outcome.reason),
            policies: &policies,
            difference,
        };
        self.observers.notify_all(&EngineEvent {
            time: self.observers.now(),
            revision: &call.outcome.revision,
            run: Some(run_of(call)),
            call: Some(identity_of(call)),
            kind: EngineEventKind::CandidateDecided(decided),
        });
    }

    /// Notifies observers of calls that were skipped since the last time.
    fn report_skipped(&mut self) {
        let skipped = self.counters.skipped();
        if skipped > self.reported {
            let kind = EngineEventKind::CandidateSkipped(skipped - self.reported);
            self.observers.notify(&self.engine.revision(), kind);
            self.reported = skipped;
        }
    }
}

fn run_of(call: &CompletedCall) -> RunIdentity<'_> {
    RunIdentity {
        request_id: &call.run,
        iteration: call.iteration,
        session: call.session.as_deref(),
        conversation: &call.conversation,
    }
}

fn identity_of(completed: &CompletedCall) -> CallIdentity<'_> {
    CallIdentity {
        id: &completed.call.id,
        tool: &completed.call.tool,
        server: completed.call.server.as_deref(),
        context: &completed.shown_context,
        task: &completed.task,
        round: completed.round,
        trace_parent: completed.call.trace_parent.as_deref(),
        trace: completed.call.trace.as_deref(),
    }
}
