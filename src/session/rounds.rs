//! Rounds: all calls of one are decided before any of them runs.

use std::time::Instant;

use super::Session;
use super::occurrence_name::OccurrenceName;
use crate::call::{Outcome, RoundPosition, ToolCall};
use crate::execution::{CallRunner, PreparedCall};
use crate::host::ToolExecutor;
use crate::kernel::{Decision, Effect};

impl Session {
    /// Whether to keep the course of a recording from the next call on: every call is evaluated, and one that is stopped counts as having
    /// run, with the result that the executor has recorded for it. Of a call without one (a `dry` response) the session keeps nothing.
    #[doc(hidden)]
    pub fn keep_recorded_course(&mut self, keeps: bool) {
        self.keeps_recorded_course = keeps;
    }

    /// Runs the calls of one round. All are decided before any runs: if one halts, none runs; if some are suspended, the others run. Each
    /// is decided once more just before it starts, for the calls before it in the round count; that can only stop it.
    ///
    /// Outcomes are in the order of the calls. The future may be dropped: calls whose tools were started then count as started, and have no
    /// outcome.
    pub async fn execute_round(
        &mut self,
        calls: Vec<ToolCall>,
        executor: &impl ToolExecutor,
    ) -> Vec<Outcome> {
        let calls: Vec<ToolCall> = calls.into_iter().map(|call| self.name_call(call)).collect();
        let names: Vec<OccurrenceName> = calls.iter().map(|call| self.name_occurrence(call)).collect();
        let call_ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let occurrences = names.iter().map(|name| name.occurrence.clone()).collect();
        self.round.clear();
        let outcomes = self.run_round_calls(calls, occurrences, executor).await;
        self.round.clear();
        for ((id, name), outcome) in call_ids.iter().zip(&names).zip(&outcomes).rev() {
            if !name.is_always_recorded {
                self.release_name(id, &name.occurrence, outcome);
            }
        }
        self.after_calls(&outcomes);
        outcomes
    }

    /// Runs the calls of one round, each with its occurrence.
    pub(super) async fn run_round_calls(
        &mut self,
        calls: Vec<ToolCall>,
        occurrences: Vec<String>,
        executor: &impl ToolExecutor,
    ) -> Vec<Outcome> {
        self.before_calls(&calls);
        let stored = self.refresh_state().await;
        let scope = self.scope();
        let mut runner = self.runner(&scope, executor);
        let mut prepared = Vec::with_capacity(calls.len());
        for (call, occurrence) in calls.into_iter().zip(occurrences) {
            prepared.push(runner.prepare(call.into(), occurrence, &stored).await);
        }
        let size = prepared.len();
        let mut decisions: Vec<Option<Box<Decision<'_>>>> = Vec::with_capacity(size);
        for (index, prepared) in prepared.iter().enumerate() {
            runner.context.kernel.round = Some(RoundPosition { size, index });
            decisions.push(runner.decide(prepared));
        }
        let keeps_course = runner.context.session.keeps_recorded_course;
        let mut has_changed =
            !keeps_course && runner.halt_by_any(decisions.iter().filter_map(Option::as_deref));
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(prepared.len());
        for (index, (prepared, mut decision)) in prepared.iter().zip(decisions).enumerate() {
            let started = Instant::now();
            runner.context.kernel.round = Some(RoundPosition { size, index });
            runner.round.start(prepared.hooked.requested().clone());
            if let Some(planned) = decision.take() {
                let mut now = if has_changed { runner.decide_again(prepared, planned) } else { planned };
                // A call that is stopped may count, and what counts may halt.
                has_changed |= keeps_course || now.is_permitted() || now.pending().next().is_some();
                if !keeps_course {
                    runner.defer_if_suspended(&mut now);
                }
                decision = Some(now);
            }
            let outcome = runner.run_prepared(prepared, decision, started).await;
            let outcome = runner.report(&prepared.hooked.call, outcome);
            runner.round.end(&outcome);
            outcomes.push(*outcome);
            if let Some(reason) = runner.context.hooks.run.abort_reason() {
                runner.state.halt(&reason);
                has_changed = true;
            }
        }
        runner.context.services.observers.record_outcomes().await;
        outcomes
    }
}

impl<E: ToolExecutor> CallRunner<'_, E> {
    /// Halts the session if one of these decisions of a round halts. Returns whether one does.
    pub(super) fn halt_by_any<'d>(&mut self, decisions: impl IntoIterator<Item = &'d Decision<'d>>) -> bool {
        let halting = decisions.into_iter().find(|decision| decision.effect() == Effect::Halt);
        if let Some(halting) = halting {
            self.context.kernel.halt(halting, self.state);
        }
        halting.is_some()
    }

    /// The decision on a call that was decided with its round, now that the calls before it have run. A refusal stays. Otherwise the
    /// stricter of the two decisions counts; of equal ones the later, which knows more.
    pub(super) fn decide_again<'c>(
        &self,
        prepared: &'c PreparedCall,
        planned: Box<Decision<'c>>,
    ) -> Box<Decision<'c>> {
        if planned.effect() >= Effect::Invalid {
            return planned;
        }
        match self.decide(prepared) {
            Some(later) if later.effect() >= planned.effect() => later,
            _ => planned,
        }
    }
}
