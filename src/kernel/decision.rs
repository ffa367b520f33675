//! What gate concludes of a call.

use std::borrow::Cow;

use serde_json::Value;
use smallvec::SmallVec;

use super::trace::{self, Layers, PolicyRef, Trace};
use crate::call::{PolicyTrace, Reason, ToolCall, reason_code};

/// What is to become of a call, in order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The tool may run.
    Run,
    /// A policy answers in the tool's place.
    Answer,
    /// A person must say yes first.
    Suspend,
    /// The arguments do not fit.
    Invalid,
    /// The call must not run.
    Deny,
    /// The call must not run, nor any later one of the session.
    Halt,
}

/// The decision on one call. It borrows the call's arguments unless a policy changed them, and names policies only when
/// asked, so that a call which nothing stops costs no allocation.
#[derive(Debug)]
pub struct Decision<'c> {
    pub(super) call: &'c ToolCall,
    pub(super) effect: Effect,
    pub(super) reason: Option<Reason>,
    pub(super) permitted_by: Option<PolicyRef>,
    pub(super) approvals: SmallVec<[PolicyRef; 2]>,
    pub(super) answer: Option<PolicyRef>,
    pub(super) input: Cow<'c, Value>,
    pub(super) trace: Trace,
    pub(super) layers: Layers,
}

impl<'c> Decision<'c> {
    /// A refusal that no policy gave.
    pub(super) fn refused(call: &'c ToolCall, effect: Effect, code: &str, message: &str) -> Self {
        Self {
            call,
            effect,
            reason: Some(Reason { policy: None, code: code.to_owned(), message: message.to_owned() }),
            permitted_by: None,
            approvals: SmallVec::new(),
            answer: None,
            input: Cow::Borrowed(&call.input),
            trace: Trace::default(),
            layers: Layers::new(),
        }
    }

    /// What is to become of the call.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Whether the call reaches its tool, or a policy that answers for it.
    pub fn is_permitted(&self) -> bool {
        matches!(self.effect, Effect::Run | Effect::Answer)
    }

    /// The final arguments.
    pub fn input(&self) -> &Value {
        &self.input
    }

    /// The call with its final arguments, where a policy changed them.
    pub fn changed_call(&self) -> Option<ToolCall> {
        match &self.input {
            Cow::Borrowed(_) => None,
            Cow::Owned(input) => {
                let Self { call, .. } = self;
                Some(ToolCall {
                    id: call.id.clone(),
                    tool: call.tool.clone(),
                    input: input.clone(),
                    server: call.server.clone(),
                    context: call.context.clone(),
                    options: call.options.clone(),
                })
            }
        }
    }

    /// Why it was decided so.
    pub fn reason(&self) -> Reason {
        if let Some(reason) = &self.reason {
            return reason.clone();
        }
        let named = |reference: Option<PolicyRef>| trace::policy(&self.layers, reference?);
        let (answer, permit) = (named(self.answer), named(self.permitted_by));
        let (code, message) = match (answer, permit) {
            (Some(policy), _) => {
                (reason_code::ANSWERED, format!("`{}` answers in the tool's place", policy.id))
            }
            (None, Some(policy)) => (reason_code::ALLOWED, format!("`{}` permits it", policy.id)),
            (None, None) => (reason_code::UNMATCHED, "no policy is against it".to_owned()),
        };
        Reason { policy: answer.or(permit).map(|policy| policy.id.clone()), code: code.to_owned(), message }
    }

    /// Which policies took part so far, in order.
    pub fn policies(&self) -> Vec<PolicyTrace> {
        self.trace.named(&self.layers)
    }
}
