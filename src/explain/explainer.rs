//! The listener that builds explanations: events of calls → an [`Explanation`] of each completed call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::explanation::Explanation;
use super::explanation_builder::ExplanationBuilder;
use crate::call::{Outcome, Phase};
use crate::diagnostic::SourceMap;
use crate::kernel::{
    CostCorrected, Decision, DecisionStarted, Event, EventListener, FactStored, LimitChecked, PolicyEvaluated,
};

/// The maximum number of calls in progress; beyond it, the oldest are not explained.
const MAX_OPEN: usize = 4096;

/// A listener that explains calls. It can listen to several sessions one after the other, but not at the same time.
#[derive(Debug, Default)]
pub struct Explainer {
    sources: Option<SourceMap>,
    call_id: Option<String>,
    state: Mutex<ExplainerState>,
}

#[derive(Debug, Default)]
struct ExplainerState {
    /// Calls without an outcome yet, in the order of their first decisions.
    open: Vec<ExplanationBuilder>,
    /// The call that is being decided: its index in `open`.
    deciding: Option<usize>,
    done: Vec<Explanation>,
}

impl Explainer {
    /// Creates an explainer that knows the files of the bundle, and so includes locations.
    pub fn new(sources: &SourceMap) -> Self {
        Self { sources: Some(sources.clone()), ..Self::default() }
    }

    /// Explains only calls with this id.
    #[must_use]
    pub fn with_call_id(mut self, id: impl Into<String>) -> Self {
        self.call_id = Some(id.into());
        self
    }

    /// Removes and returns the explanations of the calls that have completed since the last call, in the order of completion.
    pub fn take_explanations(&self) -> Vec<Explanation> {
        std::mem::take(&mut self.lock().done)
    }

    /// The explanation of the last decided call, so far.
    pub(crate) fn last_decision(&self) -> Option<Explanation> {
        let mut state = self.lock();
        let draft = state.open.pop()?;
        draft.finish(None, self.sources.as_ref())
    }

    fn lock(&self) -> MutexGuard<'_, ExplainerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventListener for Explainer {
    fn on_event(&self, event: &Event<'_>) {
        let mut state = self.lock();
        match event {
            Event::DecisionStarted(deciding) => state.begin_decision(deciding, self.call_id.as_deref()),
            Event::PolicyEvaluated(evaluation) => state.add_evaluation(evaluation, self.sources.as_ref()),
            Event::Decided(decision) => state.decided(decision),
            Event::LimitChecked(limit) => state.add_limit(limit),
            Event::CostCorrected(corrected) => state.correct_cost(corrected),
            Event::ExecutionStarted(call) => {
                if let Some(draft) = state.open.iter_mut().find(|draft| draft.has_id(&call.id)) {
                    draft.start_execution();
                }
            }
            Event::FactStored(stored) => state.add_fact(stored),
            // The handling of errors is part of later events.
            Event::ErrorMatched(_) => {}
            Event::Ended(outcome) => {
                let explanation = state.finish(outcome, self.sources.as_ref());
                state.done.extend(explanation);
            }
        }
    }
}

impl ExplainerState {
    fn begin_decision(&mut self, deciding: &DecisionStarted<'_>, wanted: Option<&str>) {
        // A decision while a call runs is one on a nested call.
        let running = self.open.iter().position(ExplanationBuilder::is_running);
        let known = self.open.iter().position(|draft| draft.is_call(deciding.view.call));
        if let Some(index) = running.or(known) {
            self.deciding = Some(index);
            if let Some(draft) = self.open.get_mut(index) {
                draft.begin_decision(deciding);
            }
            return;
        }
        if self.open.len() >= MAX_OPEN {
            self.open.remove(0);
        }
        let is_wanted = wanted.is_none_or(|wanted| wanted == deciding.view.call.id);
        let mut draft = ExplanationBuilder::new(deciding, is_wanted);
        draft.begin_decision(deciding);
        self.open.push(draft);
        self.deciding = Some(self.open.len() - 1);
    }

    fn add_evaluation(&mut self, evaluation: &PolicyEvaluated<'_>, sources: Option<&SourceMap>) {
        let draft = match evaluation.phase {
            Some(Phase::Normalise | Phase::Gate | Phase::Execute) => {
                self.deciding.and_then(|index| self.open.get_mut(index))
            }
            Some(Phase::Settle) => self.open.iter_mut().find(|draft| draft.has_id(&evaluation.view.call.id)),
            // Budgets are evaluated just before a call runs.
            None => self.open.first_mut(),
        };
        if let Some(draft) = draft {
            draft.add_evaluation(evaluation, sources);
        }
    }

    fn decided(&mut self, decision: &Decision<'_>) {
        if let Some(draft) = self.deciding.and_then(|index| self.open.get_mut(index)) {
            draft.set_decision(decision);
        }
    }

    fn add_limit(&mut self, limit: &LimitChecked<'_>) {
        if let Some(draft) = self.open.iter_mut().find(|draft| draft.has_id(&limit.call.id)) {
            draft.add_limit(limit);
        }
    }

    fn correct_cost(&mut self, corrected: &CostCorrected<'_>) {
        if let Some(draft) = self.open.iter_mut().find(|draft| draft.has_id(&corrected.call.id)) {
            draft.correct_cost(corrected);
        }
    }

    fn add_fact(&mut self, stored: &FactStored<'_>) {
        if let Some(draft) = self.open.iter_mut().find(|draft| draft.has_id(&stored.call.id)) {
            draft.add_fact(stored);
        }
    }

    /// Outcomes arrive in the order of their calls, even if ids repeat.
    fn finish(&mut self, outcome: &Outcome, sources: Option<&SourceMap>) -> Option<Explanation> {
        let index = self.open.iter().position(|draft| draft.has_id(&outcome.id))?;
        let draft = self.open.remove(index);
        self.deciding = None;
        draft.finish(Some(outcome), sources)
    }
}
