//! Decides calls without running them: for hosts that ask before they run a call themselves.

use std::borrow::Cow;

use serde::Serialize;

use super::Session;
use crate::call::{Effect, PolicyTrace, Reason, RoundPosition, SessionState, ToolCall};
use crate::diagnostic::SourceMap;
use crate::explain::{Explainer, Explanation};
use crate::host::StoreError;
use crate::json::Value;
use crate::kernel::{Decision, EventListener, Kernel, Layers};

/// The decision on a call that is not run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Evaluation<'c> {
    /// The id of the call.
    pub id: &'c str,
    /// The name of the tool.
    pub tool: &'c str,
    /// What would happen to the call.
    pub effect: Effect,
    /// Why; its message is redacted.
    pub reason: Reason,
    /// The arguments that the call would run with, not redacted.
    pub input: Cow<'c, Value>,
    /// The limits that it would have to acquire before it runs, which can still refuse it.
    pub pending: Vec<String>,
    /// The policies that took part, in order.
    pub policies: Vec<PolicyTrace>,
    /// The digest of the rules.
    pub revision: String,
}

impl Session {
    /// Decides the calls of one round as [`execute_round`](Self::execute_round) does before it runs any of them. Executes, counts and
    /// records nothing, and calls no hooks. The state of a [recorded](Self::with_call_recording) session is read from the store.
    ///
    /// # Errors
    /// The store does not return the state of a recorded session.
    pub async fn evaluate_round<'c>(
        &mut self,
        calls: &'c [ToolCall],
    ) -> Result<Vec<Evaluation<'c>>, StoreError> {
        self.refresh_state().await?;
        let layers = self.layers();
        let size = calls.len();
        let mut decisions: Vec<Decision<'c>> = Vec::with_capacity(size);
        for (index, call) in calls.iter().enumerate() {
            decisions.push(self.kernel_for_position(&layers, index, size, None).decide(call, &self.state));
        }
        let halting = decisions.iter().find(|decision| decision.effect() == Effect::Halt);
        let halted = halting.map(|halting| {
            let mut state = self.state.clone();
            self.kernel(&layers).halt(halting, &mut state);
            state
        });
        let state = halted.as_ref().unwrap_or(&self.state);
        let mut evaluations = Vec::with_capacity(size);
        for (index, (call, mut decision)) in calls.iter().zip(decisions).enumerate() {
            let kernel = self.kernel_for_position(&layers, index, size, None);
            // If one call halts, none runs.
            if halted.is_some() && decision.effect() < Effect::Invalid {
                decision = kernel.decide(call, state);
            }
            evaluations.push(kernel.evaluation(call, decision, state));
        }
        Ok(evaluations)
    }

    /// Explains the decisions on the calls of a round, each without regard to whether another one halts the session. `sources` are the
    /// files of the bundle, for source positions. An explanation is `None` only after an internal error.
    ///
    /// # Errors
    /// The store does not return the state of a recorded session.
    pub async fn explain_round(
        &mut self,
        calls: &[ToolCall],
        sources: &SourceMap,
    ) -> Result<Vec<Option<Explanation>>, StoreError> {
        self.refresh_state().await?;
        let layers = self.layers();
        let explain = |(index, call)| {
            let explainer = Explainer::new(sources);
            self.kernel_for_position(&layers, index, calls.len(), Some(&explainer)).decide(call, &self.state);
            explainer.last_decision()
        };
        Ok(calls.iter().enumerate().map(explain).collect())
    }

    /// The kernel that decides the call at a position of a round.
    fn kernel_for_position<'k>(
        &'k self,
        layers: &'k Layers,
        index: usize,
        size: usize,
        listener: Option<&'k dyn EventListener>,
    ) -> Kernel<'k> {
        let tools = self.tools.as_deref().unwrap_or(&self.shared.tools).set();
        let round = Some(RoundPosition { size, index });
        Kernel { tools, task: &self.task, round, listener, ..self.shared.kernel(layers) }
    }
}

impl Kernel<'_> {
    /// A decision for the host, which does not run the call.
    fn evaluation<'c>(
        &self,
        call: &'c ToolCall,
        decision: Decision<'c>,
        state: &SessionState,
    ) -> Evaluation<'c> {
        Evaluation {
            id: &call.id,
            tool: &call.tool,
            effect: decision.effect(),
            reason: self.redacted_reason(&decision, state),
            pending: decision.pending().map(str::to_owned).collect(),
            policies: decision.policies(),
            revision: self.revision(),
            input: decision.into_input(),
        }
    }
}
