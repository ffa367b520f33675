//! Evaluates sample calls against versions of rules: `CallSample` + rules → [`DecisionSummary`]. Nothing is executed.

use std::sync::Arc;

use callgate::Clock;
use callgate::call::SessionState;
use callgate::engine::Engine;
use callgate::json::Value;
use callgate::kernel::{Decision, Effect, Kernel, Layers};
use callgate::policy::CompiledPolicies;
use callgate::tools::{ToolDescriptor, ToolSet};
use jiff::Timestamp;
use serde::Serialize;

use crate::call_sample::CallSample;

/// The decision on a sample call.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecisionSummary {
    /// What happens with the call: `run`, `answer`, `suspend`, `invalid`, `deny` or `halt`.
    pub effect: &'static str,
    /// The policy that decides it; `None` for a default.
    pub policy: Option<String>,
    /// The reason code.
    pub code: String,
    /// The arguments, if a policy changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(skip)]
    pub(crate) strictness: u8,
}

impl DecisionSummary {
    fn new(decision: &Decision<'_>, shows_input: bool) -> Self {
        let reason = decision.reason();
        let (effect, strictness) = describe_effect(decision.effect());
        let input = decision.changed_call().filter(|_| shows_input).map(|call| call.input);
        Self { effect, policy: reason.policy, code: reason.code, input, strictness }
    }
}

/// The name of an effect and its strictness. Invalid arguments count as a denial.
fn describe_effect(effect: Effect) -> (&'static str, u8) {
    match effect {
        Effect::Run => ("run", 0),
        Effect::Answer => ("answer", 1),
        Effect::Suspend => ("suspend", 2),
        Effect::Invalid => ("invalid", 3),
        Effect::Deny => ("deny", 3),
        Effect::Halt => ("halt", 4),
    }
}

/// Evaluates sample calls, with the known tools.
pub(crate) struct Evaluator {
    tools: ToolSet,
    /// It has the keys of digests.
    engine: Engine,
}

/// A decision, with what a comparison needs of it.
pub(crate) struct EvaluatedCall {
    pub(crate) summary: DecisionSummary,
    /// The arguments that would reach the tool.
    pub(crate) input: Value,
}

/// A clock that always shows one time.
struct FixedClock(Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl Evaluator {
    pub(crate) fn new(tools: &[ToolDescriptor], policies: &Arc<CompiledPolicies>) -> Self {
        Self { tools: ToolSet::new(tools.iter().cloned()), engine: Engine::new(Arc::clone(policies)) }
    }

    /// Decides a sample call.
    pub(crate) fn decide(&self, layers: &Layers, sample: &CallSample) -> EvaluatedCall {
        let session: &SessionState = &sample.session;
        let kernel = Kernel {
            layers,
            tools: &self.tools,
            clock: &FixedClock(sample.now),
            keys: self.engine.keys(),
            listener: None,
            task: &sample.task,
            round: None,
        };
        let decision = kernel.decide(&sample.call, session);
        let summary = DecisionSummary::new(&decision, !sample.is_confidential());
        EvaluatedCall { summary, input: decision.input().clone() }
    }
}
