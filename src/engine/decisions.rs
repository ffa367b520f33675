//! Decisions of single calls, without executing them: in full, only their effect, or explained.

use super::Engine;
use crate::call::{SessionState, ToolCall};
use crate::diagnostic::SourceMap;
use crate::explain::{Explainer, Explanation};
use crate::json;
use crate::kernel::{Decision, Effect, Kernel, Layers};

impl Engine {
    /// Decides a call, given the state of its session. Synchronous; executes, counts and records nothing.
    pub fn decide<'c>(&self, call: &'c ToolCall, session: &SessionState) -> Decision<'c> {
        let layers = Layers::from_iter([self.shared.bundle.load_full()]);
        self.shared.kernel(&layers).decide(call, session)
    }

    /// The effect that [`decide`](Self::decide) has, without reason and trace: the strictest policies are evaluated first, and where they stop the
    /// call, no others are. What is not evaluated uses none of the work of the call, so a call whose whole decision would exceed the work limit may have the
    /// effect of its policies instead of being denied.
    ///
    /// ```
    /// use callgate::json::json;
    /// use callgate::{Effect, Engine, SessionState, ToolCall};
    ///
    /// let engine = Engine::from_text(
    ///     "policies: [{ id: small, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: {} }]",
    /// )?;
    /// let call = ToolCall::new("c1", "refund", json!({ "amount": 250 }));
    /// assert_eq!(engine.effect(&call, &SessionState::default()), Effect::Deny);
    /// # Ok::<(), callgate::LoadError>(())
    /// ```
    pub fn effect(&self, call: &ToolCall, session: &SessionState) -> Effect {
        let layers = Layers::from_iter([self.shared.bundle.load_full()]);
        self.shared.kernel(&layers).effect(call, session)
    }

    /// The [`effect`](Self::effect) of a call whose arguments are still text: a JSON object, which replaces the `input` of `call`. Where policies read
    /// members of the arguments by name, values of other members are only checked to be valid JSON, so that large ones cost little.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or JSON that other parsers read differently ([`json::parse`]): the call must not run.
    ///
    /// ```
    /// use callgate::json::Value;
    /// use callgate::{Effect, Engine, SessionState, ToolCall};
    ///
    /// let engine = Engine::from_text(
    ///     "policies: [{ id: small, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: {} }]",
    /// )?;
    /// let call = ToolCall::new("c1", "refund", Value::Null);
    /// let effect = engine.effect_of_text(call, r#"{ "amount": 250, "note": "late" }"#, &SessionState::default())?;
    /// assert_eq!(effect, Effect::Deny);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn effect_of_text(
        &self,
        call: ToolCall,
        arguments: &str,
        session: &SessionState,
    ) -> Result<Effect, json::ParseError> {
        let layers = Layers::from_iter([self.shared.bundle.load_full()]);
        self.shared.kernel(&layers).effect_of_text(call, arguments, session)
    }

    /// Decides a call as [`decide`](Self::decide) does, and explains the decision: for every policy, whether it matched and which of its
    /// conditions decided that. `sources` are the files of the bundle, for source positions. Returns `None` only after an internal error.
    pub fn explain(
        &self,
        call: &ToolCall,
        session: &SessionState,
        sources: &SourceMap,
    ) -> Option<Explanation> {
        let layers = Layers::from_iter([self.shared.bundle.load_full()]);
        let explainer = Explainer::new(sources);
        let kernel = Kernel { listener: Some(&explainer), ..self.shared.kernel(&layers) };
        kernel.decide(call, session);
        explainer.last_decision()
    }
}
