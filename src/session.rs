//! One agent run: its calls in order, what it has seen, and whole rounds decided before any of their calls runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;

use crate::call::{Outcome, SessionState, ToolCall};
use crate::execution::{Execute, Services};
use crate::host::{Clock, Observer, ToolExecutor};
use crate::kernel::{Decision, Effect, Kernel, Layers};
use crate::policy::Chains;
use crate::tools::ToolSet;

/// What all sessions of an engine share.
pub(crate) struct Shared {
    pub(crate) bundle: ArcSwap<Chains>,
    pub(crate) tools: ToolSet,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) services: Services,
}

impl Shared {
    /// A kernel over these layers.
    pub(crate) fn kernel<'k>(&'k self, layers: &'k Layers) -> Kernel<'k> {
        Kernel { layers, tools: &self.tools, clock: &*self.clock }
    }

    /// Shows an outcome to the observers. One that panics changes nothing.
    fn report(&self, session: Option<&str>, mut outcome: Outcome) -> Outcome {
        outcome.session = session.map(str::to_owned);
        for observer in &self.observers {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_outcome(&outcome)));
        }
        outcome
    }
}

/// One agent run.
///
/// Each round is decided under one revision of the rules, whatever is reloaded meanwhile.
pub struct Session {
    shared: Arc<Shared>,
    name: Option<String>,
    state: SessionState,
    /// The prompt's and the call's policies, in this order.
    lower_layers: Vec<Arc<Chains>>,
    unnamed_calls: u64,
    /// Its own name among all sessions, whatever the host calls it.
    unique_name: String,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("name", &self.name)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            unique_name: shared.services.unique_name(),
            shared,
            name: None,
            state: SessionState::default(),
            lower_layers: Vec::new(),
            unnamed_calls: 0,
        }
    }

    /// Names the session, for outcomes.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a layer of policies below those that are there: first the prompt's, then the call's. A lower layer can add
    /// denials, approvals and limits to the layers above it, and lift none of them.
    #[must_use]
    pub fn with_layer(mut self, chains: Arc<Chains>) -> Self {
        self.lower_layers.push(chains);
        self
    }

    /// What the session has seen.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Lets the host say where the run stands: `conversationId`, `iteration`, and so on.
    pub fn state_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }

    /// Puts one call through its whole life.
    ///
    /// The future may be dropped: a call whose tool was started then counts as started, and has no outcome.
    pub async fn execute(&mut self, call: ToolCall, executor: &impl ToolExecutor) -> Outcome {
        let started = Instant::now();
        let call = self.name_call(call);
        let layers = self.layers();
        let Self { shared, name, state, unique_name, .. } = self;
        let kernel = shared.kernel(&layers);
        let execute = Execute { kernel: &kernel, services: &shared.services, executor, session: unique_name };
        let decision = kernel.decide(&call, state);
        let outcome = execute.run(decision, state, started).await;
        shared.report(name.as_deref(), outcome)
    }

    /// Puts the calls of one round through. All are decided before any runs: if one halts, none runs; if some wait for a
    /// person, the others run and their results stand. Each is decided once more just before it starts, for what ran
    /// before it in the round counts; that can only stop it.
    ///
    /// Outcomes come in the order of the calls.
    pub async fn execute_round(
        &mut self,
        calls: Vec<ToolCall>,
        executor: &impl ToolExecutor,
    ) -> Vec<Outcome> {
        let calls: Vec<ToolCall> = calls.into_iter().map(|call| self.name_call(call)).collect();
        let layers = self.layers();
        let Self { shared, name, state, unique_name, .. } = self;
        let kernel = shared.kernel(&layers);
        let execute = Execute { kernel: &kernel, services: &shared.services, executor, session: unique_name };
        let decisions: Vec<Decision<'_>> = calls.iter().map(|call| kernel.decide(call, state)).collect();
        let mut changed = false;
        if let Some(halting) = decisions.iter().find(|decision| decision.effect() == Effect::Halt) {
            state.halt(&halting.reason().message);
            changed = true;
        }
        let mut outcomes = Vec::with_capacity(calls.len());
        for (call, decision) in calls.iter().zip(decisions) {
            let started = Instant::now();
            let overtaken = changed && decision.effect() < Effect::Invalid;
            let decision = if overtaken { strictest(decision, kernel.decide(call, state)) } else { decision };
            // A call that is stopped may count, and what counts may halt.
            changed |= decision.is_permitted() || decision.pending().next().is_some();
            let outcome = execute.run(decision, state, started).await;
            outcomes.push(shared.report(name.as_deref(), outcome));
        }
        outcomes
    }

    fn layers(&self) -> Layers {
        std::iter::once(self.shared.bundle.load_full()).chain(self.lower_layers.iter().cloned()).collect()
    }

    /// Approvals and results need a name for their call.
    fn name_call(&mut self, mut call: ToolCall) -> ToolCall {
        if call.id.is_empty() {
            self.unnamed_calls += 1;
            call.id = format!("call_{}", self.unnamed_calls);
        }
        call
    }
}

/// Of two decisions on one call the stricter; of equal ones the later, which knows more.
fn strictest<'c>(earlier: Decision<'c>, later: Decision<'c>) -> Decision<'c> {
    if earlier.effect() > later.effect() { earlier } else { later }
}
