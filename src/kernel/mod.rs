//! One call's life: normalise → gate → execute → settle. The whole of it is on this page; each phase has its file.
//!
//! Policies come in layers (bundle, then prompt, then call). Each layer decides for itself and the strictest wins, so a
//! lower layer can only tighten.

mod conclude;
mod decision;
mod gate;
mod normalise;
mod settle;
mod shown;
mod trace;

pub use decision::{Decision, Effect};
pub use settle::Execution;
pub use trace::Layers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::call::{CallView, SessionState, ToolCall, reason_code};
use crate::host::Clock;
use crate::policy::{Chain, Policy};
use crate::tools::{Tool, ToolSet};
use trace::{PolicyRef, Trace};

/// What decides calls: the layers, each of one revision, the known tools and the time.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    /// The layers, the bundle first.
    pub layers: &'k Layers,
    /// The known tools.
    pub tools: &'k ToolSet,
    /// The time.
    pub clock: &'k dyn Clock,
}

impl std::fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Kernel<'_> {
    /// What is to become of a call: normalise, then gate. Nothing is executed, counted or recorded.
    ///
    /// Whatever goes wrong in here, a panic included, denies.
    pub fn decide<'c>(&self, call: &'c ToolCall, session: &SessionState) -> Decision<'c> {
        guarded(call, || self.decide_unguarded(call, session))
    }

    fn decide_unguarded<'c>(&self, call: &'c ToolCall, session: &SessionState) -> Decision<'c> {
        if let Some(message) = session.halted() {
            return Decision::refused(call, Effect::Halt, reason_code::SESSION_HALTED, message);
        }
        let subject = self.subject(call);
        let mut trace = Trace::default();
        let view = subject.view(session);
        let normalised = normalise::run(&subject, &call.input, view, &mut trace);
        let view = CallView { input: &normalised.input, ..view };
        let conclusion = gate::run(&subject, view, normalised.failure, &mut trace);
        let reason = conclusion.reason(&subject, view);
        Decision {
            call,
            effect: conclusion.effect,
            reason,
            permitted_by: conclusion.permitted_by,
            approvals: conclusion.approvals,
            answer: conclusion.answer,
            input: normalised.input,
            trace,
            layers: self.layers.clone(),
        }
    }

    fn subject<'a>(&'a self, call: &'a ToolCall) -> Subject<'a> {
        let server = call.server.as_deref().unwrap_or("");
        let chains = self.layers.iter().map(|layer| layer.resolve(server, &call.tool)).collect();
        Subject { call, layers: self.layers, chains, tool: self.tools.get(call) }
    }

    /// The digest of the rules of all layers.
    pub fn revision(&self) -> String {
        self.layers.iter().map(|layer| layer.revision()).collect::<Vec<_>>().join("+")
    }
}

/// A decision that panics denies.
fn guarded<'c>(call: &'c ToolCall, decide: impl FnOnce() -> Decision<'c>) -> Decision<'c> {
    catch_unwind(AssertUnwindSafe(decide))
        .unwrap_or_else(|_| Decision::refused(call, Effect::Deny, reason_code::INTERNAL_ERROR, UNDECIDABLE))
}

/// What is said of a call on which Callgate itself failed.
const UNDECIDABLE: &str = "Callgate failed to decide this call";

/// A call with the chains and the tool that concern it, found once.
struct Subject<'a> {
    call: &'a ToolCall,
    layers: &'a Layers,
    chains: SmallVec<[Arc<Chain>; 3]>,
    tool: Option<&'a Tool>,
}

impl<'a> Subject<'a> {
    fn view<'v>(&self, session: &'v SessionState) -> CallView<'v>
    where
        'a: 'v,
    {
        let annotations = self.tool.and_then(|tool| tool.annotations.as_ref());
        CallView { annotations, ..CallView::new(self.call, session) }
    }

    /// The policies of one phase over all layers, in the order in which they act.
    fn policies<'s>(&'s self, phase: fn(&Chain) -> &[u32]) -> impl Iterator<Item = (PolicyRef, &'a Policy)> {
        (0u32..).zip(self.layers.iter().zip(&self.chains)).flat_map(move |(layer, (chains, chain))| {
            phase(chain)
                .iter()
                .filter_map(move |index| Some((PolicyRef { layer, index: *index }, chains.policy(*index)?)))
        })
    }

    fn policy(&self, reference: PolicyRef) -> Option<&'a Policy> {
        trace::policy(self.layers, reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_deciding_denies() {
        let call = ToolCall::new("c1", "pay", serde_json::json!({}));
        let decision = guarded(&call, || panic!("a mistake in Callgate"));
        assert_eq!((decision.effect(), decision.is_permitted()), (Effect::Deny, false));
        assert_eq!(decision.reason().code, reason_code::INTERNAL_ERROR);
    }
}
