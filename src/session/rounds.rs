//! Rounds: all calls of one are decided before any of them runs.

use std::time::Instant;

use super::Session;
use super::desk::{Desk, Known};
use crate::call::{Outcome, Reason, SessionState, ToolCall, reason_code};
use crate::execution::Hooked;
use crate::host::{StoreError, ToolExecutor};
use crate::kernel::{Decision, Effect, Held, Kernel};

impl Session {
    /// Puts the calls of one round through. All are decided before any runs: if one halts, none runs; if some wait for a
    /// person, the others run and their results stand. Each is decided once more just before it starts, for what ran
    /// before it in the round counts; that can only stop it.
    ///
    /// Outcomes come in the order of the calls. The future may be dropped: calls whose tools were started then count as started, and have
    /// no outcome.
    pub async fn execute_round(
        &mut self,
        calls: Vec<ToolCall>,
        executor: &impl ToolExecutor,
    ) -> Vec<Outcome> {
        let calls: Vec<ToolCall> = calls.into_iter().map(|call| self.name_call(call)).collect();
        let occurrences = calls.iter().map(|call| self.state.name_occurrence(&call.id)).collect();
        self.made.clear();
        let outcomes = self.execute_named(calls, occurrences, executor).await;
        self.made.clear();
        self.tools_done(&outcomes);
        outcomes
    }

    pub(super) async fn execute_named(
        &mut self,
        calls: Vec<ToolCall>,
        occurrences: Vec<String>,
        executor: &impl ToolExecutor,
    ) -> Vec<Outcome> {
        self.requested(&calls);
        let seen = self.see_recorded().await;
        let (layers, conversation) = (self.layers(), self.conversation());
        let name = self.name.clone();
        let mut desk = self.desk(&layers, &conversation, executor);
        let kernel = desk.kernel();
        let mut turns = Vec::with_capacity(calls.len());
        for (call, occurrence) in calls.into_iter().zip(occurrences) {
            turns.push(desk.prepare(call, occurrence, &seen).await);
        }
        let decisions: Vec<Option<Decision<'_>>> =
            turns.iter().map(|turn| decided(&kernel, turn, desk.state)).collect();
        let mut changed = false;
        let halting = decisions.iter().flatten().find(|decision| decision.effect() == Effect::Halt);
        if let Some(halting) = halting {
            kernel.halt(halting, desk.state);
            changed = true;
        }
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(turns.len());
        for (turn, decision) in turns.iter().zip(decisions) {
            let started = Instant::now();
            let (known, hooked) = turn;
            desk.made.begin(hooked.requested().clone());
            let outcome = match (known, decision) {
                (Known::New(of), Some(decision)) => {
                    let decision =
                        if changed { in_turn(&kernel, turn, decision, desk.state) } else { decision };
                    // A call that is stopped may count, and what counts may halt.
                    changed |= decision.is_permitted() || decision.pending().next().is_some();
                    let decision =
                        if desk.made.waits() { one_at_a_time(&kernel, decision) } else { decision };
                    Box::pin(desk.first(hooked, decision, of.clone(), started)).await
                }
                (known, _) => Box::pin(desk.later(&hooked.call, known.clone(), started)).await,
            };
            let outcome = desk.report(name.as_deref(), outcome);
            desk.made.end(&outcome);
            outcomes.push(outcome);
            if let Some(reason) = desk.execute.run.aborted() {
                desk.state.halt(&reason);
                changed = true;
            }
        }
        outcomes
    }
}

/// What a call that was decided with its round comes to now that its turn has come: what refused it stands. Otherwise the stricter of the
/// two decisions counts; of equal ones the later, which knows more.
fn in_turn<'c>(
    kernel: &Kernel<'_>,
    turn: &'c (Known, Hooked),
    first: Decision<'c>,
    state: &SessionState,
) -> Decision<'c> {
    if first.effect() >= Effect::Invalid {
        return first;
    }
    match decided(kernel, turn, state) {
        Some(later) if later.effect() >= first.effect() => later,
        _ => first,
    }
}

/// A call that waits for a person while another one of its round does, where they are asked one at a time.
fn one_at_a_time<'c>(kernel: &Kernel<'_>, mut decision: Decision<'c>) -> Decision<'c> {
    if decision.effect() == Effect::Suspend && kernel.asks_one_at_a_time(&decision) {
        let message =
            "not run: another call of this turn waits for a person; ask for this one again after it";
        let code = reason_code::ASK_AGAIN.to_owned();
        decision.refuse(Effect::Deny, Reason { policy: None, code, message: message.to_owned() }, None);
    }
    decision
}

impl<E: ToolExecutor> Desk<'_, E> {
    /// What the ledger and hooks know of a call, before it is decided.
    pub(super) async fn prepare(
        &mut self,
        call: ToolCall,
        occurrence: String,
        seen: &Result<(), StoreError>,
    ) -> (Known, Hooked) {
        let known = self.look_up(&call, occurrence, seen).await;
        let hooked = match known {
            Known::New(_) => {
                let mut hooked = self.hooked(call).await;
                self.refuse_unoffered(&mut hooked);
                hooked
            }
            _ => Hooked::untouched(call),
        };
        (known, hooked)
    }

    /// Refuses a new call of a tool that the model was not offered. A call that was suspended and resumes was offered when it was made.
    pub(super) fn refuse_unoffered(&self, hooked: &mut Hooked) {
        if self.offered.is_some_and(|offered| !offered.has(&hooked.call)) {
            hooked.refuse_unoffered();
        }
    }

    /// Decides a call and brings it to its outcome. `first`: what it was decided to be with its round, under the same layers. `waits`:
    /// another call of its round waits for a person.
    pub(super) async fn put_through<'c>(
        &mut self,
        turn: &'c (Known, Hooked),
        first: Option<Decision<'c>>,
        waits: bool,
        started: Instant,
    ) -> Outcome {
        let (known, hooked) = turn;
        let kernel = self.kernel();
        let decision = match first {
            Some(first) => Some(in_turn(&kernel, turn, first, self.state)),
            None => decided(&kernel, turn, self.state),
        };
        match (known, decision) {
            (Known::New(of), Some(decision)) => {
                let decision = if waits { one_at_a_time(&kernel, decision) } else { decision };
                Box::pin(self.first(hooked, decision, of.clone(), started)).await
            }
            (known, _) => Box::pin(self.later(&hooked.call, known.clone(), started)).await,
        }
    }
}

/// What is to become of a call that the ledger does not know.
pub(super) fn decided<'c>(
    kernel: &Kernel<'_>,
    (known, hooked): &'c (Known, Hooked),
    state: &SessionState,
) -> Option<Decision<'c>> {
    matches!(known, Known::New(_)).then(|| hooked.decide(kernel, state, Held::default()))
}
